package extender

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/snapshot"
)

// The ledger is what a node will use beside what samples show, as pods have come to it since they were taken:
//
//	ledger(node) = Σ over its pods of  estimate · (1 - f)
//	f = 0                                          until the pod is Ready
//	    clamp((sampled - ready) / window, 0, 1)    from then on; with a window of 0: 1 once sampled >= ready
//
// each for CPU and for memory. sampled is when the newest sample of the node was taken and window the time before it that
// it is the mean over, so f is the share of the sample that was taken with the pod serving: so much of the estimate is in
// the sample, and the rest is not. ready and sampled are times of the node's clock, and compared with nothing else. A pod
// that was Ready once is taken to be so from then on.
//
// A pod counts from when it is seen to be bound, until it ends or is removed, or [ledgerLife] from when it was bound, by
// which whatever it uses must have shown. While nothing is sampled of a node it counts in full.
//
// The scheduler decides faster than it binds. So a pod that was scored counts in full on the node that came out best, of
// what it requests and of its estimate, until it is seen to be bound to any node, is asked about again, is removed, or
// Rules.Tentative has passed.
//
// Times are those of the API where it tells them. A time ahead of ours is taken for now, so that an entry neither lives
// longer nor goes earlier because somebody's clock, or ours, was set.

// ledgerLife is for how long a pod counts after it was bound, at most.
const ledgerLife = 5 * time.Minute

// settleBatch is how many entries are settled at a time.
const settleBatch = 512

// podID tells pods apart by their UID, in less space than that. It is a hash.
type podID [16]byte

func idOf(uid types.UID) podID {
	sum := sha256.Sum256([]byte(uid))
	return podID(sum[:len(podID{})])
}

// ledger has the entries that the tallies of slots are the sums of. Whatever changes an entry changes the tally at once.
type ledger struct {
	off       bool          // nothing is entered
	tentative time.Duration // for how long a pod counts that was scored

	mu     sync.Mutex
	bound  map[podID]*entry
	scored map[podID]*entry
}

// entry is what one pod counts on one node.
type entry struct {
	slot     *slot
	node     string
	since    time.Time // when it was bound, or scored
	ready    time.Time // zero: not yet
	requests use       // of one that was only scored: the requests of bound pods are in the tally anyway
	estimate use
	counted  use // what of the estimate is in the tally
}

// count puts the entry into the tallies with so much of the estimate.
func (e *entry) count(u use) {
	e.slot.ledger.add(u.minus(e.counted))
	e.counted = u
}

func newLedger(r Rules) *ledger {
	return &ledger{off: r.NoLedger, tentative: r.Tentative, bound: map[podID]*entry{}, scored: map[podID]*entry{}}
}

// bind enters a pod that is bound to a node, which may have been seen late.
func (l *ledger) bind(id podID, e entry, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unscore(id)
	l.unbind(id)
	if l.off || now.Sub(e.since) >= ledgerLife {
		return
	}
	e.requests, e.counted = use{}, use{}
	e.count(e.estimate)
	l.bound[id] = &e
}

// update tells what has become of a pod that is bound, if it still counts. The tally follows when it is settled next.
func (l *ledger) update(id podID, estimate use, ready time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.bound[id]
	if e == nil {
		return
	}
	e.estimate = estimate
	if e.ready.IsZero() {
		e.ready = ready
	}
}

// end takes out a pod that is gone.
func (l *ledger) end(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unscore(id)
	l.unbind(id)
}

// score enters a pod that is expected to be bound to a node. One that is bound already is told by that.
func (l *ledger) score(id podID, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off || l.bound[id] != nil {
		return
	}
	l.unscore(id)
	e.counted = use{}
	e.count(e.estimate)
	e.slot.requested.add(e.requests)
	l.scored[id] = &e
}

// forget takes out a pod that was scored and is asked about again.
func (l *ledger) forget(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unscore(id)
}

// move has what is bound to a node count in another slot of it. What was only scored stays: it was meant for a Node that
// is gone.
func (l *ledger) move(from, to *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.bound {
		if e.slot == from {
			counted := e.counted
			e.count(use{})
			e.slot = to
			e.count(counted)
		}
	}
}

// settle counts pods as of now, by the newest samples of their nodes, and lets those go that have been there for long
// enough. It returns the nodes that pods count on which are bound to them.
func (l *ledger) settle(now time.Time, nodes map[string]snapshot.NodeLoad) map[*slot]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := make(map[*slot]bool)
	done := 0
	for id, e := range l.bound {
		if done++; done%settleBatch == 0 { // answers wait to enter what was scored
			l.mu.Unlock()
			l.mu.Lock()
		}
		if l.bound[id] != e {
			continue // it has gone meanwhile
		}
		if e.age(now) >= ledgerLife {
			l.unbind(id)
			continue
		}
		n := nodes[e.node]
		e.count(use{cpu: unseen(e.estimate.cpu, n.CPU, e.ready), memory: unseen(e.estimate.memory, n.Memory, e.ready)})
		busy[e.slot] = true
	}
	for id, e := range l.scored {
		if e.age(now) >= l.tentative {
			l.unscore(id)
		}
	}
	return busy
}

// age tells for how long an entry has been there. Of one from the future the time begins now.
func (e *entry) age(now time.Time) time.Duration {
	if e.since.After(now) {
		e.since = now
	}
	return now.Sub(e.since)
}

// unseen is what of an estimate the newest sample does not show: estimate · (1 - f).
func unseen(estimate int64, sample snapshot.Use, ready time.Time) int64 {
	if ready.IsZero() || sample.Sampled.IsZero() {
		return estimate
	}
	served := sample.Sampled.Sub(ready)
	switch {
	case served < 0:
		return estimate
	case served >= sample.Window:
		return 0
	}
	return int64(float64(estimate) * (1 - float64(served)/float64(sample.Window)))
}

// unbind and unscore are called under the lock, of entries that may not be there.
func (l *ledger) unbind(id podID) {
	if e := l.bound[id]; e != nil {
		e.count(use{})
		delete(l.bound, id)
	}
}

func (l *ledger) unscore(id podID) {
	if e := l.scored[id]; e != nil {
		e.count(use{})
		e.slot.requested.add(use{}.minus(e.requests))
		delete(l.scored, id)
	}
}
