package extender

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// Assumed pods are what a node will use beyond its newest sample, because pods came after it:
//
//	assumed(node) = Σ over its pods of  estimate · (1 - f)
//	f = 0                                            until the last container of the pod has started
//	    clamp((sampled - started) / window, 0, 1)    from then on, with a window of at least [rampUpTime]
//
// each for CPU and memory. sampled is the time of the node's newest sample and window the time that it is the
// mean over. So f is the share of the sample during which the pod ran. A pod that started once is taken to run
// from then on.
//
// A bound pod counts until it ends, for [assumedLife] at most. Without a sample it counts in full.
//
// The scheduler decides faster than it binds. So a scored pod counts on the best node, with its requests and
// its estimate, until it is bound, is asked about again, is removed, or Rules.AssumeTimeout has passed. Anyone
// may ask, so only pods that are pending in the API count, and no pod counts for more than its node has.
//
// The watch of the scheduler may be ahead of ours, see arrival.go.
//
// A time in the future is moved to now: a clock that is set neither extends nor shortens the life of an entry.

const (
	// assumedLife is the longest time that a bound pod counts: large images take minutes to pull.
	assumedLife = 10 * time.Minute
	// arrivalLife is the time that a node counts as busy after a pod was bound to it or started on it. Forecasts follow
	// within it.
	arrivalLife = 5 * time.Minute
	// rampUpTime is the time that a pod takes after its start to reach its usual use. A sample of one
	// moment includes less before.
	rampUpTime = 30 * time.Second
)

// maxAssumed caps the number of pods that count before they are bound.
const maxAssumed = 20_000

// recountBatch is the number of pods between two releases of the lock.
const recountBatch = 512

// podID identifies a pod by a hash of its UID, which is shorter.
type podID [16]byte

func idOf(uid types.UID) podID {
	sum := sha256.Sum256([]byte(uid))
	return podID(sum[:len(podID{})])
}

// assumedPods holds the pods that samples do not include yet. Each change of an entry changes the totals of its
// node at once.
type assumedPods struct {
	assumeTimeout time.Duration // how long a pod counts before it is bound

	mu      sync.Mutex
	bound   map[podID]*recentPod
	pending map[podID]struct{}    // pods that are not bound, by the watch
	read    map[podID]time.Time   // pending pods that the watch does not have yet, and when they were read
	assumed map[podID]*assumedPod // by ID; all of them are pending
	awaited map[podID]*arrival    // pods that requests wait for
}

// recentPod is a pod that was bound in the last assumedLife.
type recentPod struct {
	slot     *slot
	node     string
	since    time.Time // when it was bound
	started  time.Time // zero: not yet
	estimate use
	counted  use // the part of the estimate that slot.assumed includes
}

// most returns the estimate, capped at the allocatable amount of the node.
func (e *recentPod) most() use { return e.estimate.within(e.slot.allocatable.load()) }

// count sets how much of the estimate the node's total includes.
func (e *recentPod) count(u use) {
	e.slot.assumed.add(u.minus(e.counted))
	e.counted = u
}

// assumedPod is a pod that was scored and is expected to be bound to a node.
type assumedPod struct {
	slot               *slot
	since              time.Time // when it was made
	requests, estimate use
}

// newAssumedPod caps the amounts at the allocatable ones of the node, and raises negative ones to 0.
func newAssumedPod(n *node, requests, estimate use, since time.Time) *assumedPod {
	return &assumedPod{
		slot: n.slot, since: since,
		requests: requests.within(n.allocatable), estimate: estimate.within(n.allocatable),
	}
}

// count adds amounts to the totals of the node. Negative ones remove them.
func (g *assumedPod) count(requests, estimate use) {
	g.slot.requested.add(requests)
	g.slot.assumed.add(estimate)
}

func newAssumedPods(r Rules) *assumedPods {
	return &assumedPods{
		assumeTimeout: r.AssumeTimeout,
		bound:         map[podID]*recentPod{}, pending: map[podID]struct{}{},
		read: map[podID]time.Time{}, assumed: map[podID]*assumedPod{}, awaited: map[podID]*arrival{},
	}
}

// markPending records a pending pod.
func (l *assumedPods) markPending(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived(id)
	l.pending[id] = struct{}{}
}

// bind records a pod that was bound at e.since, which may be some time ago.
func (l *assumedPods) bind(id podID, e recentPod, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived(id)
	delete(l.pending, id)
	l.unassume(id)
	l.unbind(id)
	if now.Sub(e.since) >= assumedLife {
		return
	}
	e.counted = use{}
	e.count(e.most())
	l.bound[id] = &e
}

