package nodepool

import (
	"time"

	"github.com/foresail/foresail/nodepool/plan"
)

// hasTimeToJoin tells whether the time is not over yet in which an instance becomes a node that takes pods.
func (t *tick) hasTimeToJoin(launched time.Time) bool {
	return t.now.Sub(launched) <= t.spec.Join.Timeout
}

// joining returns the workers that are Ready within their time to join, by the names of their nodes.
func (t *tick) joining(workers []plan.Worker) map[string]plan.Placement {
	out := map[string]plan.Placement{}
	for _, w := range workers {
		if w.Counts() && w.Ready && t.hasTimeToJoin(w.Launched) {
			out[w.Node] = w.Placement
		}
	}
	return out
}
