package scheduling

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
)

// joins are the distinct times, in order, at which nodes joined that the scheduler extender may
// refuse because of their load: those with pods of more than DaemonSets. It never refuses an empty
// node, because a new one would be no better.
type joins []time.Time

// refusal is the number of joins before a pod became unschedulable, if nodes refuse it because of
// their load: it finds no room on the nodes of these joins. 0 refuses none.
type refusal int

func joinsOf(nodes []cluster.Node) joins {
	var out joins
	for i := range nodes {
		if nodes[i].Ready && nodes[i].Movable > 0 {
			out = append(out, nodes[i].Joined)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.CompactFunc(out, time.Time.Equal)
}

// refusalOf returns which nodes refuse a pod: those that had joined when it became unschedulable. A
// node that joined in the same second is not one of them, because times have no fractions.
func (j joins) refusalOf(p *cluster.Pending) refusal {
	if !p.Filtered {
		return 0
	}
	before, _ := slices.BinarySearchFunc(j, p.Since, time.Time.Compare)
	return refusal(before)
}

// rankOf returns the number of a node's join, starting at 1; 0 if it refuses no pod.
func (j joins) rankOf(n *cluster.Node) refusal {
	if n.Movable == 0 {
		return 0
	}
	at, _ := slices.BinarySearchFunc(j, n.Joined, time.Time.Compare)
	return refusal(at + 1)
}

// covers reports whether a node of a rank refuses the pod.
func (r refusal) covers(rank refusal) bool { return rank > 0 && rank <= r }
