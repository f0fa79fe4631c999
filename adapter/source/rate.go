package source

import "github.com/foresail/foresail/pipeline"

// Rate turns the readings of one counter into rates per second between consecutive readings. The zero value is ready.
type Rate struct {
	last  pipeline.Sample
	ready bool
}

// Next takes a reading and returns the rate since the one before, stamped with the time of the later. It returns
// false for the first reading and for one that is not later than the last. A counter that has fallen was reset: what
// it shows has been counted since then, so that is taken as the increase.
func (r *Rate) Next(reading pipeline.Sample) (pipeline.Sample, bool) {
	previous, ready := r.last, r.ready
	if ready && reading.T <= previous.T {
		return pipeline.Sample{}, false
	}
	r.last, r.ready = reading, true
	if !ready {
		return pipeline.Sample{}, false
	}
	increase := reading.V - previous.V
	if increase < 0 {
		increase = reading.V
	}
	return pipeline.Sample{T: reading.T, V: increase / (float64(reading.T-previous.T) / 1000)}, true
}
