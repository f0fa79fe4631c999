// Package world is what a pool of workers sees of the cluster: nodes with what is requested of them, pods that no node
// takes, and what keeps a node from being removed.
package world

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Cluster is what was seen of a cluster at one moment. It is immutable.
type Cluster struct {
	At         time.Time
	Nodes      []Node // by name
	Pending    []Pending
	DaemonSets []*appsv1.DaemonSet
}

// Node is a Node with the pods that are bound to it.
type Node struct {
	Object     *corev1.Node // read only
	Ready      bool         // its Ready condition is True, and it has been since ReadySince
	ReadySince time.Time
	Requested  corev1.ResourceList // CPU and memory that its pods request, and their number
	DaemonSets corev1.ResourceList // the part of DaemonSets in it
	Movable    int                 // pods that a drain would evict
	Blocked    string              // the first reason not to drain it, "" = none: a sentence without a full stop
}

// Pending is a pod that the scheduler found no node for (PodScheduled=False, reason Unschedulable).
type Pending struct {
	Pod   *corev1.Pod // read only
	Since time.Time   // it has been unschedulable
}
