package observe

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/state"
)

// undoneRemovals are the controllers whose pods needed a new node after a removal to save money had evicted some, and
// until when no node with such pods is removed for that.
type undoneRemovals map[types.UID]time.Time

func undoneOf(r state.Record, now time.Time) undoneRemovals {
	out := undoneRemovals{}
	for _, u := range r.Undone {
		if u.Until.After(now) {
			out[types.UID(u.Owner)] = u.Until
		}
	}
	return out
}

// why returns why the removal of a node would save nothing, "" if it may.
func (u undoneRemovals) why(n *cluster.Node) string {
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
	return fmt.Sprintf("a new node was launched for pods like some of node %s when they were evicted last: "+
		"that is tried again after %s", n.Object.Name, last.UTC().Format(time.RFC3339))
}
