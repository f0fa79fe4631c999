package cluster

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// gangOf returns the group of pods that a pod is scheduled with, including its namespace: that of
// Kubernetes, of the coscheduling plugin, or of Volcano.
func gangOf(p *corev1.Pod) string {
	name := cmp.Or(p.Labels["scheduling.x-k8s.io/pod-group"], p.Annotations["scheduling.k8s.io/group-name"])
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		name = *g.PodGroupName
	}
	if name == "" {
		return ""
	}
	return p.Namespace + "/" + name
}
