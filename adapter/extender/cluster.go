package extender

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/internal/mirror"
)

// trusted is how long the API may be out of touch until views are not made any more. The last one is gone by for another
// maxViewAge. A restart of an API server is shorter, where there are several.
const trusted = 10 * time.Second

// cluster keeps the nodes and pods of a cluster at hand, and the tallies of what pods request up to date.
type cluster struct {
	client    kubernetes.Interface
	workloads Workloads
	mark      string
	now       func() time.Time
	ledger    *ledger

	mu    sync.Mutex // before that of the ledger, where both are held
	nodes *mirror.Table[string, *corev1.Node, *nodeRecord]
	pods  *mirror.Table[podID, *corev1.Pod, record]
	homes map[unique.Handle[string]]*home

	evictable map[int32]int // how many pods are bound of each priority, but for those that are exempt
}

// home is where pods are bound to: the name of a Node. It is kept while there are such pods or the Node, which may come
// after its pods, go before them, or come again.
type home struct {
	*slot     // what it has come to of the Node that is there, or of one that is not there yet
	requested use
	pods      int
	node      bool
}

// nodeRecord is what is kept of a Node. It is immutable.
type nodeRecord struct {
	key         unique.Handle[string] // its name: to make one twice a second of each is slow
	uid         types.UID
	allocatable use
	created     time.Time
	readySince  time.Time // zero: it is not Ready
	marked      bool      // as being removed
	terms
}

// terms are what of a Node decides which pods can run on it, whatever is free. Their strings are shared: most nodes have the
// same ones. They are immutable.
type terms struct {
	labels map[string]string
	taints []corev1.Taint // those that repel pods, with one for a Node that is not to be scheduled to
}

// newCluster returns a cluster of which nothing is known until it is watched.
func newCluster(o Options, l *ledger) *cluster {
	c := &cluster{
		client: o.Client, workloads: o.Workloads, mark: o.RemovalMark, now: o.Now, ledger: l,
		homes: map[unique.Handle[string]]*home{}, evictable: map[int32]int{},
	}
	c.nodes = mirror.New(mirror.Options[string, *corev1.Node, *nodeRecord]{
		What: "nodes", Lock: &c.mu, Now: o.Now, Patience: trusted, Key: func(n *corev1.Node) string { return n.Name },
		Keep: func(n *corev1.Node) (*nodeRecord, bool) { return c.nodeRecordOf(n), true }, Changed: c.nodeChanged,
	})
	c.pods = mirror.New(mirror.Options[podID, *corev1.Pod, record]{
		What: "pods", Lock: &c.mu, Now: o.Now, Patience: trusted, Key: func(p *corev1.Pod) podID { return idOf(p.UID) },
		Keep: func(p *corev1.Pod) (record, bool) { return recordOf(p, c.workloads, c.now()) }, Changed: c.podChanged,
	})
	return c
}

// watch keeps the cluster up to date until the context ends.
func (c *cluster) watch(ctx context.Context) {
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	core := c.client.CoreV1()
	reflectors.Go(func() { mirror.Reflect(ctx, c.client, c.nodes, &corev1.Node{}, core.Nodes()) })
	reflectors.Go(func() { mirror.Reflect(ctx, c.client, c.pods, &corev1.Pod{}, core.Pods("")) })
}

// state tells what keeps the cluster from being known.
func (c *cluster) state(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.nodes.State(now), c.pods.State(now))
}

// list returns what is known of the Nodes that there are, by the API alone.
func (c *cluster) list(now time.Time) ([]node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.nodes.State(now), c.pods.State(now)); err != nil {
		return nil, err
	}
	out := make([]node, 0, len(c.nodes.Rows()))
	for name, r := range c.nodes.Rows() {
		n := node{
			slot: c.homes[r.key].slot, name: name,
			allocatable: r.allocatable, created: r.created, readySince: r.readySince, terms: &r.terms,
		}
		if r.marked {
			n.removing = c.mark
		}
		out = append(out, n)
	}
	return out, nil
}

