package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// LabelPool is the label of a node with the name of its pool. Nodes get it when they join.
const LabelPool = "foresail.dev/pool"

// ControlPlane reports whether the node belongs to the control plane.
func (n *Node) ControlPlane() bool {
	_, control := n.Object.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Object.Labels["node-role.kubernetes.io/master"]
	return control || master
}

// Utilisation returns the share of the allocatable CPU or memory that pods request, whichever is
// larger.
func (n *Node) Utilisation() (share float64, known bool) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		can, asked := n.Object.Status.Allocatable[name], n.Requested[name]
		if can.IsZero() {
			return 0, false
		}
		share = max(share, asked.AsApproximateFloat64()/can.AsApproximateFloat64())
	}
	return share, true
}

// Emptied returns the node with only those pods that belong to it.
func (n *Node) Emptied() Node {
	out := *n
	l := loadOf(slices.DeleteFunc(slices.Clone(n.Pods), func(p *Pod) bool { return !p.Stays() }))
	out.Pods, out.Requested, out.Movable = l.pods, l.requested, l.movable
	out.Attached, out.Nominated = nil, nil
	return out
}
