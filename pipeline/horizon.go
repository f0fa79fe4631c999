package pipeline

import (
	"time"

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

// windowPerHorizon is the length of a window that follows the horizon, in horizons: a line needs 1/line.CarriedOn of one, and
// the peak before it has to be seen too.
const windowPerHorizon = 1.5

// reach is how far a forecast looks ahead and back.
type reach struct {
	horizon       float64 // H in ms
	horizonNeeded float64 // H without HorizonMax
	window        time.Duration
	windowNeeded  time.Duration // the shortest from which a trend is carried to the horizon
}

// reach applies H = clamp(η·T_I, H_min, H_max) + D (paper, section 7.9; D is ours: how much later than the data the
// actuator may read the forecast).
func (p *Params) reach(startupTime time.Duration) reach {
	if startupTime <= 0 {
		startupTime = p.StartupTime
	}
	needed := max(p.HorizonMultiplier*series.Millis(startupTime), series.Millis(p.HorizonMin))
	r := reach{
		horizon:       min(needed, series.Millis(p.HorizonMax)) + series.Millis(p.ReactionDelay),
		horizonNeeded: needed + series.Millis(p.ReactionDelay),
		window:        p.Window,
	}
	return p.method().lookBack(r)
}

func (r *reach) limit() HorizonLimit {
	switch {
	case r.horizon < r.horizonNeeded:
		return LimitedByMax
	case r.window < r.windowNeeded:
		return LimitedByWindow
	default:
		return Unlimited
	}
}

// WindowFor returns how far back a forecast looks when instances take startupTime to start; 0 means Params.StartupTime.
// Samples from before this window do not count, except the newest of them.
func (p *Params) WindowFor(startupTime time.Duration) time.Duration {
	return p.reach(startupTime).window
}

// HorizonFor returns how far ahead a forecast looks when instances take startupTime to start; 0 means Params.StartupTime.
func (p *Params) HorizonFor(startupTime time.Duration) time.Duration {
	return series.Duration(p.reach(startupTime).horizon)
}
