package report

import (
	"fmt"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// notified are the events that the webhook receives.
var notified = map[journal.EventReason]string{
	journal.EventScaleUpStarted:   "scaling up",
	journal.EventScaledUp:         "scaled up",
	journal.EventScaleUpFailed:    "a scale-up failed",
	journal.EventJoinFailed:       "a node did not join",
	journal.EventScaleDownStarted: "scaling down",
	journal.EventScaledDown:       "scaled down",
	journal.EventDrainFailed:      "a drain failed",
	journal.EventInterrupted:      "an instance is reclaimed",
	journal.EventRepairStarted:    "an unhealthy node is replaced",
	journal.EventRepairHeld:       "unhealthy nodes are not replaced",
	journal.EventBroken:           "a worker is broken",
	journal.EventUnlisted:         "an instance is not listed",
	journal.EventVanished:         "an instance disappeared",
	journal.EventOrphan:           "an orphan was found",
	journal.EventDeleted:          "deleted",
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
