// Package packing tells how many new nodes of a pool the pods need that no node takes.
package packing

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/world"
)

// Template is what a new node of the pool comes up with, beside what its offer says.
type Template struct {
	Labels map[string]string
	Taints []corev1.Taint
}

// Input is what a packing is made from.
type Input struct {
	Pods        []world.Pending
	Nodes       []world.Node // all nodes that take pods, for affinity and spread
	Offers      []provider.Offer
	OnTheWay    []plan.Placement // launched nodes that have not joined yet: they take pods first
	Template    Template
	DaemonSets  []*appsv1.DaemonSet
	PodsPerNode int // for pods without requests
}

// Result is what pods need.
type Result struct {
	Nodes    int // new ones, beyond those on their way
	Helped   int // pods that a node of the pool could run
	Unhelped []plan.Unhelped
	// CPU, Memory and Slots are the requests of the helped pods as shares of what one node of the pool can allocate, after
	// its DaemonSets: the external demand of forecasts, in node equivalents.
	CPU, Memory, Slots float64
}
