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

	"github.com/foresail/foresail/internal/objectcache"
)

// trusted is the time for which snapshots are still made after the API was last in touch. Requests
// are answered from the last one for another maxSnapshotAge. API servers restart faster, where
// there are several.
const trusted = 10 * time.Second

// cluster caches nodes and pods, and keeps the totals of each node.
type cluster struct {
	client    kubernetes.Interface
	workloads Workloads
	mark      string
	now       func() time.Time
	assumed   *assumedPods
	cancel    []func() // subscriptions; nil: it watches itself

	mu        sync.Mutex // taken before that of assumed
	nodes     *objectcache.Table[string, *corev1.Node, *nodeRecord]
	pods      *objectcache.Table[podID, *corev1.Pod, record]
	nodeInfos map[unique.Handle[string]]*nodeInfo

	evictable map[int32]int // bound pods by priority, without exempt ones
}

// nodeInfo belongs to the name of a Node. It exists while pods are bound to the name or the Node exists, which
// may come later than its pods, go earlier, or come again.
type nodeInfo struct {
	*slot     // of the present Node, or of one that is not there yet
	requested use
	pods      int
	node      bool
}

// nodeRecord is the cached part of a Node. It is immutable.
type nodeRecord struct {
	key         unique.Handle[string] // its name; making the handle for each snapshot is slow
	uid         types.UID
	allocatable use
	created     time.Time
	readySince  time.Time // zero: it is not Ready
	marked      bool      // by the taint or annotation of a removal
	terms
}

// newCluster returns an empty cache. watch fills it.
func newCluster(o Options, l *assumedPods) *cluster {
	c := &cluster{
		client: o.Client, workloads: o.Workloads, mark: o.RemovalMark, now: o.Now, assumed: l,
		nodeInfos: map[unique.Handle[string]]*nodeInfo{}, evictable: map[int32]int{},
	}
	c.nodes = objectcache.New(objectcache.Options[string, *corev1.Node, *nodeRecord]{
		What: "nodes", Lock: &c.mu, Now: o.Now, MaxOutage: trusted, Key: func(n *corev1.Node) string { return n.Name },
		Keep: func(n *corev1.Node) (*nodeRecord, bool) { return c.nodeRecordOf(n), true }, Changed: c.nodeChanged,
	})
	c.pods = objectcache.New(objectcache.Options[podID, *corev1.Pod, record]{
		What: "pods", Lock: &c.mu, Now: o.Now, MaxOutage: trusted,
		Key:  func(p *corev1.Pod) podID { return idOf(p.UID) },
		Keep: func(p *corev1.Pod) (record, bool) { return recordOf(p, c.workloads, c.now()) }, Changed: c.podChanged,
	})
	if o.Nodes != nil {
		c.cancel = []func(){o.Nodes.Subscribe(c.nodes), o.Pods.Subscribe(c.pods)}
	}
	return c
}

// watch keeps the cache up to date until the context ends.
func (c *cluster) watch(ctx context.Context) {
	if c.cancel != nil {
		<-ctx.Done()
		for _, cancel := range c.cancel {
			cancel()
		}
		return
	}
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	core := c.client.CoreV1()
	reflectors.Go(func() { objectcache.Reflect(ctx, c.client, c.nodes, &corev1.Node{}, core.Nodes()) })
	reflectors.Go(func() { objectcache.Reflect(ctx, c.client, c.pods, &corev1.Pod{}, core.Pods("")) })
}

// state returns the reason that the cache is not complete or not current, nil if it is both.
func (c *cluster) state(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.nodes.State(now), c.pods.State(now))
}

// list returns all Nodes, without forecasts and the intent of pools.
func (c *cluster) list(now time.Time) ([]node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.nodes.State(now), c.pods.State(now)); err != nil {
		return nil, err
	}
	out := make([]node, 0, len(c.nodes.Rows()))
	for name, r := range c.nodes.Rows() {
		n := node{
			slot: c.nodeInfos[r.key].slot, name: name,
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

// nodeChanged is called under the lock.
func (c *cluster) nodeChanged(name string, before, after *nodeRecord) {
	key := unique.Make(name)
	h := c.nodeInfo(key)
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
		h := c.nodeInfo(before.node)
		h.take(before, -1)
		c.rank(before, -1)
		defer c.leave(before.node, h) // after the pod may have come back
	}
	if !after.isBound() {
		if _, pending := c.pods.Rows()[id]; pending {
			c.assumed.markPending(id)
		} else {
			c.assumed.end(id)
		}
		return
	}
	h := c.nodeInfo(after.node)
	h.take(after, 1)
	c.rank(after, 1)
	if before.node == after.node {
		c.assumed.update(id, after.estimate, after.startedAt())
		return
	}
	c.assumed.bind(id, recentPod{
		slot: h.slot, node: after.node.Value(), since: time.Unix(0, after.bound),
		started: after.startedAt(), estimate: after.estimate,
	}, c.now())
}

// rank counts a pod by its priority: pods is 1 for a new one, -1 for one that is gone.
func (c *cluster) rank(r record, pods int) {
	if r.exempt {
		return
	}
	if c.evictable[r.priority] += pods; c.evictable[r.priority] == 0 {
		delete(c.evictable, r.priority)
	}
}

// lowest returns the lowest priority of pods that may be preempted, math.MaxInt32 without any.
func (c *cluster) lowest() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	lowest := int32(math.MaxInt32)
	for priority := range c.evictable {
		lowest = min(lowest, priority)
	}
	return lowest
}

// nodeInfo returns the nodeInfo of a name, and makes it if there is none.
func (c *cluster) nodeInfo(name unique.Handle[string]) *nodeInfo {
	h := c.nodeInfos[name]
	if h == nil {
		h = &nodeInfo{slot: &slot{}}
		c.nodeInfos[name] = h
	}
	return h
}

// leave drops a nodeInfo without a Node and without pods.
func (c *cluster) leave(name unique.Handle[string], h *nodeInfo) {
	if h.pods == 0 && !h.node {
		delete(c.nodeInfos, name)
	}
}

// take adds a pod to the totals with 1, or removes it with -1.
func (h *nodeInfo) take(r record, pods int) {
	u := r.requests
	if pods < 0 {
		u = use{}.minus(u)
	}
	h.requested = h.requested.plus(u)
	h.pods += pods
	h.slot.requested.add(u)
	if !r.ofNode {
		h.workloadPods.Add(int64(pods))
	}
}

// renew gives the next Node of a name a new slot with the pods that are bound to the name: pods outlive their
// Node for a while, and the scheduler counts them on the next one too.
func (c *cluster) renew(h *nodeInfo) {
	fresh := &slot{}
	fresh.requested.add(h.requested)
	fresh.workloadPods.Store(h.workloadPods.Load())
	c.assumed.move(h.slot, fresh)
	h.slot = fresh
}
