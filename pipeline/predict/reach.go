package predict

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// HorizonLimit names the setting that keeps a forecast from reaching as far ahead as instances take to start.
type HorizonLimit string

// The limits of a horizon.
const (
	Unlimited       HorizonLimit = ""
	LimitedByMax    HorizonLimit = "LimitedByMax"    // HorizonMax is less than the startup time requires
	LimitedByWindow HorizonLimit = "LimitedByWindow" // the window is too short to carry a trend to the horizon
)

// windowPerHorizon is the length of a window that follows the horizon, in horizons: a line needs 1/line.CarriedOn of
// one, and the peak before it has to be seen too.
const windowPerHorizon = 1.5

// Horizon configures how far forecasts look ahead and back.
type Horizon struct {
	Multiplier    float64       // η
	Min, Max      time.Duration // H_min, H_max
	ReactionDelay time.Duration // D, added after the bounds

	Window   time.Duration // W, the shortest window
	Interval time.Duration // Δt
	Adaptive bool          // trends are carried on only for as long as line.CarriedOn allows, not for any time
	Follows  bool          // the window becomes longer where the horizon of the adaptive method needs it
}

// Reach is how far a forecast looks ahead and back.
type Reach struct {
	Ahead        float64 // H in ms
	AheadNeeded  float64 // H without Max
	Window       time.Duration
	WindowNeeded time.Duration // the shortest from which a trend is carried to the horizon; 0 if any is
}

// Reach returns H = clamp(η·T_I, H_min, H_max) + D and the window for it, for a startup time T_I (paper, section 7.9; D
// is ours: how much later than the data the actuator may read the forecast).
func (h *Horizon) Reach(startupTime time.Duration) Reach {
	needed := max(h.Multiplier*series.Millis(startupTime), series.Millis(h.Min))
	r := Reach{
		Ahead:       min(needed, series.Millis(h.Max)) + series.Millis(h.ReactionDelay),
		AheadNeeded: needed + series.Millis(h.ReactionDelay),
		Window:      h.Window,
	}
	r.WindowNeeded = h.WindowNeeded(r.Ahead)
	if h.Adaptive && h.Follows {
		follows := min(series.Duration(math.Ceil(windowPerHorizon*r.Ahead)), series.MaxTicks*h.Interval)
		r.Window = max(r.Window, follows)
	}
	return r
}

// WindowNeeded returns the shortest window from which a trend is carried some time ahead (ms); 0 with Holt, whose
// trends are carried on for any time.
func (h *Horizon) WindowNeeded(ahead float64) time.Duration {
	if !h.Adaptive {
		return 0
	}
	return series.Duration(math.Ceil(ahead / line.CarriedOn))
}

// Limit returns what keeps the forecast short of the startup time, if anything.
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
