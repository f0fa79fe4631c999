package judge

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Parameters of the measured startup time (paper, section 10.4). Only the first applies to estimates without damping.
const (
	initMeasurements = 5   // number of measurements that the median is taken of
	initRate         = 0.1 // r
	initFactorUp     = 1.5 // f↑
	initFactorDown   = 1.0 // f↓
)

// StartupTime estimates T_I, the time from the request of an instance to its readiness, from measured start-ups.
type StartupTime struct {
	damped           bool
	initial, current float64 // ms
	recent           []float64
}

// NewStartupTime returns an estimate that starts with an assumed value. The estimate is the median of the last
// five start-ups. Until there are five, the assumed value counts as one more, so that a single slow image pull
// does not dominate.
func NewStartupTime(initial time.Duration) *StartupTime {
	assumed := math.Round(series.Millis(initial))
	return &StartupTime{initial: assumed, current: assumed}
}

// NewDampedStartupTime is NewStartupTime for Holt's method: per measurement, the estimate moves towards the
// median of the last five start-ups by at most 15% up or 10% down.
func NewDampedStartupTime(initial time.Duration) *StartupTime {
	t := NewStartupTime(initial)
	t.damped = true
	return t
}

// Observe adds one measured start-up: when the instance was requested and when it became ready (ms). Start-ups
// that end before they begin, because clocks disagree, are ignored.
func (t *StartupTime) Observe(requested, ready int64) {
	if ready < requested {
		return
	}
	t.recent = append(t.recent, float64(ready-requested))
	if len(t.recent) > initMeasurements {
		t.recent = t.recent[1:]
	}
	if !t.damped {
		t.current = t.median()
		return
	}
	step := median(t.recent) - t.current
	step = min(max(step, -t.current*initRate*initFactorDown), t.current*initRate*initFactorUp)
	t.current = math.Round(t.current + step)
}

// median returns the median of the last start-ups, including the assumed value while they are few.
func (t *StartupTime) median() float64 {
	if len(t.recent) == initMeasurements {
		return math.Round(median(t.recent))
	}
	return math.Round(median(append([]float64{t.initial}, t.recent...)))
}

// Value returns T_I, in whole milliseconds.
func (t *StartupTime) Value() time.Duration { return time.Duration(t.current) * time.Millisecond }

// median returns the median of values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
