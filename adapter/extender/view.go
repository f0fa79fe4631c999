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

// slot is what changes of a node between two views, while answers are given. It lives as long as the Node does.
type slot struct {
	requested tally // what the pods that are bound to it request
	ledger    tally // see ledger.go; tentative entries are part of it
}

// tally is a use that is read and changed at once by several.
type tally struct{ cpu, memory atomic.Int64 }

func (t *tally) add(u use) {
	t.cpu.Add(u.cpu)
	t.memory.Add(u.memory)
}

func (t *tally) load() use { return use{t.cpu.Load(), t.memory.Load()} }

// view is what answers are given from. It is immutable but for the slots.
type view struct {
	at      time.Time
	nodes   map[string]*node
	growing []Growth
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
	cpu, memory snapshot.Use // as forecast; Sampled is zero if there is none that is fresh
}
