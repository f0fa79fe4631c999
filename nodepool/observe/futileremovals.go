package observe

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/state"
)

// futileRemovals are the controllers whose pods needed a new node after a removal to save money had
// evicted some, with the time until which no node with such pods is removed for that reason.
type futileRemovals map[types.UID]time.Time

func futileRemovalsOf(r state.Record, now time.Time) futileRemovals {
	out := futileRemovals{}
	for _, u := range r.FutileRemovals {
		if u.Until.After(now) {
			out[types.UID(u.Owner)] = u.Until
		}
	}
	return out
}

// why returns why the removal of a node would save nothing, "" if it may save something.
func (u futileRemovals) why(n *cluster.Node) string {
	if len(u) == 0 {
		return ""
	}
	var last time.Time
	for _, p := range n.Pods {
		if until := u[p.Owner]; until.After(last) {
			last = until
		}
	}
	if last.IsZero() {
		return ""
	}
	return fmt.Sprintf("when pods like some of node %s were last evicted, a new node was launched for them: "+
		"the removal is tried again after %s", n.Object.Name, last.UTC().Format(time.RFC3339))
}
