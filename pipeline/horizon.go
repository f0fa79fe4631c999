package pipeline

import "time"

// HorizonLimit names the setting that keeps a forecast from reaching as far ahead as instances take to start.
type HorizonLimit string

// The limits of a horizon.
const (
	Unlimited       HorizonLimit = ""
	LimitedByMax    HorizonLimit = "LimitedByMax"    // HorizonMax is less than the startup time requires
	LimitedByWindow HorizonLimit = "LimitedByWindow" // the window is too short to carry a trend to the horizon
)

// windowPerHorizon is the length of a window that follows the horizon, in horizons: a line needs 1/carriedOn of one, and
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
	needed := max(p.HorizonMultiplier*millis(startupTime), millis(p.HorizonMin))
	r := reach{
		horizon:       min(needed, millis(p.HorizonMax)) + millis(p.ReactionDelay),
		horizonNeeded: needed + millis(p.ReactionDelay),
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
	return duration(p.reach(startupTime).horizon)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// duration is the reverse of millis, held to what a Duration can hold, some 290 years.
func duration(ms float64) time.Duration {
	const most = 1<<63 - 1<<10 // the largest float64 below 2⁶³
	return time.Duration(min(ms*float64(time.Millisecond), most))
}
