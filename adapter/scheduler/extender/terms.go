package extender

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/internal/objectcache"
)

// terms are the labels and taints of a Node. They decide which pods can run on it. Their strings are shared, as
// most nodes have the same ones. They are immutable.
type terms struct {
	labels map[string]string
	taints []corev1.Taint // NoSchedule and NoExecute only; a cordoned Node has one too
}

func termsOf(n *corev1.Node) terms {
	t := terms{labels: make(map[string]string, len(n.Labels))}
	for key, value := range n.Labels {
		t.labels[objectcache.Intern(key)] = objectcache.Intern(value)
	}
	closed := n.Spec.Unschedulable
	for i := range n.Spec.Taints {
		if taint := &n.Spec.Taints[i]; repels(taint) {
			t.taints = append(t.taints, corev1.Taint{
				Key: objectcache.Intern(taint.Key), Value: objectcache.Intern(taint.Value),
				Effect: corev1.TaintEffect(objectcache.Intern(string(taint.Effect))),
			})
			closed = closed && taint.Key != corev1.TaintNodeUnschedulable
		}
	}
	if closed { // the taint comes a moment later
		t.taints = append(t.taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: corev1.TaintEffectNoSchedule})
	}
	return t
}

// repels reports whether a taint keeps pods off a node.
func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// runsOn reports whether a pod could run on a node with these labels and taints. as is a Node to fill in.
func runsOn(p *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, on *terms, as *corev1.Node) bool {
	as.Labels = on.labels
	if ok, err := affinity.Match(as); err != nil || !ok {
		return false
	}
	_, untolerated := schedulingv1.FindMatchingUntoleratedTaint(
		logr.Discard(), on.taints, p.Spec.Tolerations, repels, true)
	return !untolerated
}
