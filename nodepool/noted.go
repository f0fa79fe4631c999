package nodepool

// noteAttempts writes down which pods a launch is for.
func (e *executor) noteAttempts() {
	if e.forecast.attempts != nil && len(e.forecast.new) > 0 {
		e.record.Attempts = e.forecast.attempts.begun(e.forecast.new, e.forecast.asking, e.now())
	}
}

// keepAttempts has the journal keep what was found about earlier launches.
func (e *executor) keepAttempts() {
	if a := e.forecast.attempts; a != nil && a.changed {
		e.record.Attempts, e.dirty = a.list, true
	}
}
