package scheduling

import (
	"maps"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// taintUninitialized is on a node until the cloud controller has set its labels.
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// AwaitsCloud reports whether the cloud controller has yet to set the labels of a node.
func AwaitsCloud(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized })
}

// readinessTaints is the prefix of the taints that the Node Readiness Controller removes once a node is set up.
const readinessTaints = "readiness.k8s.io/"

// Initialized reports whether a node has none of the taints that are removed while it joins.
func Initialized(n *corev1.Node, t Template) bool {
	return !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return passing(&taint, t.StartupTaints)
	})
}

// passing reports whether a taint is removed from a node while it joins: a taint of Kubernetes
// itself or a startup taint.
func passing(t *corev1.Taint, startup []corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, taintUninitialized:
		return true
	}
	return strings.HasPrefix(t.Key, readinessTaints) ||
		slices.ContainsFunc(startup, func(s corev1.Taint) bool { return s.MatchTaint(t) })
}

// awaited returns the labels of the template that a node does not have yet.
func awaited(n *corev1.Node, template map[string]string) map[string]string {
	var out map[string]string
	for key, value := range template {
		if n.Labels[key] != value {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// labelsOf returns the labels of a node, including those that the cloud controller will set.
func labelsOf(s *shape, launched fleet.Placement, n *corev1.Node) map[string]string {
	labels := maps.Clone(s.node.Labels)
	delete(labels, corev1.LabelHostname)
	if launched.Zone != "" {
		labels[corev1.LabelTopologyZone] = launched.Zone
	}
	maps.Copy(labels, n.Labels)
	return labels
}

// lackingIn returns the amounts, by dimension, of resources that the offer of a node has and the
// node has nothing of yet.
func lackingIn(n *cluster.Node, s *shape, d dimensions) map[int]int64 {
	out := map[int]int64{}
	if s == nil {
		return out
	}
	for name, i := range d {
		has, promised := n.Object.Status.Allocatable[name], s.offer.Allocatable[name]
		if has.IsZero() && !promised.IsZero() {
			out[i] = amount(i, promised)
		}
	}
	return out
}
