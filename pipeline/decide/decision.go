package decide

import "math"

// Direction classifies the trend by its size in relation to the level (paper, section 8.2).
type Direction string

// The directions of a trend.
const (
	Rising  Direction = "Rising"
	Falling Direction = "Falling"
	Steady  Direction = "Steady"
)

// Action is the change of the target that a decision makes.
type Action string

// The actions of a decision.
const (
	ScaleUp   Action = "ScaleUp"
	ScaleDown Action = "ScaleDown"
	Hold      Action = "Hold"
)

// Reason explains a decision in one word, which logs, metrics and events share.
type Reason string

// The reasons of decisions.
const (
	TrendRising     Reason = "TrendRising"     // the load is rising: the count fits the forecast and is not lowered
	AboveThreshold  Reason = "AboveThreshold"  // the predicted load per instance is above the threshold
	Headroom        Reason = "Headroom"        // fewer instances are enough, including the margin
	BelowMinimum    Reason = "BelowMinimum"    // the target is below the minimum
	AtMaximum       Reason = "AtMaximum"       // the load needs more instances than the maximum allows
	NoNeed          Reason = "NoNeed"          // the count fits the load
	ScaleUpPending  Reason = "ScaleUpPending"  // requested instances have not started yet
	StillOverloaded Reason = "StillOverloaded" // the predicted load is below the threshold, but the present load is not
	CoolingDown     Reason = "CoolingDown"     // a cooldown has not passed
	PodsUnseen      Reason = "PodsUnseen"      // the count is not lowered, because changes of the instances are not seen
	Activated       Reason = "Activated"       // there are no instances, and the predicted load is above the activation
	Idle            Reason = "Idle"            // no instance is needed: the predicted load is not above the activation
)

// Decision is the result of stage five.
type Decision struct {
	Direction Direction
	Desired   int // N*
	Action    Action
	Reason    Reason
}

// Largest returns the index of the decision that applies to a target with several metrics: the one with the
// largest count, the first of equal ones; -1 for an empty list (paper, section 1.4).
func Largest(decisions []Decision) int {
	best, desired := -1, math.MinInt
	for i, d := range decisions {
		if d.Desired > desired {
			best, desired = i, d.Desired
		}
	}
	return best
}

// withDesired returns the decision with a desired count, and the action that leads there from the target.
func (d Decision) withDesired(desired, target int) Decision {
	d.Desired = desired
	switch {
	case desired > target:
		d.Action = ScaleUp
	case desired < target:
		d.Action = ScaleDown
	default:
		d.Action = Hold
	}
	return d
}
