//go:build !oldest

package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// bind adds a pod to a node of the snapshot.
func (s *scheduler) bind(pod *corev1.Pod, node string) *corev1.Pod {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	info, err := framework.NewPodInfo(bound)
	if err == nil {
		err = s.snapshot.Snapshot.AssumePod(info)
	}
	if err != nil {
		panic(err)
	}
	s.pods = append(s.pods, bound)
	return bound
}

// forget takes the pods away that were bound after the first n.
func (s *scheduler) forget(n int) {
	for _, p := range slices.Backward(s.pods[n:]) {
		if err := s.snapshot.ForgetPod(klog.Background(), p); err != nil {
			panic(err)
		}
	}
	s.pods = s.pods[:n]
}

// InformerName returns nil: no metrics.
func (f *staticInformers) InformerName() *cache.InformerName { return nil }
