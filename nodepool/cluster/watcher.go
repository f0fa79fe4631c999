package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/internal/objectcache"
)

// ErrUnsynced is returned until everything has been listed once.
var ErrUnsynced = objectcache.ErrUnsynced

// table caches the needed part of the objects of one kind, by namespace and name.
type table[O metav1.Object, T any] = objectcache.Table[types.NamespacedName, O, T]

// Watcher keeps a cluster up to date by watches of Nodes, Pods, DaemonSets, PodDisruptionBudgets
// and storage objects. Of pods it keeps what decisions need, which pods of one controller share: a
// few hundred bytes for each.
type Watcher struct {
	client kubernetes.Interface
	now    func() time.Time
	wake   chan struct{}

	nodeFeed, podFeed Feed     // nil: the watcher watches these itself
	cancel            []func() // the subscriptions of both

	kindsMu sync.Mutex // not mu, which is held for long while pods arrive
	kinds   kinds

	mu         sync.Mutex
	nodes      *table[*corev1.Node, *corev1.Node]
	pods       *table[*corev1.Pod, *record]
	daemonSets *table[*appsv1.DaemonSet, *appsv1.DaemonSet]
	budgets    *table[*policyv1.PodDisruptionBudget, *budget]
	claims     *table[*corev1.PersistentVolumeClaim, *claim]
	volumes    *table[*corev1.PersistentVolume, *volume]
	classes    *table[*storagev1.StorageClass, *class]
	limits     *table[*storagev1.CSINode, map[string]int]
	waiting    map[types.NamespacedName]*record
	holding    map[types.NamespacedName]*record // bound pods with claims
	onNode     map[string]map[types.NamespacedName]*Pod
	load       map[string]*load // of nodes whose pods have not changed since it was computed
}

// Option configures a Watcher.
type Option func(*Watcher)

// Feed distributes the objects of one kind to several parts of a process.
type Feed interface {
	Subscribe(objectcache.Store) (cancel func())
}

// WithFeeds makes a Watcher take nodes and pods from feeds instead of watching them itself.
func WithFeeds(nodes, pods Feed) Option {
	return func(w *Watcher) { w.nodeFeed, w.podFeed = nodes, pods }
}

// WithClock sets the clock of a Watcher.
func WithClock(now func() time.Time) Option { return func(w *Watcher) { w.now = now } }

// NewWatcher returns a watcher of a whole cluster. It lists and watches nodes, pods, persistentvolumeclaims,
// persistentvolumes, daemonsets.apps, poddisruptionbudgets.policy, storageclasses.storage.k8s.io and
// csinodes.storage.k8s.io.
func NewWatcher(client kubernetes.Interface, options ...Option) *Watcher {
	w := &Watcher{
		client: client, now: time.Now, wake: make(chan struct{}, 1), kinds: kinds{},
		waiting: map[types.NamespacedName]*record{}, holding: map[types.NamespacedName]*record{},
		onNode: map[string]map[types.NamespacedName]*Pod{}, load: map[string]*load{},
	}
	for _, o := range options {
		o(w)
	}
	w.nodes = newTable(w, "nodes", w.nodeChanged,
		func(n *corev1.Node) (*corev1.Node, bool) { return trimmedNode(n), true })
	w.pods = newTable(w, "pods", w.podChanged,
		func(p *corev1.Pod) (*record, bool) { r := recordOf(p); w.share(r); return r, r != nil })
	w.daemonSets = newTable(w, "daemonsets", nil,
		func(d *appsv1.DaemonSet) (*appsv1.DaemonSet, bool) { return trimmedDaemonSet(d), true })
	w.budgets = newTable(w, "poddisruptionbudgets", nil,
		func(b *policyv1.PodDisruptionBudget) (*budget, bool) { return budgetOf(b), true })
	w.claims = newTable(w, "persistentvolumeclaims", nil,
		func(c *corev1.PersistentVolumeClaim) (*claim, bool) { return claimOf(c), true })
	w.volumes = newTable(w, "persistentvolumes", nil,
		func(v *corev1.PersistentVolume) (*volume, bool) { return volumeOf(v), true })
	w.classes = newTable(w, "storageclasses", nil,
		func(c *storagev1.StorageClass) (*class, bool) { return classOf(c), true })
	w.limits = newTable(w, "csinodes", nil, func(n *storagev1.CSINode) (map[string]int, bool) { return limitsOf(n), true })
	if w.nodeFeed != nil {
		w.cancel = []func(){w.nodeFeed.Subscribe(w.nodes), w.podFeed.Subscribe(w.pods)}
	}
	return w
}

// newTable returns a table under the watcher's lock.
func newTable[O metav1.Object, T any](w *Watcher, what string, changed func(before, after T),
	keep func(O) (T, bool)) *table[O, T] {
	o := objectcache.Options[types.NamespacedName, O, T]{What: what, Lock: &w.mu, Now: w.now,
		Key: objectcache.NameOf[O], Keep: keep}
	if changed != nil {
		o.Changed = func(_ types.NamespacedName, before, after T) { changed(before, after) }
	}
	return objectcache.New(o)
}

