package source

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Rate turns the readings of one counter into rates per second between consecutive readings. The zero value is ready.
type Rate struct {
	last  pipeline.Sample
	ready bool
}

// setBack is how much earlier than the last a reading is that was not late: the clock has been set back.
const setBack = int64(time.Minute / time.Millisecond)

// Next takes a reading and returns the rate since the one before, stamped with the time of the later. It returns
// false for the first reading and for one that is not later than the last, unless it is so much earlier that the clock must
// have been set back: that is a first reading. A counter that has fallen was reset: what
// it shows has been counted since then, so that is taken as the increase.
func (r *Rate) Next(reading pipeline.Sample) (pipeline.Sample, bool) {
	previous, ready := r.last, r.ready
	if ready && reading.T <= previous.T && reading.T > previous.T-setBack {
		return pipeline.Sample{}, false
	}
	ready = ready && reading.T > previous.T
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
