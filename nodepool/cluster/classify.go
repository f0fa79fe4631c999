package cluster

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// Class is how a drain treats a pod.
type Class string

// The classes.
const (
	Ignored   Class = "Ignored"   // it stays: it belongs to the node, or has ended
	Evictable Class = "Evictable" // it is evicted, or waited for if it is already terminating
	// Tolerant pods tolerate the taint of a drain, so a replacement could be scheduled onto the same
	// node. They are not evicted: they end with the node, and need another one.
	Tolerant Class = "Tolerant"
	Blocking Class = "Blocking" // it must neither be evicted nor lost: its node stays
)

// Annotations of pods and Nodes that prevent disruption.
const (
	SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict" // "false" blocks
	// KarpenterKeep blocks if it is "true", or for a duration such as "4h".
	KarpenterKeep     = "karpenter.sh/do-not-disrupt"
	Keep              = "foresail.dev/do-not-disrupt"                          // the same
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled" // "true" blocks; only on Nodes
)

// Priorities that Kubernetes calls critical.
const (
	systemPriority  = 2000000000 // lowest priority of the critical classes
	nodeCritical    = "system-node-critical"
	clusterCritical = "system-cluster-critical"
)

// Classify returns how a drain treats a pod, and why if the pod blocks it: a predicate without
// subject and full stop, such as "has critical priority". PodDisruptionBudgets are not considered,
// because they change from moment to moment.
//
// Mirror pods, pods of DaemonSets and pods that have ended are ignored before anything else is
// checked. A pod that is being deleted blocks nothing. Pods that block do so whatever they
// tolerate.
func Classify(pod *corev1.Pod, now time.Time) (Class, string) {
	class, why := classify(pod)
	if class == Evictable || class == Tolerant {
		if timed := keepOf(pod.Annotations, startOf(pod)).at(now); timed != "" {
			class, why = Blocking, timed
		}
	}
	if class == Blocking && pod.DeletionTimestamp != nil {
		return Evictable, ""
	}
	return class, why
}

// classify is Classify for a pod that is not being deleted, without annotations that block for a
// duration.
func classify(pod *corev1.Pod) (Class, string) {
	switch {
	case IsMirror(pod), IsDaemonSets(pod), Ended(pod):
		return Ignored, ""
	case critical(pod):
		return Blocking, "has critical priority"
	case pod.Namespace == metav1.NamespaceSystem:
		return Blocking, "is in kube-system and not of a DaemonSet"
	}
	if why := kept(pod.Annotations); why != "" {
		return Blocking, why
	}
	if metav1.GetControllerOf(pod) == nil {
		return Blocking, "has no controller that would bring it back"
	}
	if ToleratesRemoval(pod) {
		return Tolerant, ""
	}
	return Evictable, ""
}

// ToleratesRemoval reports whether a pod tolerates the taint of a Node that is being removed. A
// scheduler may put its replacement on the same Node again, so an eviction would not empty the
// Node.
func ToleratesRemoval(pod *corev1.Pod) bool {
	taint := corev1.Taint{Key: Removing, Effect: corev1.TaintEffectNoSchedule}
	return schedulingv1.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &taint, false)
}

// ClassifyNode returns why a Node must not be drained, whatever its pods are: a predicate as in
// [Classify], "" if it may be. A duration counts from the creation of the Node.
func ClassifyNode(node *corev1.Node, now time.Time) string {
	if node.Annotations[ScaleDownDisabled] == "true" {
		return annotatedWith(ScaleDownDisabled, "true")
	}
	return cmp.Or(kept(node.Annotations), keepOf(node.Annotations, node.CreationTimestamp.Time).at(now))
}

// IsMirror reports whether a pod mirrors a static pod, which the API cannot remove.
func IsMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// IsDaemonSets reports whether a pod belongs to a DaemonSet, which would recreate it at once.
func IsDaemonSets(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// Ended reports whether the containers of a pod have ended permanently, so that it uses nothing of
// its node.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func critical(pod *corev1.Pod) bool {
	class := pod.Spec.PriorityClassName
	return class == nodeCritical || class == clusterCritical ||
		pod.Spec.Priority != nil && *pod.Spec.Priority >= systemPriority
}

func kept(annotations map[string]string) string {
	for _, a := range []struct{ key, value string }{{SafeToEvict, "false"}, {KarpenterKeep, "true"}, {Keep, "true"}} {
		if annotations[a.key] == a.value {
			return annotatedWith(a.key, a.value)
		}
	}
	return ""
}

// keep is an annotation that blocks the disruption of a pod or a Node for a duration.
type keep struct {
	key, value string
	until      time.Time // zero: it has not started, and blocks until it has
}

// keepOf returns the annotation that blocks disruption for the longest time after the start, nil if
// there is none with a duration. As in Karpenter, a value that is neither "true" nor a positive
// duration blocks nothing.
func keepOf(annotations map[string]string, start time.Time) (longest *keep) {
	for _, key := range []string{KarpenterKeep, Keep} {
		value := annotations[key]
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			continue
		}
		k := &keep{key: key, value: value}
		if !start.IsZero() {
			k.until = start.Add(d)
		}
		if longest == nil || longest.until.Before(k.until) {
			longest = k
		}
	}
	return longest
}

// at returns why the annotation blocks a drain at a time, "" if it does not.
func (k *keep) at(now time.Time) string {
	switch {
	case k == nil:
		return ""
	case k.until.IsZero():
		return annotatedWith(k.key, k.value) + " and has not started"
	case !now.Before(k.until):
		return ""
	}
	return annotatedWith(k.key, k.value) + ", until " + k.until.UTC().Format(time.RFC3339)
}

// startOf returns the start time of a pod, zero if it has not started.
func startOf(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Time
}

func annotatedWith(key, value string) string { return fmt.Sprintf("is annotated %s=%s", key, value) }
