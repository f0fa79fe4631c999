package extender

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
)

// maxSnapshotAge is the age at which a snapshot is not used any more. A new one is made every Period, unless that fails.
const maxSnapshotAge = 10 * time.Second

// systemCritical is the lowest priority of system-critical pods. Users cannot give it to their own PriorityClasses.
const systemCritical int32 = 2_000_000_000

// reason is why a node passed or was filtered.
type reason uint8

const (
	fits       reason = iota
	exempt            // no rule applies to the pod
	nominated         // the pod is nominated to the node, and may have preempted others there
	removing          // a pool has committed to remove it
	overMemory        // it would exceed the memory limit
	overCPU           // it would exceed the CPU limit, but not the memory limit
	reasons
)

// String is the value of the label reason of metrics.
func (r reason) String() string {
	return [reasons]string{"fits", "exempt", "nominated", "removing", "memory", "cpu"}[r]
}

// gap is missing data, for which a node passed or was scored by requests.
type gap uint8

const (
	noGap gap = iota
	gapSnapshot
	gapNode
	gapAllocatable
	gapPrediction
	gapStale
	gaps
)

// String is the value of the label reason of metrics.
func (g gap) String() string {
	return [gaps]string{"none", "no_cache", "unknown_node", "no_allocatable", "no_prediction", "stale_prediction"}[g]
}

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

// isExempt reports whether a pod passes on every node: pods of DaemonSets are meant for one node, and the cluster needs critical
// pods.
func isExempt(p *corev1.Pod) bool {
	if schedulingv1.PodPriority(p) >= systemCritical {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// mayPreempt reports whether the scheduler may preempt others for the pod: some bound pod has a lower priority.
func (q *evaluation) mayPreempt() bool {
	p := q.pod.object
	return schedulingv1.PodPriority(p) > q.snapshot.lowest && (p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != corev1.PreemptNever)
}

// evaluation is the input of verdicts, except for the live totals of nodes.
type evaluation struct {
	rules    Rules
	now      time.Time
	snapshot *clusterSnapshot
	pod      podRequest
	past     waitHistory
	nodes    []*node // as named by the scheduler; nil: unknown
}

// blind reports whether the snapshot is missing or too old.
func (v *clusterSnapshot) blind(now time.Time) bool {
	return v.at.IsZero() || now.Sub(v.at) > maxSnapshotAge
}

func (q *evaluation) blind() bool { return q.snapshot.blind(q.now) }

// verdict is the result for one node and one pod, with the numbers that led to it.
type verdict struct {
	name   string
	pool   string // that removes the node, or would next
	reason reason
	gap    gap
	score  int8    // 0 to 10; of prioritize alone
	second bool    // its score was reduced by one, see setApart
	warmth float32 // w
	used   float32 // u
	cpu    share   // cores
	memory share   // bytes
}

// share has the amounts of one resource of a node, without the pod.
type share struct {
	predicted   float32 // NaN: there is no fresh prediction
	upper       float32
	assumed     float32 // 0 without a prediction
	requested   float32 // counts where there is no prediction
	allocatable float32
}

// amount is a share before rounding.
type amount struct {
	fresh, stale     bool
	predicted, upper float64
	assumed          float64
	requested        float64
	allocatable      float64
	unit             float64 // shares are in these
}

func (q *evaluation) amounts(n *node) (cpu, memory amount) {
	assumed, requested := n.assumed.load(), n.requested.load()
	if q.rules.IgnoreAssumedPods {
		assumed = use{}
	}
	cpu = amount{assumed: float64(assumed.cpu), requested: float64(requested.cpu), allocatable: float64(n.allocatable.cpu), unit: 1e-3}
	cpu.fresh = n.cpu.Fresh(q.now, q.rules.StaleAfter)
	cpu.stale = !cpu.fresh && !n.cpu.Sampled.IsZero()
	cpu.predicted, cpu.upper = n.cpu.Predicted*1000, n.cpu.Upper*1000
	memory = amount{assumed: float64(assumed.memory), requested: float64(requested.memory), allocatable: float64(n.allocatable.memory), unit: 1}
	memory.fresh = n.memory.Fresh(q.now, q.rules.StaleAfter)
	memory.stale = !memory.fresh && !n.memory.Sampled.IsZero()
	memory.predicted, memory.upper = n.memory.Predicted, n.memory.Upper
	return cpu, memory
}

func (a amount) share() share {
	s := share{predicted: float32(math.NaN()), requested: float32(a.requested * a.unit), allocatable: float32(a.allocatable * a.unit)}
	if a.fresh {
		s.predicted, s.upper, s.assumed = float32(a.predicted*a.unit), float32(a.upper*a.unit), float32(a.assumed*a.unit)
	}
	return s
}

// gap returns what is missing of a resource.
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
