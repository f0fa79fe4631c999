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
	StillOverloaded Reason = "StillOverloaded" // the prediction is below the threshold, the present is not yet
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

// Largest returns the index of the decision that several metrics of one target come to: the largest desired count,
// the first of equals; -1 without decisions (paper, section 1.4).
func Largest(decisions []Decision) int {
	best, desired := -1, math.MinInt
	for i, d := range decisions {
		if d.Desired > desired {
			best, desired = i, d.Desired
		}
	}
	return best
}

// to completes a decision for a target count.
func (d Decision) to(desired, target int) Decision {
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
