package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Removing is the key of the taint, of effect NoSchedule, and of the annotation of a Node that a WorkerPool removes.
const Removing = "foresail.dev/removing"

// emptying are the keys of taints by which autoscalers announce that they empty a node and terminate its instance.
var emptying = []string{Removing, "karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"}

// Leaves reports whether a Node says of itself that it is being emptied and will be deleted: by any WorkerPool, by
// Karpenter or cluster-autoscaler, or because its deletion has been requested. A cordon alone does not say so.
func Leaves(n *corev1.Node) bool {
	if n.DeletionTimestamp != nil {
		return true
	}
	_, marked := n.Annotations[Removing]
	announces := func(t corev1.Taint) bool { return slices.Contains(emptying, t.Key) }
	return marked || slices.ContainsFunc(n.Spec.Taints, announces)
}

// stallsAfter is how long a leaving node may stay as full as it is until pods no longer wait for its end.
// cluster-autoscaler tries to evict a pod for two minutes and gives it ten to end before it terminates
// the instance, so a drain that works takes a pod away in 12 minutes. Karpenter without a
// terminationGracePeriod and kubectl drain without a timeout retry evictions for ever: a pod with
// karpenter.sh/do-not-disrupt, or a budget that allows none, can hold their nodes for days.
const stallsAfter = 15 * time.Minute

// Stalled reports whether a node that leaves, or is cordoned, has made no progress for so long that it
// may never be deleted. It is false for a node whose departure is not observed.
func (n *Node) Stalled(now time.Time) bool {
	return !n.EmptierAt.IsZero() && now.Sub(n.EmptierAt) >= stallsAfter
}

// Departures are what an observer remembers of nodes that leave or are cordoned, by name.
type Departures map[string]departure

type departure struct {
	emptierAt time.Time // see [Node.EmptierAt]
	pods      int       // the fewest that it has had since
}

// Departing returns the cluster with [Node.EmptierAt], and the departures to go on with the next time.
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
