package signal

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// dimension is one of the resources of a node that pods share.
type dimension int

const (
	cpu dimension = iota
	memory
	slots
	dimensions
)

var resources = [dimensions]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

func (d dimension) String() string { return [dimensions]string{"CPU", "memory", "pod slots"}[d] }

// loads is a number of nodes for each dimension: 1 is all that pods can use of one node.
type loads [dimensions]float64

func (l *loads) add(m loads) {
	for d := range l {
		l[d] += m[d]
	}
}

func (l loads) largest() float64 { return max(l[cpu], l[memory], l[slots]) }

// share returns the share of a node that its pods request, without its DaemonSets on both sides of the division: a pod
// then counts the same before and after it is bound, and a node with only DaemonSet pods counts 0. A share is 1 where
// DaemonSets leave nothing, and 0 for resources that the node does not report.
func share(n *cluster.Node) (l loads) {
	for d, name := range resources {
		allocatable := quantity(n.Object.Status.Allocatable, name)
		if allocatable <= 0 {
			continue
		}
		taken := quantity(n.DaemonSets, name)
		if free := allocatable - taken; free > 0 {
			l[d] = max(0, quantity(n.Requested, name)-taken) / free
		} else {
			l[d] = 1
		}
	}
	return l
}

func quantity(list corev1.ResourceList, name corev1.ResourceName) float64 {
	q, ok := list[name]
	if !ok {
		return 0
	}
	return q.AsApproximateFloat64()
}
