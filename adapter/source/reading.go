package source

import (
	"cmp"
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

// Rate turns the readings of one counter into rates per second between readings. The zero value is ready.
type Rate struct {
	last  pipeline.Sample
	least int64 // of last
	ready bool
}

const (
	// maxLateness is how much earlier than the last a late reading may be. One that is still
	// earlier shows that the clock was set back.
	maxLateness = int64(time.Minute / time.Millisecond)
	// minSpacing is the least time between two readings whose usual spacing is not known (ms).
	minSpacing = 500
	// maxGap is how far apart two readings may be whose rate is one of now: if they are farther
	// apart, a clock was set forward, or the counter was out of sight.
	maxGap = int64(time.Hour / time.Millisecond)
)

// Next takes a reading and returns the rate since the previous one, with the time of the later. It
// returns false for the first reading and for a late one; a reading after the clock was set counts
// as a first one. A counter that has fallen was reset: its value is the increase since then.
//
// The times of readings are inexact: a scrape may be answered late, and two servers may scrape a
// pod a moment apart. Least is the least time (ms) to another reading over which a rate with this
// one is meaningful, 0 if nothing is known of it. Of two readings that are closer the one with the
// smaller least stays, the earlier one if they are equal, and there is no rate.
//
// A counter that falls below 0 is none: its rate is negative, which the gate refuses.
func (r *Rate) Next(reading pipeline.Sample, least int64) (pipeline.Sample, bool) {
	previous, between := *r, max(r.least, cmp.Or(least, minSpacing))
	if r.ready && reading.T <= previous.last.T && reading.T > previous.last.T-maxLateness {
		return pipeline.Sample{}, false
	}
	ready := r.ready && reading.T > previous.last.T && reading.T-previous.last.T <= maxGap
	if ready && reading.T-previous.last.T < between && least >= previous.least {
		return pipeline.Sample{}, false
	}
	*r = Rate{last: reading, least: least, ready: true}
	if !ready || reading.T-previous.last.T < between {
		return pipeline.Sample{}, false
	}
	increase := reading.V - previous.last.V
	if increase < 0 {
		increase = reading.V
	}
	return pipeline.Sample{T: reading.T, V: increase / (float64(reading.T-previous.last.T) / 1000)}, true
}

// Reset records that the counter was 0 at a time (ms).
func (r *Rate) Reset(at int64) { *r = Rate{last: pipeline.Sample{T: at}, ready: true} }
