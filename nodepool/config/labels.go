package config

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// NodeLabels returns the labels that a pool sets on its nodes when they join: its own, and those of
// the template except labels that Kubernetes and the cloud set.
func NodeLabels(pool string, template map[string]string) map[string]string {
	out := maps.Clone(template)
	maps.DeleteFunc(out, func(key, _ string) bool { return Factual(key) })
	if out == nil {
		out = map[string]string{}
	}
	out[cluster.LabelPool] = pool
	return out
}

// Factual reports whether a label describes where or what a node is, so that no other component may
// set it.
func Factual(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
		return true
	}
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "beta.kubernetes.io":
		return true
	}
	return false
}
