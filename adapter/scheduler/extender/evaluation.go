package extender

import (
	"math"
	"time"
)

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

// evaluation is the input of verdicts, except for the live totals of nodes. Each of the two verbs has a file of its
// methods: filter.go and prioritize.go.
type evaluation struct {
	rules    Rules
	now      time.Time
	snapshot *clusterSnapshot
	pod      podRequest
	past     waitHistory
	nodes    []*node // as named by the scheduler; nil: unknown
}

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

func (a amount) share() share {
	s := share{
		predicted: float32(math.NaN()), requested: float32(a.requested * a.unit),
		allocatable: float32(a.allocatable * a.unit),
	}
	if a.fresh {
		s.predicted, s.upper, s.assumed = float32(a.predicted*a.unit), float32(a.upper*a.unit), float32(a.assumed*a.unit)
	}
	return s
}

// gap returns the missing data of a resource.
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

// amountsOf returns the amounts of both resources of a node.
func amountsOf(n *node, r *Rules, now time.Time) (cpu, memory amount) {
	assumed, requested := n.assumed.load(), n.requested.load()
	cpu = amount{assumed: float64(assumed.cpu), requested: float64(requested.cpu),
		allocatable: float64(n.allocatable.cpu)}
	cpu.unit = 1e-3
	cpu.fresh = n.cpu.Fresh(now, r.StaleAfter)
	cpu.stale = !cpu.fresh && !n.cpu.Sampled.IsZero()
	cpu.predicted, cpu.upper = n.cpu.Predicted*1000, n.cpu.Upper*1000
	memory = amount{assumed: float64(assumed.memory), requested: float64(requested.memory)}
	memory.allocatable, memory.unit = float64(n.allocatable.memory), 1
	memory.fresh = n.memory.Fresh(now, r.StaleAfter)
	memory.stale = !memory.fresh && !n.memory.Sampled.IsZero()
	memory.predicted, memory.upper = n.memory.Predicted, n.memory.Upper
	return cpu, memory
}

// used returns the share of a node in use with a pod of this size, 0 if nothing is known to be allocatable.
func (a amount) used(pod int64) float64 {
	if a.allocatable <= 0 {
		return 0
	}
	if a.fresh {
		return (a.predicted + a.assumed + float64(pod)) / a.allocatable
	}
	return (a.requested + float64(pod)) / a.allocatable
}

// outcome is the treatment of a pod for which the limits leave no node.
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

// waitHistory is the past of a pod that fit no node.
type waitHistory struct {
	since     time.Time // when it began to wait; zero: not yet
	elsewhere int       // how often it was sent to other nodes
}

// The verbs of a scheduler, and values of the label verb.
const (
	verbFilter     = "filter"
	verbPrioritize = "prioritize"
)
