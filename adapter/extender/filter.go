package extender

import (
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/api/v1alpha1"
)

// room says what became of a pod that the limits left no node for.
type room uint8

const (
	enough    room = iota
	elsewhere      // there are nodes with room, which the scheduler did not ask about
	waits          // it waits for a pool to grow
	passed         // the limits are not heard
	rooms
)

// String is the value of the label outcome of metrics.
func (r room) String() string { return [rooms]string{"enough", "elsewhere", "waits", "passed"}[r] }

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
		case overMemory, overCPU:
			over++
		case removing:
		default:
			kept++
		}
	}
	if kept > 0 || over == 0 {
		return enough, ""
	}
	return q.fallback()
}

// A scheduler that has found leastSample nodes for a pod may stop to look for more. One that asks about fewer has no others.
const leastSample = 100

// mostElsewhere is how often a pod is told that other nodes have room. They may be ones that it cannot run on: what other
// pods it is to be near, or apart from, and its volumes are not looked at.
const mostElsewhere = 3

// fallback finds what becomes of a pod that every node asked about is too full for.
func (q *question) fallback() (room, string) {
	if q.mayPreempt() {
		return passed, "" // or pods would be evicted from nodes that are full, though none of these is
	}
	if len(q.nodes) >= leastSample && q.past.elsewhere < mostElsewhere && q.hasRoomElsewhere() {
		return elsewhere, ""
	}
	if pool, ok := q.growing(); ok {
		return waits, pool
	}
	return passed, ""
}

// hasRoomElsewhere tells whether any node would do, for all that is known of it. Those asked about do not, so that it need
// not be told which these are.
func (q *question) hasRoomElsewhere() bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(q.pod.object)
	var as corev1.Node
	for _, n := range q.view.nodes {
		free := n.allocatable.minus(n.requested.load())
		if n.readySince.IsZero() || q.pod.requests.cpu > free.cpu || q.pod.requests.memory > free.memory {
			continue
		}
		var v verdict
		if q.admit(n, false, &v); v.reason != fits {
			continue
		}
		as.Name = n.name
		if n.terms == nil || runsOn(q.pod.object, affinity, n.terms, &as) {
			return true
		}
	}
	return false
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
	case n.name == q.pod.nominated:
		v.reason = nominated
	case blind:
		v.gap = gapView
	default:
		v.reason, v.gap = q.limits(cpu, memory, n.guests.Load() == 0)
	}
}

// limits finds whether a node would pass a limit at the horizon, with the pod. A pod that would be alone on it is too large
// for every node like it, or what is predicted is of others that have gone: it is not refused, unless another such pod is
// expected there.
func (q *question) limits(cpu, memory amount, empty bool) (reason, gap) {
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
		} else if pod := float64(l.pod); l.of.upper+l.of.ledger+pod > l.limit*l.of.allocatable && (!empty || l.of.ledger >= pod) {
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
	as := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "(new)"}} // without a name it would be any that a pod asks for
	for _, g := range q.view.growing {
		if runsOn(q.pod.object, affinity, &terms{g.Labels, g.Taints}, &as) {
			return g.Pool, true
		}
	}
	return "", false
}

// waited is for how long every node has been too full for the pod. After a restart only the pod tells, and only as long as
// what it says is about that.
func (q *question) waited() time.Duration {
	if !q.past.since.IsZero() {
		return q.now.Sub(q.past.since)
	}
	for _, c := range q.pod.object.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable ||
			!strings.Contains(c.Message, v1alpha1.RefusedForLoad) {
			continue
		}
		if c.LastTransitionTime.IsZero() {
			return q.now.Sub(q.pod.created)
		}
		return q.now.Sub(c.LastTransitionTime.Time)
	}
	return 0
}

// runsOn tells whether a pod could run on a node of such terms. They are put into as, for those who ask for a Node.
func runsOn(p *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, on *terms, as *corev1.Node) bool {
	as.Labels = on.labels
	if ok, err := affinity.Match(as); err != nil || !ok {
		return false
	}
	_, untolerated := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), on.taints, p.Spec.Tolerations, repels, true)
	return !untolerated
}

// repels tells whether a taint keeps pods from a node, rather than makes it less wanted.
func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}
