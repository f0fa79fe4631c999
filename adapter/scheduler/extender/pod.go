package extender

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// systemCritical is the lowest priority of system-critical pods. Users cannot give it to their own PriorityClasses.
const systemCritical int32 = 2_000_000_000

// podRequest is the pod that the scheduler asks about.
type podRequest struct {
	object    *corev1.Pod
	key       types.NamespacedName
	uid       types.UID
	created   time.Time
	exempt    bool   // it passes on every node
	nominated string // status.nominatedNodeName; "" = none
	requests  use
	estimate  use // what it is expected to use
	scheduled use // requests, or the estimate where there are none
}

func podRequestOf(p *corev1.Pod, w Workloads) podRequest {
	s := podRequest{
		object: p, key: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, uid: p.UID,
		created: p.CreationTimestamp.Time,
		exempt:  isExempt(p), nominated: p.Status.NominatedNodeName, requests: requestsOf(p),
		estimate: estimateOf(p, w),
	}
	s.scheduled = s.requests
	if s.scheduled.cpu <= 0 {
		s.scheduled.cpu = s.estimate.cpu
	}
	if s.scheduled.memory <= 0 {
		s.scheduled.memory = s.estimate.memory
	}
	return s
}

// podSummary is the cached part of a podRequest.
type podSummary struct {
	key                 types.NamespacedName
	uid                 types.UID
	exempt              bool
	requests            use
	estimate, scheduled use
}

func (s *podRequest) summary() podSummary {
	return podSummary{s.key, s.uid, s.exempt, s.requests, s.estimate, s.scheduled}
}

// isExempt reports whether a pod passes on every node: pods of DaemonSets are meant for one node, and the
// cluster needs critical pods.
func isExempt(p *corev1.Pod) bool {
	if schedulingv1.PodPriority(p) >= systemCritical {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// ofNode reports whether a pod belongs to its node: a pod of a DaemonSet, or a static pod.
func ofNode(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}
