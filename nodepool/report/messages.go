package report

import (
	"fmt"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// notified are the events that the webhook receives.
var notified = map[nodepool.EventReason]string{
	nodepool.EventScaleUpStarted:   "scaling up",
	nodepool.EventScaledUp:         "scaled up",
	nodepool.EventScaleUpFailed:    "a scale-up failed",
	nodepool.EventJoinFailed:       "a node did not join",
	nodepool.EventScaleDownStarted: "scaling down",
	nodepool.EventScaledDown:       "scaled down",
	nodepool.EventDrainFailed:      "a drain failed",
	nodepool.EventInterrupted:      "an instance is reclaimed",
	nodepool.EventRepairStarted:    "an unhealthy node is replaced",
	nodepool.EventRepairHeld:       "unhealthy nodes are not replaced",
	nodepool.EventBroken:           "a worker is broken",
	nodepool.EventUnlisted:         "an instance is not listed",
	nodepool.EventVanished:         "an instance has gone",
	nodepool.EventOrphan:           "an orphan was found",
	nodepool.EventDeleted:          "deleted",
}

// messagesOf returns the messages of a cycle for the webhook.
func messagesOf(cycle nodepool.CycleReport, changed bool) []string {
	var out []string
	if d := cycle.Decision; changed && d.Reason == plan.AtMaximum {
		out = append(out, fmt.Sprintf("Worker pool %s is at its maximum: %s", cycle.Pool, d.Message))
	}
	for _, e := range cycle.Events {
		if what, ok := notified[e.Reason]; ok {
			out = append(out, fmt.Sprintf("Worker pool %s, %s: %s", cycle.Pool, what, e.Message))
		}
	}
	return out
}