func (c *cluster) nodeRecordOf(n *corev1.Node) *nodeRecord {
	r := &nodeRecord{
		key: unique.Make(n.Name), uid: n.UID, created: n.CreationTimestamp.Time, terms: termsOf(n),
		allocatable: use{cpu: n.Status.Allocatable.Cpu().MilliValue(), memory: n.Status.Allocatable.Memory().Value()},
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			r.readySince = condition.LastTransitionTime.Time
		}
	}
	_, r.marked = n.Annotations[c.mark]
	r.marked = r.marked || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == c.mark })
	return r
}

func termsOf(n *corev1.Node) terms {
	t := terms{labels: make(map[string]string, len(n.Labels))}
	for key, value := range n.Labels {
		t.labels[shared(key)] = shared(value)
	}
	closed := n.Spec.Unschedulable
	for i := range n.Spec.Taints {
		if taint := &n.Spec.Taints[i]; repels(taint) {
			t.taints = append(t.taints, corev1.Taint{Key: shared(taint.Key), Value: shared(taint.Value), Effect: corev1.TaintEffect(shared(string(taint.Effect)))})
			closed = closed && taint.Key != corev1.TaintNodeUnschedulable
		}
	}
	if closed { // and the taint that says so is still to come
		t.taints = append(t.taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return t
}

// shared is the one copy of a string.
func shared(s string) string { return unique.Make(s).Value() }

// nodeChanged is called under the lock.
func (c *cluster) nodeChanged(name string, before, after *nodeRecord) {
	key := unique.Make(name)
	h := c.home(key)
	if before != nil && (after == nil || before.uid != after.uid) {
		c.renew(h)
	}
	if h.node = after != nil; h.node {
		h.allocatable.set(after.allocatable)
	}
	c.leave(key, h)
}

// podChanged is called under the lock.
func (c *cluster) podChanged(id podID, before, after record) {
	if before.isBound() {
		h := c.home(before.node)
		h.take(before, -1)
		c.rank(before, -1)
		defer c.leave(before.node, h) // once it may have come back
	}
	if !after.isBound() {
		if _, pending := c.pods.Rows()[id]; pending {
			c.ledger.await(id)
		} else {
			c.ledger.end(id)
		}
		return
	}
	h := c.home(after.node)
	h.take(after, 1)
	c.rank(after, 1)
	if before.node == after.node {
		c.ledger.update(id, after.estimate, after.startedAt())
		return
	}
	c.ledger.bind(id, entry{
		slot: h.slot, node: after.node.Value(), since: time.Unix(0, after.bound), started: after.startedAt(), estimate: after.estimate,
	}, c.now())
}

// rank counts a pod that comes, with 1, or goes, with -1, by its priority.
func (c *cluster) rank(r record, pods int) {
	if r.exempt {
		return
	}
	if c.evictable[r.priority] += pods; c.evictable[r.priority] == 0 {
		delete(c.evictable, r.priority)
	}
}

// lowest returns the lowest priority of pods that may be evicted for others, the highest that there is if there are none.
func (c *cluster) lowest() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	lowest := int32(math.MaxInt32)
	for priority := range c.evictable {
		lowest = min(lowest, priority)
	}
	return lowest
}

// home returns that of a name, which may be new.
func (c *cluster) home(name unique.Handle[string]) *home {
	h := c.homes[name]
	if h == nil {
		h = &home{slot: &slot{}}
		c.homes[name] = h
	}
	return h
}

// leave forgets a home that nobody needs.
func (c *cluster) leave(name unique.Handle[string], h *home) {
	if h.pods == 0 && !h.node {
		delete(c.homes, name)
	}
}

// take counts a pod that comes, with 1, or goes, with -1.
func (h *home) take(r record, pods int) {
	u := r.requests
	if pods < 0 {
		u = use{}.minus(u)
	}
	h.requested = h.requested.plus(u)
	h.pods += pods
	h.slot.requested.add(u)
	if !r.belongs {
		h.guests.Add(int64(pods))
	}
}

// renew gives the next Node of a name a slot of its own, with what is bound to the name: pods outlive their node for a
// while, and the scheduler counts them on another of the name as well.
func (c *cluster) renew(h *home) {
	fresh := &slot{}
	fresh.requested.add(h.requested)
	fresh.guests.Store(h.guests.Load())
	c.ledger.move(h.slot, fresh)
	h.slot = fresh
}
