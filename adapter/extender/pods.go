package extender

import (
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// record is what is kept of a pod that has not ended. All strings are shared: there may be 150,000 of them.
type record struct {
	node     unique.Handle[string] // that it is bound to; the zero handle: to none
	requests use
	estimate use   // of one that is bound since less than ledgerLife; the ledger alone needs it
	bound    int64 // when it was bound, in ns since 1970
	started  int64 // when the last of its containers started, in ns since 1970; 0: not yet
	priority int32
	belongs  bool // see there
	exempt   bool // see isExempt
}

func (r record) isBound() bool { return r.node != unique.Handle[string]{} }

// startedAt is the zero time for a pod that has not started.
func (r record) startedAt() time.Time {
	if r.started == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.started)
}

// recordOf tells nothing of a pod that has ended: it holds nothing of its node any more.
func recordOf(p *corev1.Pod, w Workloads, now time.Time) (record, bool) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return record{}, false
	}
	if p.Spec.NodeName == "" {
		return record{}, true
	}
	bound := boundAt(p, now)
	r := record{
		node: unique.Make(p.Spec.NodeName), requests: requestsOf(p), bound: bound.UnixNano(), started: startedAt(p),
		priority: schedulingv1.PodPriority(p), belongs: belongs(p), exempt: isExempt(p),
	}
	if now.Sub(bound) < ledgerLife {
		r.estimate = estimateOf(p, w)
	}
	return r, true
}

// belongs tells whether a pod is there because its node is: one of a DaemonSet, or one that the kubelet made itself.
func belongs(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// boundAt tells when a pod was bound: what the API says where that can be, else now. A pod that was made for its node
// was never scheduled.
func boundAt(p *corev1.Pod, now time.Time) time.Time {
	for _, c := range p.Status.Conditions {
		at := c.LastTransitionTime.Time
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !at.After(now) && !at.Before(p.CreationTimestamp.Time) {
			return at
		}
	}
	return now
}

// startedAt tells when the last of the containers of a pod started, 0 while one has not. A container that has ended since
// did start, and one that crashes again and again may well have used what it will.
func startedAt(p *corev1.Pod) int64 {
	last := int64(0)
	for i := range p.Status.ContainerStatuses {
		at := containerStart(&p.Status.ContainerStatuses[i])
		if at.IsZero() {
			return 0
		}
		last = max(last, at.UnixNano())
	}
	return last
}

func containerStart(c *corev1.ContainerStatus) metav1.Time {
	switch {
	case c.State.Running != nil:
		return c.State.Running.StartedAt
	case c.State.Terminated != nil:
		return c.State.Terminated.StartedAt
	case c.LastTerminationState.Terminated != nil:
		return c.LastTerminationState.Terminated.StartedAt
	}
	return metav1.Time{}
}
