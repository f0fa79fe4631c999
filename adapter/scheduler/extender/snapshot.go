package extender

import (
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// slot holds the totals of a Node that change between two snapshots. A new Node of the same name gets a new slot.
type slot struct {
	requested    tally        // by bound pods and by assumed ones
	assumed      tally        // see assumed.go
	workloadPods atomic.Int64 // bound pods other than those of DaemonSets and the kubelet, see ofNode

	allocatable tally // 0: unknown
}

// maxSnapshotAge is the age at which a snapshot is not used any more. A new one is made every Period, unless
// that fails.
const maxSnapshotAge = 10 * time.Second

// unknownNames is the maximum number of nodes in a request while the number of Nodes is unknown.
const unknownNames = 50_000

// clusterSnapshot is the state of the cluster that requests are answered from. It is immutable except for the slots.
type clusterSnapshot struct {
	at      time.Time
	nodes   map[string]*node
	growing []Growth
	lowest  int32 // the lowest priority of bound pods: pods above it may preempt
}

// maxNames is the number of nodes that a request may name. The scheduler may know of more nodes, or of fewer.
func (v *clusterSnapshot) maxNames() int {
	if v.at.IsZero() {
		return unknownNames
	}
	return 2*len(v.nodes) + 1000
}

// node is the state of a Node in a snapshot.
type node struct {
	*slot
	name        string
	allocatable use
	created     time.Time
	readySince  time.Time    // zero: not Ready
	removing    string       // the pool that is removing it, or the key of the taint; "" = none
	candidate   string       // the pool that would remove it next; "" = none
	cpu, memory snapshot.Use // forecasts, fresh or not; Sampled is zero without one
	*terms
}

// newSnapshot joins nodes, forecasts and the intent of pools. busy has the nodes that pods came to recently.
// intent may be nil.
func newSnapshot(at time.Time, nodes []node, loads *snapshot.NodeLoads, busy map[*slot]bool,
	intent *PoolIntent) *clusterSnapshot {
	v := &clusterSnapshot{at: at, nodes: make(map[string]*node, len(nodes))}
	if intent == nil {
		intent = &PoolIntent{}
	}
	v.growing = intent.Growing
	for i := range nodes {
		n := &nodes[i]
		load := loads.Nodes[n.name]
		n.cpu, n.memory = n.known(load.CPU), n.known(load.Memory)
		if busy[n.slot] {
			n.cpu, n.memory = risen(n.cpu), risen(n.memory)
		}
		n.candidate = intent.Candidates[n.name]
		if pool := intent.Removing[n.name]; pool != "" {
			n.removing = pool
		}
		v.nodes[n.name] = n
	}
	return v
}

// known drops the forecast of an earlier Node of the same name.
func (n *node) known(u snapshot.Use) snapshot.Use {
	if u.Sampled.Before(n.created) {
		return snapshot.Use{}
	}
	return u
}

// risen raises the forecast of a busy node to its present use. A sample that includes a new pod removes it from
// the assumed pods at once, but the smoothed forecast follows over minutes: without this the node would look
// empty in between.
func risen(u snapshot.Use) snapshot.Use {
	u.Predicted = max(u.Predicted, u.Now)
	u.Upper = max(u.Upper, u.Predicted)
	return u
}

// blind reports whether the snapshot is missing or too old.
func (v *clusterSnapshot) blind(now time.Time) bool {
	return v.at.IsZero() || now.Sub(v.at) > maxSnapshotAge
}
