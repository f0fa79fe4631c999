package scheduling

import (
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
)

// joins are the moments, in order and each once, at which the nodes joined that pods may be refused because of their load:
// those that run pods of others than DaemonSets. The scheduler extender never refuses an empty node for that, and so no new
// one would do better.
type joins []time.Time

// refusal is how many of the joins lie before a pod became unschedulable, if it is refused nodes because of their load: it
// finds no room on those that joined then. 0 refuses none.
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

// refusalOf tells which nodes a pod is refused: those that had joined when it became unschedulable. A node that joined in
// the same second had not, as far as can be told.
func (j joins) refusalOf(p *cluster.Pending) refusal {
	if !p.Filtered {
		return 0
	}
	before, _ := slices.BinarySearchFunc(j, p.Since, time.Time.Compare)
	return refusal(before)
}

// rankOf is the number of a node's join, from 1 on; 0 if it is refused to nobody.
func (j joins) rankOf(n *cluster.Node) refusal {
	if n.Movable == 0 {
		return 0
	}
	at, _ := slices.BinarySearchFunc(j, n.Joined, time.Time.Compare)
	return refusal(at + 1)
}

// covers tells whether it is one of the nodes that are refused.
func (r refusal) covers(rank refusal) bool { return rank > 0 && rank <= r }
