//go:build oldest

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
)

// bind adds a pod to a node. A snapshot of Kubernetes 1.35 cannot be changed, so a new one is taken.
func (s *scheduler) bind(pod *corev1.Pod, node string) *corev1.Pod {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	s.pods = append(s.pods, bound)
	s.look()
	return bound
}

// forget takes the pods away that were bound after the first n.
func (s *scheduler) forget(n int) {
	s.pods = s.pods[:n]
	s.look()
}
