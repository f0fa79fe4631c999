package act

// noteAttempts writes down which pods a launch is for.
func (e *executor) noteAttempts() {
	if list, any := e.forecast.BegunAttempts(e.Now()); any {
		e.Record.Attempts = list
	}
}

// keepAttempts has the journal keep what was found about earlier launches.
func (e *executor) keepAttempts() {
	if list, changed := e.forecast.ChangedAttempts(); changed {
		e.Record.Attempts, e.Dirty = list, true
	}
}
