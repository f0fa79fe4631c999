package extender

import (
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// room says what became of a pod that the limits left no node for.
type room uint8

const (
	enough room = iota
	waits       // it waits for a pool to grow
	passed      // the limits are not heard
)

// String is the value of the label outcome of metrics.
func (r room) String() string { return [...]string{"enough", "waits", "passed"}[r] }

// refuses tells whether the pod must not go to the node of a verdict, by what was found and what became of the limits.
func (r room) refuses(v *verdict) bool {
	switch v.reason {
	case removing:
		return true
	case overMemory, overCPU:
		return r != passed
	default:
		return false
	}
}

// filter finds which nodes the pod must not go to, and where the limits leave none what becomes of them. With the pod
// waiting it tells the pool that is waited for.
func (q *question) filter(out []verdict) (room, string) {
	blind := q.blind()
	kept, over := 0, 0
	for i, n := range q.nodes {
		q.admit(n, blind, &out[i])
		switch out[i].reason {
		case fits, exempt:
			kept++
		case overMemory, overCPU:
			over++
		}
	}
	if kept > 0 || over == 0 {
		return enough, ""
	}
	if pool, ok := q.growing(); ok {
		return waits, pool
	}
	return passed, ""
}

// admit finds whether the pod may go to a node. What nothing is known of passes.
func (q *question) admit(n *node, blind bool, v *verdict) {
	if n == nil {
		v.gap = gapNode
		if blind {
			v.gap = gapView
		}
		if q.pod.exempt {
			v.reason, v.gap = exempt, noGap
		}
		return
	}
	v.pool = n.removing
	if v.pool == "" {
		v.pool = n.candidate
	}
	cpu, memory := q.amounts(n)
	v.cpu, v.memory = cpu.share(), memory.share()
	switch {
	case q.pod.exempt:
		v.reason = exempt
	case n.removing != "":
		v.reason = removing
	case blind:
		v.gap = gapView
	default:
		v.reason, v.gap = q.limits(cpu, memory)
	}
}

// limits finds whether a node would pass a limit at the horizon, with the pod.
func (q *question) limits(cpu, memory amount) (reason, gap) {
	found := noGap
	for _, l := range [...]struct {
		limit  float64
		of     amount
		pod    int64
		reason reason
	}{
		{q.rules.MemoryLimit, memory, q.pod.estimate.memory, overMemory},
		{q.rules.CPULimit, cpu, q.pod.estimate.cpu, overCPU},
	} {
		if l.limit <= 0 {
			continue
		}
		if g := l.of.gap(); g != noGap {
			found = max(found, g)
		} else if l.of.upper+l.of.ledger+float64(l.pod) > l.limit*l.of.allocatable {
			return l.reason, noGap
		}
	}
	return fits, found
}

// growing tells a pool that can grow by a node that the pod could run on, if there is one and the pod has not waited for
// too long.
func (q *question) growing() (string, bool) {
	if len(q.view.growing) == 0 || q.waited() >= q.rules.Patience {
		return "", false
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(q.pod.object)
	for _, g := range q.view.growing {
		if runsOn(q.pod.object, affinity, g) {
			return g.Pool, true
		}
	}
	return "", false
}

// waited is for how long no node took the pod: 0 before it was tried at all.
func (q *question) waited() time.Duration {
	for _, c := range q.pod.object.Status.Conditions {
		// A pod that was held back by gates until now has the condition, too, but was not tried.
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated {
			continue
		}
		if c.LastTransitionTime.IsZero() {
			return q.now.Sub(q.pod.created)
		}
		return q.now.Sub(c.LastTransitionTime.Time)
	}
	return 0
}

// runsOn tells whether a pod could run on what a pool grows by.
func runsOn(p *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, g Growth) bool {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: g.Labels}}
	if ok, err := affinity.Match(node); err != nil || !ok {
		return false
	}
	_, untolerated := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), g.Taints, p.Spec.Tolerations, repels, true)
	return !untolerated
}

// repels tells whether a taint keeps pods from a node, rather than makes it less wanted.
func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}
