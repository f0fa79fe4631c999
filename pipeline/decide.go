package pipeline

import "math"

// Direction classifies the trend by its size beside the level (paper, section 8.2).
type Direction string

// The directions of a trend.
const (
	Rising  Direction = "Rising"
	Falling Direction = "Falling"
	Steady  Direction = "Steady"
)

// Action is what a decision does to the target count.
type Action string

// What a decision may do.
const (
	ScaleUp   Action = "ScaleUp"
	ScaleDown Action = "ScaleDown"
	Hold      Action = "Hold"
)

// Reason is the reason of a decision as one word, which logs, metrics and events share.
type Reason string

// The reasons there are.
const (
	TrendRising     Reason = "TrendRising"     // the load is rising: the count fits the prediction and is not lowered
	AboveThreshold  Reason = "AboveThreshold"  // the predicted load per instance is above the threshold
	Headroom        Reason = "Headroom"        // fewer instances would do, with the margin
	BelowMinimum    Reason = "BelowMinimum"    // the target is below the minimum
	AtMaximum       Reason = "AtMaximum"       // more would be needed than the maximum allows
	NoNeed          Reason = "NoNeed"          // the count fits the load
	ScaleUpPending  Reason = "ScaleUpPending"  // requested instances have not started yet
	StillOverloaded Reason = "StillOverloaded" // the prediction is falling below the threshold, the present is not yet
	CoolingDown     Reason = "CoolingDown"     // a cooldown has not passed
	PodsUnseen      Reason = "PodsUnseen"      // the count is not lowered while changes of the instances are not seen
	Activated       Reason = "Activated"       // there are no instances, and the predicted load is above the activation
	Idle            Reason = "Idle"            // no instance is needed: the predicted load is not above the activation
)

// Decision is the outcome of stage five.
type Decision struct {
	Direction Direction
	Desired   int // N*
	Action    Action
	Reason    Reason
}

// roundingSlack keeps rounding errors from turning 14.000000000001 instances into 15.
const roundingSlack = 1e-9

// decide turns the forecast into a target count (paper, sections 8.3 to 8.5).
func (p holt) decide(f Forecast, pending bool) Decision {
	d := Decision{Direction: p.direction(&f), Desired: f.Target, Reason: NoNeed}
	tau := p.Threshold
	switch {
	case p.rises(&f):
		d.Desired = clamp(p.scaleUpCount(&f), f.Target, p.highest(f.Target))
		d.Reason = p.scaleUpReason(d, &f)
	case f.LoadPredicted >= tau:
		// exactly at the threshold: nothing to gain either way
	case f.LoadNow >= tau:
		d.Reason = StillOverloaded
	case pending:
		d.Reason = ScaleUpPending
	default:
		n := count(math.Floor(p.Model.Required(f.Level, tau/(1+p.ScaleDownMargin))+roundingSlack) + 1)
		d.Desired = clamp(n, p.Min, f.Target)
		if d.Desired < f.Target {
			d.Reason = Headroom
		} else if d.Desired > f.Target {
			d.Reason = BelowMinimum
		}
	}
	d.Action = actionOf(d.Desired, f.Target)
	return d
}

// rises reports whether instances are counted for the horizon, and not for the present.
func (p *Params) rises(f *Forecast) bool {
	return p.direction(f) == Rising || f.LoadPredicted > p.Threshold
}

func (p *Params) direction(f *Forecast) Direction {
	if f.Level <= 0 {
		return Steady
	}
	gamma, limit := f.Trend/f.Level, math.Tan(p.TrendAngle*math.Pi/180)
	switch {
	case gamma > limit:
		return Rising
	case gamma < -limit:
		return Falling
	default:
		return Steady
	}
}

// scaleUpCount is ⌈N(A_ω, τ)⌉, less the last instance if the need for it is a sliver of it and nothing is overloaded yet.
func (p *Params) scaleUpCount(f *Forecast) int {
	n := math.Ceil(f.Required - roundingSlack)
	if f.LoadNow < p.Threshold && f.Required-(n-1) < p.Spillover {
		n--
	}
	return count(n)
}

// count converts a whole number of instances, limited to an int32 of the Kubernetes API.
func count(n float64) int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

func (p *Params) highest(target int) int {
	if p.MaxStep == 0 {
		return p.Max
	}
	return min(target+p.MaxStep, p.Max)
}

func (p *Params) scaleUpReason(d Decision, f *Forecast) Reason {
	switch {
	case f.LoadPredicted <= p.Threshold:
		return TrendRising
	case d.Desired > f.Target:
		return AboveThreshold
	case d.Desired >= p.Max && f.Required > float64(d.Desired)+roundingSlack:
		return AtMaximum
	default:
		return NoNeed
	}
}

// leastShare is the share of an instance that any load needs that is not idle. The doors serve no finer one but zero.
const leastShare = 1e-3

// idle returns whether no instance is needed. What noise adds to a forecast does not keep one alive.
// Straight is the load at the horizon without what was learned, which idles nothing.
func (p *Params) idle(f *Forecast, straight float64) bool {
	return p.Min == 0 && max(f.Level, f.Total, straight) <= p.Activation+roundingSlack*p.Threshold
}

// wake completes a decision where there may be no instances: there is one as soon as the load is above the activation, however
// small a share of an instance it needs, and none while it is not.
func (p *Params) wake(f *Forecast, d Decision, pending bool) Decision {
	switch {
	case p.Min > 0 || f.Idle && pending:
		return d
	case f.Idle:
		d.Desired, d.Reason = 0, Idle
	case f.Target == 0:
		d.Desired, d.Reason = max(1, d.Desired), Activated
	default:
		d.Desired = max(1, d.Desired)
	}
	d.Action = actionOf(d.Desired, f.Target)
	return d
}

// bound holds to the bounds of a run, which the actuator does not know, and which may just have begun: no step and no pending instance
// delays them.
func (p *Params) bound(f *Forecast) {
	f.Serve = max(p.Threshold*float64(p.Min), min(f.Serve, p.Threshold*float64(p.Max)))
	d := &f.Decision
	switch {
	case d.Desired < p.Min:
		d.Desired, d.Reason = p.Min, BelowMinimum
	case d.Desired > p.Max:
		d.Desired, d.Reason = p.Max, AtMaximum
	}
	d.Action = actionOf(d.Desired, f.Target)
}

// clamp holds n to [low, high]; where the bounds cross, low wins.
func clamp(n, low, high int) int { return max(low, min(n, high)) }

func actionOf(desired, target int) Action {
	switch {
	case desired > target:
		return ScaleUp
	case desired < target:
		return ScaleDown
	default:
		return Hold
	}
}
