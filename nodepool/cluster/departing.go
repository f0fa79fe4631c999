package cluster

import (
	"slices"
	"time"
)

// stallsAfter is how long a leaving node may keep all its pods before pods stop waiting for its
// end. cluster-autoscaler tries to evict a pod for two minutes and gives it ten to end before it
// terminates the instance, so a working drain removes a pod within 12 minutes. Karpenter without a
// terminationGracePeriod and kubectl drain without a timeout retry evictions forever: a pod with
// karpenter.sh/do-not-disrupt, or a budget that allows no disruption, can hold their nodes for
// days.
const stallsAfter = 15 * time.Minute

// Stalled reports whether a leaving or cordoned node has made no progress for so long that it may
// never be deleted. It is false for a node whose departure is not observed.
func (n *Node) Stalled(now time.Time) bool {
	return !n.EmptierAt.IsZero() && now.Sub(n.EmptierAt) >= stallsAfter
}

// Departures is the memory of an observer about leaving or cordoned nodes, by name.
type Departures map[string]departure

type departure struct {
	emptierAt time.Time // see [Node.EmptierAt]
	pods      int       // the fewest that it has had since
}

// Departing returns the cluster with [Node.EmptierAt], and the departures to pass to the next call.
func (c *Cluster) Departing(before Departures) (*Cluster, Departures) {
	out, now := *c, Departures{}
	out.Nodes = slices.Clone(c.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if !n.Leaving && !n.Object.Spec.Unschedulable {
			continue
		}
		d, seen := before[n.Object.Name]
		if left := n.toEvict(); !seen || left < d.pods {
			d = departure{c.At, left}
		}
		n.EmptierAt, now[n.Object.Name] = d.emptierAt, d
	}
	return &out, now
}

// toEvict returns the number of pods that a drain removes from a node.
func (n *Node) toEvict() (pods int) {
	for _, p := range n.Pods {
		if !p.Stays() && !p.EndsWithNode() {
			pods++
		}
	}
	return pods
}
