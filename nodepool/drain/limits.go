package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Limits limit a drain.
type Limits struct {
	Force bool          // delete pods instead of evicting them, including those that block a drain
	Grace time.Duration // caps the grace period of pods, in whole seconds; 0 = their own
	// Ends is when the last pod must have ended; zero = never. A remaining pod is deleted earlier than that by its own
	// grace period. It corresponds to Karpenter's termination grace period of a node.
	Ends time.Time
	// EndsAll has pods that block a drain deleted in the same way.
	EndsAll bool
}

// deletes reports whether a pod is deleted, regardless of PodDisruptionBudgets, rather than evicted. A pod that is
// being deleted is deleted again if it would end too late.
func (l Limits) deletes(pod *corev1.Pod, class cluster.Class, now time.Time) bool {
	switch {
	case l.Force:
		return true
	case l.Ends.IsZero(), class == cluster.Blocking && !l.EndsAll:
		return false
	case pod.DeletionTimestamp != nil:
		return pod.DeletionTimestamp.After(l.Ends)
	}
	return !now.Add(ownGrace(pod)).Before(l.Ends)
}

// skips reports whether a pod that blocks a drain ends with the node: if it were deleted it would be created again
// there.
func (l Limits) skips(pod *corev1.Pod, class cluster.Class, now time.Time) bool {
	return class == cluster.Blocking && cluster.ToleratesRemoval(pod) && l.deletes(pod, class, now)
}

// grace returns the cap of the grace period of a pod that is deleted now; 0 = its own. It is at least a second, as a
// pod with a grace period of 0 is deleted from the API while its containers run.
func (l Limits) grace(now time.Time) time.Duration {
	if l.Ends.IsZero() {
		return l.Grace
	}
	return max(time.Second, l.Ends.Sub(now))
}

// ownGrace returns the grace period that a pod requests.
func ownGrace(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}
