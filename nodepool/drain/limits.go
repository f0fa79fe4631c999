package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Limits is how a drain may go.
type Limits struct {
	Force bool          // delete pods instead of evicting them, and those that block a drain too
	Grace time.Duration // the most that pods may take to end, in whole seconds; 0 = what they say
	// Ends is when the last pod shall have ended; zero = at no certain time. A pod that is left by then is deleted
	// as much earlier as its own grace period is long. Karpenter calls this time the termination grace period of a
	// node.
	Ends time.Time
	// EndsAll says that pods which block a drain are deleted like that as well.
	EndsAll bool
}

// deletes reports whether a pod is deleted, whatever PodDisruptionBudgets say, rather than evicted. A pod that is
// leaving is deleted once more if it would end too late.
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

// skips reports whether a pod that blocks a drain is left to end with the node: it would come back if it were deleted.
func (l Limits) skips(pod *corev1.Pod, class cluster.Class, now time.Time) bool {
	return class == cluster.Blocking && cluster.ToleratesRemoval(pod) && l.deletes(pod, class, now)
}

// grace returns the most that a pod which is deleted now may take to end; 0 = what it says. It is never less than a
// second: a pod that is deleted without grace is taken from the API while it may run.
func (l Limits) grace(now time.Time) time.Duration {
	if l.Ends.IsZero() {
		return l.Grace
	}
	return max(time.Second, l.Ends.Sub(now))
}

// ownGrace returns how long a pod asks for to end.
func ownGrace(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}
