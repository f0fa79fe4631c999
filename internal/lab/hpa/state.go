package hpa

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is what the controller finds when it looks.
type State struct {
	Now    int64
	Spec   int // spec.replicas of the target
	Status int // status.replicas of the target: pods that exist
	Pods   []Pod
}

// ready counts pods that are Running and Ready.
func (s *State) ready() int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase == corev1.PodRunning && p.Ready == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// Pod is what the controller looks at of a pod.
type Pod struct {
	Phase       corev1.PodPhase
	Terminating bool
	Started     int64                  // status.startTime; Unset while there is none
	Ready       corev1.ConditionStatus // of its Ready condition; "" while there is none
	Changed     int64                  // when the condition last changed
	Request     int64                  // of CPU, in milli-units; Unset if one of its containers has none
	Usage       *Usage                 // of CPU; nil while there is no metric
}

// Unset marks a time or an amount that a pod does not have.
const Unset int64 = -1 << 63

// Usage is a reading of the CPU that a pod uses.
type Usage struct {
	Value  int64 // milli-units
	T      int64 // the end of the window that it is the mean of
	Window time.Duration
}

// Flags are those of kube-controller-manager.
type Flags struct {
	Tolerance               float64       // --horizontal-pod-autoscaler-tolerance
	DownscaleStabilization  time.Duration // --horizontal-pod-autoscaler-downscale-stabilization
	CPUInitializationPeriod time.Duration // --horizontal-pod-autoscaler-cpu-initialization-period
	InitialReadinessDelay   time.Duration // --horizontal-pod-autoscaler-initial-readiness-delay
}

// DefaultFlags returns what the flags are unless they are given.
func DefaultFlags() Flags {
	return Flags{
		Tolerance: 0.1, DownscaleStabilization: 5 * time.Minute,
		CPUInitializationPeriod: 5 * time.Minute, InitialReadinessDelay: 30 * time.Second,
	}
}
