package pipeline

import (
	"math"
	"slices"
	"time"
)

// Parameters of the adaptive startup time (paper, section 10.4).
const (
	initMeasurements = 5   // measurements that the median is taken of
	initRate         = 0.1 // r
	initFactorUp     = 1.5 // f↑
	initFactorDown   = 1.0 // f↓
)

// StartupTime estimates T_I, the time from the request of an instance to its readiness, from measured start-ups. It
// follows the median of the last five, moving by at most 15% up or 10% down a measurement, so that one slow image
// pull changes little and a lasting change is followed.
type StartupTime struct {
	current float64 // ms
	recent  []float64
}

// NewStartupTime starts from an assumed value.
func NewStartupTime(initial time.Duration) *StartupTime {
	return &StartupTime{current: math.Round(millis(initial))}
}

// Observe takes one measured start-up: when the instance was requested and when it became ready (ms). Start-ups that
// seem to end before they began (clocks that disagree) are ignored.
func (t *StartupTime) Observe(asked, ready int64) {
	if ready < asked {
		return
	}
	t.recent = append(t.recent, float64(ready-asked))
	if len(t.recent) > initMeasurements {
		t.recent = t.recent[1:]
	}
	step := median(t.recent) - t.current
	step = min(max(step, -t.current*initRate*initFactorDown), t.current*initRate*initFactorUp)
	t.current = math.Round(t.current + step)
}

// Value returns T_I, in whole milliseconds.
func (t *StartupTime) Value() time.Duration { return time.Duration(t.current) * time.Millisecond }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
