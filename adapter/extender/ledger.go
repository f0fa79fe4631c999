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
//	f = 0                                            until the last of the pod's containers has started
//	    clamp((sampled - started) / window, 0, 1)    from then on, with a window of at least [settles]
//
// each for CPU and for memory. sampled is when the newest sample of the node was taken and window the time before it that
// it is the mean over, or that it is from some time within, so f is the share of the sample that was taken with the pod
// running, or the likelihood of that: so much of the estimate is in the sample, and the rest is not. started is a time of the
// node's clock. sampled is one too if metrics.k8s.io tells it, and of Prometheus it is when it was asked for. A pod that was
// started once is taken to run from then on.
//
// A pod counts from when it is seen to be bound, until it ends or is removed, or [ledgerLife] from when it was bound: one
// that has not started by then may never. While nothing is sampled of a node it counts in full.
//
// The scheduler decides faster than it binds. So a pod that was scored counts on the node that came out best, of what it
// requests and of its estimate, until it is seen to be bound to any node, is asked about again, is removed, or
// Rules.Tentative has passed. Anyone may ask: so a pod counts only if the API has it as one that is not bound, and as no
// more than the node has.
//
// Times are those of the API where it tells them. A time ahead of ours is taken for now, so that an entry neither lives
// longer nor goes earlier because somebody's clock, or ours, was set.

const (
	// ledgerLife is for how long a pod counts after it was bound, at most: images may be large.
	ledgerLife = 10 * time.Minute
	// arrivalLife is for how long a node counts as one that pods have come to after one was bound, or has started since, by
	// which forecasts show it.
	arrivalLife = 5 * time.Minute
	// settles is the time in which a pod comes to use what it will, after its start. A sample of one moment does not show
	// all of it before.
	settles = 30 * time.Second
)

// mostScored is of how many pods that were scored it is kept where they are expected. Of more than that none counts before
// it is bound.
const mostScored = 20_000

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

	mu      sync.Mutex
	bound   map[podID]*entry
	pending map[podID]struct{} // pods that are not bound
	scored  map[podID]*guess   // some of those
}

// entry is what a pod counts on the node that it is bound to. What it requests is not the ledger's.
type entry struct {
	slot     *slot
	node     string
	since    time.Time // when it was bound
	started  time.Time // zero: not yet
	estimate use
	counted  use // what of the estimate is in the tally
}

// most is the estimate, but no more than the node has.
func (e *entry) most() use { return e.estimate.within(e.slot.allocatable.load()) }

// count has so much of the estimate in the tally.
func (e *entry) count(u use) {
	e.slot.ledger.add(u.minus(e.counted))
	e.counted = u
}

// guess is what a pod counts on the node that it is expected to be bound to.
type guess struct {
	slot               *slot
	since              time.Time // when it was made
	requests, estimate use
}

// guessOf is that of a pod of which no more counts than the node has, and what is less than nothing is nothing.
func guessOf(n *node, requests, estimate use, since time.Time) *guess {
	return &guess{slot: n.slot, since: since, requests: requests.within(n.allocatable), estimate: estimate.within(n.allocatable)}
}

// count puts the guess into the tallies, or takes it out.
func (g *guess) count(requests, estimate use) {
	g.slot.requested.add(requests)
	g.slot.ledger.add(estimate)
}

func newLedger(r Rules) *ledger {
	return &ledger{off: r.NoLedger, tentative: r.Tentative, bound: map[podID]*entry{}, pending: map[podID]struct{}{}, scored: map[podID]*guess{}}
}

// await tells of a pod that is not bound.
func (l *ledger) await(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[id] = struct{}{}
}

// bind enters a pod that is bound to a node, which may have been seen late.
func (l *ledger) bind(id podID, e entry, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
	l.unscore(id)
	l.unbind(id)
	if l.off || now.Sub(e.since) >= ledgerLife {
		return
	}
	e.counted = use{}
	e.count(e.most())
	l.bound[id] = &e
}

// update tells what has become of a pod that is bound, if it still counts. The tally follows when it is settled next.
func (l *ledger) update(id podID, estimate use, started time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.bound[id]
	if e == nil {
		return
	}
	e.estimate = estimate
	if e.started.IsZero() {
		e.started = started
	}
}

// end takes out a pod that is gone.
func (l *ledger) end(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
	l.unscore(id)
	l.unbind(id)
}

// score enters a pod that is expected to be bound, unless the API does not have it as one that is not.
func (l *ledger) score(id podID, g *guess) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, pending := l.pending[id]; l.off || !pending {
		return
	}
	l.unscore(id)
	if len(l.scored) >= mostScored {
		return
	}
	g.count(g.requests, g.estimate)
	l.scored[id] = g
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
// enough.
func (l *ledger) settle(now time.Time, nodes map[string]snapshot.NodeLoad) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eachBound(func(id podID, e *entry) {
		if age(&e.since, now) >= ledgerLife {
			l.unbind(id)
			return
		}
		n, most := nodes[e.node], e.most()
		e.count(use{cpu: unseen(most.cpu, n.CPU, e.started), memory: unseen(most.memory, n.Memory, e.started)})
	})
	for id, g := range l.scored {
		if age(&g.since, now) >= l.tentative {
			l.unscore(id)
		}
	}
}

// busy returns the nodes that pods have come to of late.
func (l *ledger) busy(now time.Time) map[*slot]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := make(map[*slot]bool)
	l.eachBound(func(_ podID, e *entry) {
		came := e.since
		if e.started.After(came) {
			came = e.started
		}
		if now.Sub(came) < arrivalLife {
			busy[e.slot] = true
		}
	})
	return busy
}

// eachBound calls do with each pod that is bound, under the lock, which it leaves at times.
func (l *ledger) eachBound(do func(id podID, e *entry)) {
	done := 0
	for id, e := range l.bound {
		if done++; done%settleBatch == 0 { // answers wait to enter what was scored
			l.mu.Unlock()
			l.mu.Lock()
			if l.bound[id] != e {
				continue // it has gone meanwhile
			}
		}
		do(id, e)
	}
}

// age tells how long ago something was. What is in the future is from now on.
func age(since *time.Time, now time.Time) time.Duration {
	if since.After(now) {
		*since = now
	}
	return now.Sub(*since)
}

// unseen is what of an estimate the newest sample does not show: estimate · (1 - f).
func unseen(estimate int64, sample snapshot.Use, started time.Time) int64 {
	if started.IsZero() {
		return estimate
	}
	ran, window := sample.Sampled.Sub(started), max(sample.Window, settles)
	switch {
	case ran < 0:
		return estimate
	case ran >= window:
		return 0
	}
	return int64(float64(estimate) * (1 - float64(ran)/float64(window)))
}

// unbind and unscore are called under the lock, of entries that may not be there.
func (l *ledger) unbind(id podID) {
	if e := l.bound[id]; e != nil {
		e.count(use{})
		delete(l.bound, id)
	}
}

func (l *ledger) unscore(id podID) {
	if g := l.scored[id]; g != nil {
		g.count(use{}.minus(g.requests), use{}.minus(g.estimate))
		delete(l.scored, id)
	}
}
