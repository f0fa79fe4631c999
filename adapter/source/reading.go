package source

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Type says how readings become samples.
type Type string

// The types of metrics.
const (
	Gauge   Type = "Gauge"   // a reading is a sample
	Counter Type = "Counter" // the rate per second between two readings is a sample
)

// Rate turns the readings of one counter into rates per second between consecutive readings. The zero value is ready.
type Rate struct {
	last  pipeline.Sample
	ready bool
}

// maxLateness is how much earlier than the last a late reading may be. One that is still earlier shows that the clock
// was set back.
const maxLateness = int64(time.Minute / time.Millisecond)

// maxGap is how far apart two readings may be whose rate is one of now: if they are farther apart, a
// clock was set forward, or the counter was out of sight.
const maxGap = int64(time.Hour / time.Millisecond)

// Next takes a reading and returns the rate since the previous one, with the time of the later. It
// returns false for the first reading and for a late one; a reading after the clock was set counts as a
// first one. A counter that has fallen was reset: its value is the increase since then.
func (r *Rate) Next(reading pipeline.Sample) (pipeline.Sample, bool) {
	previous, ready := r.last, r.ready
	if ready && reading.T <= previous.T && reading.T > previous.T-maxLateness {
		return pipeline.Sample{}, false
	}
	ready = ready && reading.T > previous.T && reading.T-previous.T <= maxGap
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
