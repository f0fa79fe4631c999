package extender

import (
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// record is the cached part of a pod that has not ended. Its strings are shared: there may be 150,000 pods.
type record struct {
	node     unique.Handle[string] // zero: not bound
	requests use
	estimate use   // only of pods that were bound within assumedLife
	bound    int64 // when, in ns since 1970
	started  int64 // when the last container started, in ns since 1970; 0: not yet
	priority int32
	ofNode   bool // see there
	exempt   bool // see isExempt
}

func (r record) isBound() bool { return r.node != unique.Handle[string]{} }

// startedAt returns the zero time before the pod has started.
func (r record) startedAt() time.Time {
	if r.started == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.started)
}

// recordOf returns false for a pod that has ended: it uses nothing of its node.
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
		priority: schedulingv1.PodPriority(p), ofNode: ofNode(p), exempt: isExempt(p),
	}
	if now.Sub(bound) < assumedLife {
		r.estimate = estimateOf(p, w)
	}
	return r, true
}

// boundAt returns when a pod was bound according to its condition if that can be right, else now. Static pods
// have no such condition.
func boundAt(p *corev1.Pod, now time.Time) time.Time {
	for _, c := range p.Status.Conditions {
		at := c.LastTransitionTime.Time
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue &&
			!at.After(now) && !at.Before(p.CreationTimestamp.Time) {
			return at
		}
	}
	return now
}

// startedAt returns when the last container started, in ns since 1970, and 0 until all have started. Containers
// that ended since did start.
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
