package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Removing is the key of the taint (effect NoSchedule) and of the annotation of Nodes that a
// WorkerPool removes.
const Removing = "foresail.dev/removing"

// emptying are the keys of taints by which autoscalers announce that they drain a node and
// terminate its instance.
var emptying = []string{Removing, "karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"}

// Leaves reports whether a Node carries a sign that it is being drained and will be deleted: from
// any WorkerPool, from Karpenter or cluster-autoscaler, or because its deletion has been requested.
// A cordon alone is no such sign.
func Leaves(n *corev1.Node) bool {
	if n.DeletionTimestamp != nil {
		return true
	}
	_, marked := n.Annotations[Removing]
	announces := func(t corev1.Taint) bool { return slices.Contains(emptying, t.Key) }
	return marked || slices.ContainsFunc(n.Spec.Taints, announces)
}
