package extender

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// maxViewAge is how old a view may be to tell anything by. Views are made twice a second, so an older one means that they
// are not made any more.
const maxViewAge = 10 * time.Second

// systemCritical is the priority from which on pods are critical to the cluster. Users cannot ask for it in their own
// PriorityClasses.
const systemCritical int32 = 2_000_000_000

// reason is what was found of a node.
type reason uint8

const (
	fits       reason = iota
	exempt            // no rule applies to the pod
	nominated         // the pod was promised the node, and others may have been evicted for it
	removing          // a pool has committed to remove it
	overMemory        // it would pass the limit of memory
	overCPU           // it would pass the limit of CPU, but not the one of memory
	reasons
)

// String is the value of the label reason of metrics.
func (r reason) String() string {
	return [reasons]string{"fits", "exempt", "nominated", "removing", "memory", "cpu"}[r]
}

// gap is what was not known of a node, for which it passed the filter or was scored on less.
type gap uint8

const (
	noGap gap = iota
	gapView
	gapNode
	gapAllocatable
	gapPrediction
	gapStale
	gaps
)

// String is the value of the label reason of metrics.
func (g gap) String() string {
	return [gaps]string{"none", "no_view", "unknown_node", "no_allocatable", "no_prediction", "stale_prediction"}[g]
}

// subject is what matters of the pod that is asked about.
type subject struct {
	object    *corev1.Pod
	key       types.NamespacedName
	uid       types.UID
	created   time.Time
	exempt    bool   // no node is refused to it
	nominated string // the node that it was promised, "" is none
	requests  use
	estimate  use // what it is expected to use
	scheduled use // what it is scored as: what it requests, the estimate where that is nothing
}

func subjectOf(p *corev1.Pod, w Workloads) subject {
	s := subject{
		object: p, key: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, uid: p.UID, created: p.CreationTimestamp.Time,
		exempt: isExempt(p), nominated: p.Status.NominatedNodeName, requests: requestsOf(p), estimate: estimateOf(p, w),
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

// isExempt tells whether a pod belongs on its node whatever else there is: one of a DaemonSet is for that node, and without
// one that is critical the cluster does not work.
func isExempt(p *corev1.Pod) bool {
	if schedulingv1.PodPriority(p) >= systemCritical {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// mayPreempt tells whether a scheduler may evict other pods for the pod: some that is bound has a lower priority. In many
// clusters all pods have the same one, which is not 0.
func (q *question) mayPreempt() bool {
	p := q.pod.object
	return schedulingv1.PodPriority(p) > q.view.lowest && (p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != corev1.PreemptNever)
}

// question is all that a verdict depends on, but for the live tallies of nodes.
type question struct {
	rules Rules
	now   time.Time
	view  *view
	pod   subject
	past  past
	nodes []*node // those asked about, in the order asked; nil is one that the view does not know
}

// blind tells whether nothing is known of what nodes use and of which there are.
func (q *question) blind() bool { return q.view.at.IsZero() || q.now.Sub(q.view.at) > maxViewAge }

// verdict is what was found of one node for one pod, with the numbers it came from.
type verdict struct {
	name   string
	pool   string // that removes it, or would next
	reason reason
	gap    gap
	score  int8    // 0 to 10; of prioritize alone
	second bool    // its score is one less, as another node is better before rounding
	warmth float32 // w
	used   float32 // u
	cpu    share   // cores
	memory share   // bytes
}

// share is what of one resource is used or taken on a node, without the pod that is asked about.
type share struct {
	predicted   float32 // NaN: there is no fresh prediction
	upper       float32
	ledger      float32 // what counts beside the prediction, 0 without one
	requested   float32 // counts instead of a prediction
	allocatable float32
}

// amount is the same without rounding, while it is worked out.
type amount struct {
	fresh, stale     bool
	predicted, upper float64
	ledger           float64
	requested        float64
	allocatable      float64
	unit             float64 // what is told is in these
}

func (q *question) amounts(n *node) (cpu, memory amount) {
	ledger, requested := n.ledger.load(), n.requested.load()
	if q.rules.NoLedger {
		ledger = use{}
	}
	cpu = amount{ledger: float64(ledger.cpu), requested: float64(requested.cpu), allocatable: float64(n.allocatable.cpu), unit: 1e-3}
	cpu.fresh = n.cpu.Fresh(q.now, q.rules.StaleAfter)
	cpu.stale = !cpu.fresh && !n.cpu.Sampled.IsZero()
	cpu.predicted, cpu.upper = n.cpu.Predicted*1000, n.cpu.Upper*1000
	memory = amount{ledger: float64(ledger.memory), requested: float64(requested.memory), allocatable: float64(n.allocatable.memory), unit: 1}
	memory.fresh = n.memory.Fresh(q.now, q.rules.StaleAfter)
	memory.stale = !memory.fresh && !n.memory.Sampled.IsZero()
	memory.predicted, memory.upper = n.memory.Predicted, n.memory.Upper
	return cpu, memory
}

func (a amount) share() share {
	s := share{predicted: float32(math.NaN()), requested: float32(a.requested * a.unit), allocatable: float32(a.allocatable * a.unit)}
	if a.fresh {
		s.predicted, s.upper, s.ledger = float32(a.predicted*a.unit), float32(a.upper*a.unit), float32(a.ledger*a.unit)
	}
	return s
}

// gap says what is not known of a resource.
func (a amount) gap() gap {
	switch {
	case a.allocatable <= 0:
		return gapAllocatable
	case a.fresh:
		return noGap
	case a.stale:
		return gapStale
	}
	return gapPrediction
}
