package extender

import (
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// record is what is kept of a pod that has not ended. All strings are shared: there may be 150,000 of them.
type record struct {
	node     unique.Handle[string] // that it is bound to; the zero handle: to none
	requests use
	estimate use   // of one that is bound since less than ledgerLife; the ledger alone needs it
	bound    int64 // when it was bound, in ns since 1970
	ready    int64 // since when it is Ready, in ns since 1970; 0: it is not
	belongs  bool  // see there
}

func (r record) isBound() bool { return r.node != unique.Handle[string]{} }

// readyAt is the zero time for a pod that is not Ready.
func (r record) readyAt() time.Time {
	if r.ready == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.ready)
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
	r := record{node: unique.Make(p.Spec.NodeName), requests: requestsOf(p), bound: bound.UnixNano(), ready: readyAt(p), belongs: belongs(p)}
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

func readyAt(p *corev1.Pod) int64 {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.UnixNano()
		}
	}
	return 0
}
