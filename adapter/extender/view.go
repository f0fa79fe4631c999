package extender

import (
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/adapter/snapshot"
)

// use is an amount of both resources.
type use struct {
	cpu    int64 // millicores
	memory int64 // bytes
}

func (u use) plus(other use) use  { return use{u.cpu + other.cpu, u.memory + other.memory} }
func (u use) minus(other use) use { return use{u.cpu - other.cpu, u.memory - other.memory} }

// within is no less than nothing, and no more than what there is, where that is known.
func (u use) within(most use) use {
	u.cpu, u.memory = max(u.cpu, 0), max(u.memory, 0)
	if most.cpu > 0 {
		u.cpu = min(u.cpu, most.cpu)
	}
	if most.memory > 0 {
		u.memory = min(u.memory, most.memory)
	}
	return u
}

// slot is what changes of a node between two views, while answers are given. It lives as long as the Node does: another
// one of the name has a slot of its own.
type slot struct {
	requested tally        // what is requested by the pods that are bound to it, and by those that were scored and may come
	ledger    tally        // see ledger.go
	guests    atomic.Int64 // how many pods are bound to it but those that belong to the node itself, see belongs

	allocatable tally // 0: not known
}

// tally is a use that is read and changed at once by several.
type tally struct{ cpu, memory atomic.Int64 }

func (t *tally) add(u use) {
	t.cpu.Add(u.cpu)
	t.memory.Add(u.memory)
}

func (t *tally) set(u use) {
	t.cpu.Store(u.cpu)
	t.memory.Store(u.memory)
}

func (t *tally) load() use { return use{t.cpu.Load(), t.memory.Load()} }

// view is what answers are given from. It is immutable but for the slots.
type view struct {
	at      time.Time
	nodes   map[string]*node
	growing []Growth
	lowest  int32 // priority of pods that may be evicted for others: those of a higher one may have them evicted
}

// mostNames is how many nodes may be asked about. Some may have come or gone that the scheduler does not know of, or we.
func (v *view) mostNames() int {
	if v.at.IsZero() {
		return unknownNames
	}
	return 2*len(v.nodes) + 1000
}

// node is what a view knows of a Node.
type node struct {
	*slot
	name        string
	allocatable use
	created     time.Time
	readySince  time.Time    // zero: it is not Ready
	removing    string       // the pool that has committed to remove it, or the taint; "" = nobody
	candidate   string       // the pool that would remove it next; "" = none
	cpu, memory snapshot.Use // as forecast, fresh or not; Sampled is zero if there is none
	*terms
}

// newView joins what the API, forecasts, the ledger and pools tell of nodes: busy has the slots of nodes that pods have come
// to of late. standing may be nil.
func newView(at time.Time, nodes []node, loads *snapshot.NodeLoads, busy map[*slot]bool, standing *Standing) *view {
	v := &view{at: at, nodes: make(map[string]*node, len(nodes))}
	if standing == nil {
		standing = &Standing{}
	}
	v.growing = standing.Growing
	for i := range nodes {
		n := &nodes[i]
		load := loads.Nodes[n.name]
		n.cpu, n.memory = n.known(load.CPU), n.known(load.Memory)
		if busy[n.slot] {
			n.cpu, n.memory = risen(n.cpu), risen(n.memory)
		}
		n.candidate = standing.Candidates[n.name]
		if pool := standing.Removing[n.name]; pool != "" {
			n.removing = pool
		}
		v.nodes[n.name] = n
	}
	return v
}

// known drops the forecast of an earlier Node of the name.
func (n *node) known(u snapshot.Use) snapshot.Use {
	if u.Sampled.Before(n.created) {
		return snapshot.Use{}
	}
	return u
}

// risen is the forecast of a node that pods have come to of late. What its newest sample shows of them has left the
// ledger at once, but comes into the forecast, which is smooth, over minutes. In between the node would look as if they
// were not there, and the next ones would come.
func risen(u snapshot.Use) snapshot.Use {
	u.Predicted = max(u.Predicted, u.Now)
	u.Upper = max(u.Upper, u.Predicted)
	return u
}