// Run watches until the context ends. It must be called once.
func (w *Watcher) Run(ctx context.Context) error {
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	core := w.client.CoreV1()
	if w.nodeFeed == nil {
		reflectors.Go(func() { objectcache.Reflect(ctx, w.client, w.nodes, &corev1.Node{}, core.Nodes()) })
		reflectors.Go(func() { objectcache.Reflect(ctx, w.client, w.pods, &corev1.Pod{}, core.Pods("")) })
	}
	for _, cancel := range w.cancel {
		defer cancel()
	}
	for _, fill := range []func(){
		func() {
			objectcache.Reflect(ctx, w.client, w.daemonSets, &appsv1.DaemonSet{}, w.client.AppsV1().DaemonSets(""))
		},
		func() {
			objectcache.Reflect(ctx, w.client, w.budgets, &policyv1.PodDisruptionBudget{},
				w.client.PolicyV1().PodDisruptionBudgets(""))
		},
		func() {
			objectcache.Reflect(ctx, w.client, w.claims, &corev1.PersistentVolumeClaim{}, core.PersistentVolumeClaims(""))
		},
		func() {
			objectcache.Reflect(ctx, w.client, w.volumes, &corev1.PersistentVolume{}, core.PersistentVolumes())
		},
		func() {
			objectcache.Reflect(ctx, w.client, w.classes, &storagev1.StorageClass{}, w.client.StorageV1().StorageClasses())
		},
		func() {
			objectcache.Reflect(ctx, w.client, w.limits, &storagev1.CSINode{}, w.client.StorageV1().CSINodes())
		},
	} {
		reflectors.Go(fill)
	}
	<-ctx.Done()
	return nil
}

// Observe returns the cluster as it is now. It fails with [ErrUnsynced] until everything has been
// listed, and while the API has not answered for longer than its restart takes, because the last
// report may be outdated.
func (w *Watcher) Observe(context.Context) (*Cluster, error) {
	now := w.now()
	p, err := w.parts(now)
	if err != nil {
		return nil, err
	}
	return build(now, p), nil
}

// parts copies the tables. Their rows are never changed, only replaced.
func (w *Watcher) parts(now time.Time) (parts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.nodes.State(now), w.pods.State(now), w.daemonSets.State(now), w.budgets.State(now),
		w.claims.State(now), w.volumes.State(now), w.classes.State(now), w.limits.State(now))
	if err != nil {
		return parts{}, err
	}
	w.forgetKinds(2*len(w.pods.Rows()) + 1000)
	for name, pods := range w.onNode {
		if w.load[name] == nil {
			w.load[name] = loadOf(slices.Collect(maps.Values(pods)))
		}
	}
	known := storage{w.claims.Rows(), w.volumes.Rows(), w.classes.Rows()}
	p := parts{
		nodes:      slices.Collect(maps.Values(w.nodes.Rows())),
		load:       maps.Clone(w.load),
		waiting:    known.demands(slices.Collect(maps.Values(w.waiting))),
		daemonSets: slices.Collect(maps.Values(w.daemonSets.Rows())),
		budgets:    slices.Collect(maps.Values(w.budgets.Rows())),
		limits:     map[string]map[string]int{},
	}
	p.volumes, p.attached = known.volumeRulesOfBound(maps.Values(w.holding))
	for key, limits := range w.limits.Rows() {
		p.limits[key.Name] = limits
	}
	return p, nil
}

// Wake yields a value after an event that is worth an early cycle: a pod became unschedulable, a
// Node became Ready or was deleted. Several events may yield one value.
func (w *Watcher) Wake() <-chan struct{} { return w.wake }

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// podChanged updates what is derived from pods.
func (w *Watcher) podChanged(before, after *record) {
	if before != nil {
		delete(w.waiting, before.key)
		delete(w.holding, before.key)
		delete(w.load, before.node)
		delete(w.onNode[before.node], before.key)
		if len(w.onNode[before.node]) == 0 {
			delete(w.onNode, before.node)
		}
	}
	switch {
	case after == nil:
	case after.pending != nil:
		w.waiting[after.key] = after
		if before == nil || before.pending == nil {
			w.wakeUp()
		}
	default:
		if w.onNode[after.node] == nil {
			w.onNode[after.node] = map[types.NamespacedName]*Pod{}
		}
		w.onNode[after.node][after.key] = after.pod
		if len(after.claims) > 0 || after.devices {
			w.holding[after.key] = after
		}
		delete(w.load, after.node)
	}
}

func (w *Watcher) nodeChanged(before, after *corev1.Node) {
	was, is := false, false
	if before != nil {
		was, _ = readiness(before)
	}
	if after != nil {
		is, _ = readiness(after)
	}
	if after == nil || is && !was {
		w.wakeUp()
	}
}

// share lets equal pods of one controller share their kind.
func (w *Watcher) share(r *record) {
	w.kindsMu.Lock()
	defer w.kindsMu.Unlock()
	w.kinds.share(r)
}

// forgetKinds drops all kinds if there are more than a number of them: most belong to controllers
// that are gone.
func (w *Watcher) forgetKinds(limit int) {
	w.kindsMu.Lock()
	defer w.kindsMu.Unlock()
	if len(w.kinds) > limit {
		clear(w.kinds)
	}
}

// Leaving returns the pods of a node that a drain waits for, if all of them are being deleted. It
// returns false if one is not, if there are none, and while the cache may be outdated.
func (w *Watcher) Leaving(node string) (pods []types.NamespacedName, all bool) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.State(now) != nil {
		return nil, false
	}
	for key, p := range w.onNode[node] {
		switch {
		case p.class == Ignored:
		case !p.Leaving:
			return nil, false
		default:
			pods = append(pods, key)
		}
	}
	return pods, len(pods) > 0
}
