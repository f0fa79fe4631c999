package report

import (
	"strings"

	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// decided reports whether the numbers of the decision are valid: the journal and the workers could be read.
func decided(cycle nodepool.CycleReport) bool {
	reason := cycle.Decision.Reason
	return reason != "" && reason != nodepool.NotDecided && reason != plan.WorkersUnknown
}

// observed reports whether the cycle made an observation, which needs a configuration.
func observed(cycle nodepool.CycleReport) bool { return !cycle.Snapshot.Now.IsZero() }

// workersKnown reports whether the workers are known.
func workersKnown(cycle nodepool.CycleReport) bool {
	return observed(cycle) && cycle.Snapshot.WorkersErr == ""
}

// counts returns how many workers count, and how many of these are Ready.
func counts(list []plan.Instance) (all, ready int) {
	for w := range plan.Workers(list) {
		if !w.Counts() {
			continue
		}
		all++
		if w.Ready() {
			ready++
		}
	}
	return all, ready
}

// clip removes line breaks from a message, and shortens it to the limit of an Event, which is below that of a
// condition.
func clip(s string) string {
	const limit, more = 1024, "…" // bytes
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit-len(more)], "") + more
	}
	return s
}
