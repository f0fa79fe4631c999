package cluster

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// gangOf takes the place of the function in nodepool/cluster: Kubernetes 1.35 has no spec.schedulingGroup.
func gangOf(p *corev1.Pod) string {
	name := cmp.Or(p.Labels["scheduling.x-k8s.io/pod-group"], p.Annotations["scheduling.k8s.io/group-name"])
	if name == "" {
		return ""
	}
	return p.Namespace + "/" + name
}
