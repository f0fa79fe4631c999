package extender

import (
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/api/v1alpha1"
)

// outcome is what happens to a pod when the limits leave no node for it.
type outcome uint8

const (
	enough    outcome = iota
	elsewhere         // other nodes have room, which the scheduler did not name
	waits             // it waits for a pool to grow
	passed            // the limits are ignored
	outcomes
)

// String is the value of the label outcome of metrics.
func (r outcome) String() string {
	return [outcomes]string{"enough", "elsewhere", "waits", "passed"}[r]
}

// filters reports whether a verdict filters its node, given the outcome.
func (r outcome) filters(v *verdict) bool {
	switch v.reason {
	case removing:
		return true
	case overMemory, overCPU:
		return r != passed
	default:
		return false
	}
}

// filter finds a verdict for each node, and the outcome if the limits leave none. With waits it also returns the pool that the
// pod waits for.
func (q *evaluation) filter(out []verdict) (outcome, string) {
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

// minSample is the number of feasible nodes at which the scheduler may stop its search. With fewer names there are no others.
const minSample = 100

// maxElsewhere is how often a pod is sent to other nodes. It may not be able to run on them: volumes and pod affinity are not
// checked.
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
		v.gap = gapSnapshot
	default:
		v.reason, v.gap = q.limits(cpu, memory, n.workloadPods.Load() == 0)
	}
}

// limits compares the predicted use with the limits. A pod that would be alone on a node passes: it is too large for every such
// node, or the prediction is of pods that are gone. It does not pass if another such pod is assumed there.
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
		} else if pod := float64(l.pod); l.of.upper+l.of.assumed+pod > l.limit*l.of.allocatable && (!empty || l.of.assumed >= pod) {
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

// waited returns how long no node has fit. After a restart it is taken from the pod's condition.
func (q *evaluation) waited() time.Duration {
	if !q.past.since.IsZero() {
		return q.now.Sub(q.past.since)
	}
	for _, c := range q.pod.object.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable ||
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

// runsOn reports whether a pod could run on a node with these labels and taints. as is a Node to fill in.
func runsOn(p *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, on *terms, as *corev1.Node) bool {
	as.Labels = on.labels
	if ok, err := affinity.Match(as); err != nil || !ok {
		return false
	}
	_, untolerated := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), on.taints, p.Spec.Tolerations, repels, true)
	return !untolerated
}

// repels reports whether a taint keeps pods off a node.
func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// waitHistory is what is remembered of a pod that fit no node.
type waitHistory struct {
	since     time.Time // when it began to wait; zero: not yet
	elsewhere int       // how often it was sent to other nodes
}

// maxWaiting caps the number of waiting pods that are remembered. The scheduler could not retry more within minutes.
const maxWaiting = 20_000

// waitingLife is how long a pod is remembered after its last request. The scheduler retries after five minutes at the latest.
const waitingLife = 15 * time.Minute

// waitingPods remembers the pods that fit no node.
type waitingPods struct {
	mu     sync.Mutex
	pods   map[types.UID]*waitingPod
	pruned time.Time
}

type waitingPod struct {
	waitHistory
	last time.Time
}

func newWaitingPods() *waitingPods { return &waitingPods{pods: map[types.UID]*waitingPod{}} }

// of returns the history of a pod.
func (w *waitingPods) of(pod types.UID) waitHistory {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[pod]; p != nil {
		return p.waitHistory
	}
	return waitHistory{}
}

// note records the outcome for a pod. since is when it began to wait, if it does.
func (w *waitingPods) note(pod types.UID, r outcome, since, now time.Time) {
	if r == enough || pod == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune(now)
	p := w.pods[pod]
	if p == nil {
		if r == passed || len(w.pods) >= maxWaiting {
			return // further pods wait by their condition
		}
		p = &waitingPod{}
		w.pods[pod] = p
	}
	p.last = now
	switch {
	case r == elsewhere:
		p.elsewhere++
	case r == waits && p.since.IsZero():
		p.since = since
	}
}

// prune drops pods without recent requests, once a minute.
func (w *waitingPods) prune(now time.Time) {
	if now.Sub(w.pruned) < time.Minute {
		return
	}
	w.pruned = now
	for uid, p := range w.pods {
		if now.Sub(p.last) >= waitingLife {
			delete(w.pods, uid)
		}
	}
}
