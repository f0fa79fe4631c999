package extender

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/api/v1alpha1"
)

// filter finds a verdict for each node, and the outcome if the limits leave none. With waits it also returns
// the pool that the pod waits for.
func (q *evaluation) filter(out []verdict) (outcome, string) {
	blind := q.snapshot.blind(q.now)
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

// minSample is the number of feasible nodes at which the scheduler may stop its search. With fewer names there
// are no others.
const minSample = 100

// maxElsewhere is the number of times that a pod is sent to other nodes. It may not be able to run
// on them: volumes and pod affinity are not checked.
const maxElsewhere = 3

// fallback finds the outcome for a pod that fits none of the nodes.
func (q *evaluation) fallback() (outcome, string) {
	if q.mayPreempt() {
		return passed, "" // otherwise it would preempt pods on full nodes, while none of these is full
	}
	if len(q.nodes) >= minSample && q.past.elsewhere < maxElsewhere && q.hasRoomElsewhere() {
		return elsewhere, ""
	}
	if pool, ok := q.growing(); ok {
		return waits, pool
	}
	return passed, ""
}

// hasRoomElsewhere reports whether any node of the cluster fits. The named ones do not, so they need not be left out.
func (q *evaluation) hasRoomElsewhere() bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(q.pod.object)
	var as corev1.Node
	for _, n := range q.snapshot.nodes {
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

// admit finds the verdict on one node. A node without data passes.
func (q *evaluation) admit(n *node, blind bool, v *verdict) {
	if n == nil {
		v.gap = gapNode
		if blind {
			v.gap = gapSnapshot
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
	cpu, memory := amountsOf(n, &q.rules, q.now)
	v.cpu, v.memory = cpu.share(), memory.share()
	switch {
	case q.pod.exempt:
		v.reason = exempt
	case n.removing != "":
		v.reason = removing
	case n.name == q.pod.nominated:
		v.reason = nominated
	case blind:
		v.gap = gapSnapshot
	default:
		v.reason, v.gap = q.limits(cpu, memory, n.workloadPods.Load() == 0)
	}
}

// limits compares the predicted use with the limits. A pod that would be alone on a node passes: it is too
// large for every such node, or the prediction is of pods that are gone. It does not pass if another such pod
// is assumed there.
func (q *evaluation) limits(cpu, memory amount, empty bool) (reason, gap) {
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
		} else if pod := float64(l.pod); l.of.upper+l.of.assumed+pod > l.limit*l.of.allocatable &&
			(!empty || l.of.assumed >= pod) {
			return l.reason, noGap
		}
	}
	return fits, found
}

// growing returns a pool that can launch a node for the pod, unless the pod has waited for MaxWait.
func (q *evaluation) growing() (string, bool) {
	if len(q.snapshot.growing) == 0 || q.waited() >= q.rules.MaxWait {
		return "", false
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(q.pod.object)
	as := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "(new)"}} // an empty name would match any that a pod asks for
	for _, g := range q.snapshot.growing {
		if runsOn(q.pod.object, affinity, &terms{g.Labels, g.Taints}, &as) {
			return g.Pool, true
		}
	}
	return "", false
}

// waited returns the time for which no node has fit. After a restart it is taken from the pod's condition.
func (q *evaluation) waited() time.Duration {
	if !q.past.since.IsZero() {
		return q.now.Sub(q.past.since)
	}
	for _, c := range q.pod.object.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse ||
			c.Reason != corev1.PodReasonUnschedulable ||
			!strings.Contains(c.Message, v1alpha1.FilteredForLoad) {
			continue
		}
		if c.LastTransitionTime.IsZero() {
			return q.now.Sub(q.pod.created)
		}
		return q.now.Sub(c.LastTransitionTime.Time)
	}
	return 0
}

// mayPreempt reports whether the scheduler may preempt others for the pod: some bound pod has a lower priority.
func (q *evaluation) mayPreempt() bool {
	p := q.pod.object
	return schedulingv1.PodPriority(p) > q.snapshot.lowest &&
		(p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != corev1.PreemptNever)
}