// update changes the estimate and the start of a bound pod, if it still counts. recount applies them.
func (l *assumedPods) update(id podID, estimate use, started time.Time) {
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

// end removes a pod that is gone.
func (l *assumedPods) end(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived(id)
	delete(l.pending, id)
	l.unassume(id)
	l.unbind(id)
}

// assume counts a pod on the node that it is expected on, if the API has it as pending.
func (l *assumedPods) assume(id podID, g *assumedPod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isPending(id) {
		return
	}
	l.unassume(id)
	if len(l.assumed) >= maxAssumed {
		return
	}
	g.count(g.requests, g.estimate)
	l.assumed[id] = g
}

// forget removes what assume recorded: the scheduler asks about the pod again.
func (l *assumedPods) forget(id podID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unassume(id)
}

// move counts bound pods in another slot of their node. Assumed pods stay: they were meant for a Node that is gone.
func (l *assumedPods) move(from, to *slot) {
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

// recount applies the newest samples to all bound pods, and drops entries that are too old.
func (l *assumedPods) recount(now time.Time, nodes map[string]snapshot.NodeLoad) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eachBound(func(id podID, e *recentPod) {
		if age(&e.since, now) >= assumedLife {
			l.unbind(id)
			return
		}
		n, most := nodes[e.node], e.most()
		e.count(use{cpu: unseen(most.cpu, n.CPU, e.started), memory: unseen(most.memory, n.Memory, e.started)})
	})
	for id, g := range l.assumed {
		if age(&g.since, now) >= l.assumeTimeout {
			l.unassume(id)
		}
	}
	for id, since := range l.read {
		if age(&since, now) >= l.assumeTimeout {
			delete(l.read, id)
		} else {
			l.read[id] = since
		}
	}
}

// busy returns the nodes that pods came to within arrivalLife.
func (l *assumedPods) busy(now time.Time) map[*slot]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := make(map[*slot]bool)
	l.eachBound(func(_ podID, e *recentPod) {
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

// eachBound calls do with each bound pod under the lock. It releases the lock every recountBatch pods, so that
// requests can go on.
func (l *assumedPods) eachBound(do func(id podID, e *recentPod)) {
	done := 0
	for id, e := range l.bound {
		if done++; done%recountBatch == 0 { // answers wait to enter what was scored
			l.mu.Unlock()
			l.mu.Lock()
			if l.bound[id] != e {
				continue // it has gone meanwhile
			}
		}
		do(id, e)
	}
}

// age returns the time since an event. An event in the future is moved to now.
func age(since *time.Time, now time.Time) time.Duration {
	if since.After(now) {
		*since = now
	}
	return now.Sub(*since)
}

// unseen returns the part of an estimate that the newest sample does not include: estimate · (1 - f).
func unseen(estimate int64, sample snapshot.Use, started time.Time) int64 {
	if started.IsZero() {
		return estimate
	}
	ran, window := sample.Sampled.Sub(started), max(sample.Window, rampUpTime)
	switch {
	case ran < 0:
		return estimate
	case ran >= window:
		return 0
	}
	return int64(float64(estimate) * (1 - float64(ran)/float64(window)))
}

// unbind is called under the lock. The pod may not be there.
func (l *assumedPods) unbind(id podID) {
	if e := l.bound[id]; e != nil {
		e.count(use{})
		delete(l.bound, id)
	}
}

// unassume is called under the lock. The pod may not be there.
func (l *assumedPods) unassume(id podID) {
	if g := l.assumed[id]; g != nil {
		g.count(use{}.minus(g.requests), use{}.minus(g.estimate))
		delete(l.assumed, id)
	}
}

// arrival is that of a pod in the watch.
type arrival struct {
	id       podID
	done     chan struct{} // closed by it
	requests int           // that wait for it
}

// seek returns the arrival of a pod, nil if it is known. leave must be called.
func (l *assumedPods) seek(id podID) *arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isPending(id) || l.bound[id] != nil {
		return nil
	}
	a := l.awaited[id]
	if a == nil {
		a = &arrival{id: id, done: make(chan struct{})}
		l.awaited[id] = a
	}
	a.requests++
	return a
}

// leave ends what seek began.
func (l *assumedPods) leave(a *arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.requests--; a.requests == 0 && l.awaited[a.id] == a {
		delete(l.awaited, a.id)
	}
}

// found records a pending pod that was read. It counts as pending until the watch has it, for assumeTimeout at
// most: a pod that ends before that is never in the watch. If the watch has had the pod since, found returns
// whether it still lives.
func (l *assumedPods) found(a *arrival, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[a.id] == a {
		l.read[a.id] = now
	}
	return l.isPending(a.id) || l.bound[a.id] != nil
}

// isPending is called under the lock.
func (l *assumedPods) isPending(id podID) bool {
	_, watched := l.pending[id]
	_, read := l.read[id]
	return watched || read
}

// arrived is called under the lock, when the watch has a pod.
func (l *assumedPods) arrived(id podID) {
	delete(l.read, id)
	if a := l.awaited[id]; a != nil {
		delete(l.awaited, id)
		close(a.done)
	}
}

// pods returns the number of assumed pods.
func (l *assumedPods) pods() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bound) + len(l.assumed)
}
