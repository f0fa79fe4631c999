package tell

import (
	"fmt"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// worthy are the events that people are told of by webhook: up, down, a drain that failed, launches that did not join, and
// what the cloud takes.
var worthy = map[nodepool.EventReason]string{
	nodepool.EventScaleUpStarted:   "scaling up",
	nodepool.EventScaledUp:         "scaled up",
	nodepool.EventScaleUpFailed:    "a scale-up failed",
	nodepool.EventJoinFailed:       "a node did not join",
	nodepool.EventScaleDownStarted: "scaling down",
	nodepool.EventScaledDown:       "scaled down",
	nodepool.EventDrainFailed:      "a drain failed",
	nodepool.EventInterrupted:      "an instance is taken back",
	nodepool.EventBroken:           "a worker is broken",
	nodepool.EventVanished:         "an instance has gone",
	nodepool.EventOrphan:           "an orphan was found",
}

// sentences returns what people are told of a tick.
func sentences(told nodepool.Told, news bool) []string {
	var out []string
	if d := told.Decision; news && d.Reason == plan.AtMaximum {
		out = append(out, fmt.Sprintf("Worker pool %s is at its maximum: %s", told.Pool, d.Message))
	}
	for _, e := range told.Events {
		if what, ok := worthy[e.Reason]; ok {
			out = append(out, fmt.Sprintf("Worker pool %s, %s: %s", told.Pool, what, e.Message))
		}
	}
	return out
}
