package predict

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// HorizonLimit names the setting that makes the horizon shorter than the startup time requires.
type HorizonLimit string

// The limits of a horizon.
const (
	Unlimited       HorizonLimit = ""
	LimitedByMax    HorizonLimit = "LimitedByMax"    // HorizonMax is less than the startup time requires
	LimitedByWindow HorizonLimit = "LimitedByWindow" // the window is too short to extend a trend to the horizon
)

// windowPerHorizon is the length of a window that follows the horizon, as a factor of the horizon. A line needs
// 1/line.CarriedOn of a horizon, and the window must also contain the peak before it.
const windowPerHorizon = 1.5

// HorizonOptions configures the horizon and the window of forecasts.
type HorizonOptions struct {
	Multiplier    float64       // η
	Min, Max      time.Duration // H_min, H_max
	ReactionDelay time.Duration // D, added after the bounds

	Window        time.Duration // W, the shortest window
	Interval      time.Duration // Δt
	Adaptive      bool          // trends are extended only as far as line.CarriedOn allows, and not indefinitely
	WindowFollows bool          // the window grows if the horizon of the adaptive method needs it
}

// Reach is the horizon and the window of a forecast.
type Reach struct {
	Ahead        float64 // H in ms
	AheadNeeded  float64 // H without the limit Max
	Window       time.Duration
	WindowNeeded time.Duration // the shortest window from which a trend extends to the horizon; 0 if any does
}

// Reach returns H = clamp(η·T_I, H_min, H_max) + D and its window, for a startup time T_I (paper, section 7.9).
// D is not in the paper: it is the delay until the autoscaler reads the forecast.
func (h *HorizonOptions) Reach(startupTime time.Duration) Reach {
	needed := max(h.Multiplier*series.Millis(startupTime), series.Millis(h.Min))
	r := Reach{
		Ahead:       min(needed, series.Millis(h.Max)) + series.Millis(h.ReactionDelay),
		AheadNeeded: needed + series.Millis(h.ReactionDelay),
		Window:      h.Window,
	}
	r.WindowNeeded = h.WindowNeeded(r.Ahead)
	if h.Adaptive && h.WindowFollows {
		follows := min(series.Duration(math.Ceil(windowPerHorizon*r.Ahead)), series.MaxTicks*h.Interval)
		r.Window = max(r.Window, follows)
	}
	return r
}

// WindowNeeded returns the shortest window from which a trend extends ahead by a time (ms); 0 with Holt, whose
// trends extend indefinitely.
func (h *HorizonOptions) WindowNeeded(ahead float64) time.Duration {
	if !h.Adaptive {
		return 0
	}
	return series.Duration(math.Ceil(ahead / line.CarriedOn))
}

// Limit returns the setting that makes the horizon shorter than the startup time requires, if any.
func (r *Reach) Limit() HorizonLimit {
	switch {
	case r.Ahead < r.AheadNeeded:
		return LimitedByMax
	case r.Window < r.WindowNeeded:
		return LimitedByWindow
	default:
		return Unlimited
	}
}
