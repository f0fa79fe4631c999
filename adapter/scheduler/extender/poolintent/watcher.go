package poolintent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// lookAgain is the time between two checks for the WorkerPool CRD.
	lookAgain = time.Minute
	// retryAfter is the same after any other error.
	retryAfter = 5 * time.Second
	// reviewEvery is how often pools are checked for activity.
	reviewEvery = 5 * time.Second
)

// ErrUnsynced is returned by Ready until WorkerPools have been listed.
var ErrUnsynced = errors.New("WorkerPools: not listed yet")

// Cache watches objects of a kind, as the cache of a manager does.
type Cache interface {
	GetInformer(ctx context.Context, of client.Object, options ...ctrlcache.InformerGetOption) (ctrlcache.Informer,
		error)
}

// Watcher keeps the intent of pools. It implements [extender.Pools].
type Watcher struct {
	cache Cache
	now   func() time.Time
	again time.Duration // [lookAgain], but in tests

	latest atomic.Pointer[extender.PoolIntent]
	ready  atomic.Pointer[error]

	mu    sync.Mutex
	pools map[string]*pool
}

var _ extender.Pools = (*Watcher)(nil)

// New returns a Watcher without pools. Run fills it.
func New(of Cache, now func() time.Time) *Watcher {
	w := &Watcher{cache: of, now: now, again: lookAgain, pools: map[string]*pool{}}
	w.latest.Store(&extender.PoolIntent{})
	w.setReady(ErrUnsynced)
	return w
}

// PoolIntent returns the present intent, never nil. It does not block.
func (w *Watcher) PoolIntent() *extender.PoolIntent { return w.latest.Load() }

// Ready returns an error until pools have been listed. In a cluster without the WorkerPool CRD there are none.
func (w *Watcher) Ready() error { return *w.ready.Load() }

func (w *Watcher) setReady(err error) { w.ready.Store(&err) }

// Run watches until the context ends. It is called once.
func (w *Watcher) Run(ctx context.Context) error {
	watched := w.watch(ctx)
	if watched == nil {
		return nil
	}
	w.setReady(ErrUnsynced)
	listed := watched.HasSyncedChecker().Done()
	review := time.NewTicker(reviewEvery)
	defer review.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-listed:
			w.setReady(nil)
			listed = nil
		case <-review.C:
			w.review()
		}
	}
}

// watch starts to watch once the cluster has the CRD. It returns nil if the context ends before.
func (w *Watcher) watch(ctx context.Context) cache.ResourceEventHandlerRegistration {
	for {
		watched, err := w.follow(ctx)
		if err == nil {
			return watched
		}
		wait := retryAfter
		if meta.IsNoMatchError(err) {
			w.setReady(nil)
			klog.FromContext(ctx).V(4).Info("The cluster has no WorkerPool CRD", "again", w.again)
			wait = w.again
		} else {
			w.setReady(fmt.Errorf("%w: %w", ErrUnsynced, err))
			klog.FromContext(ctx).Error(err, "Cannot watch WorkerPools", "again", retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (w *Watcher) follow(ctx context.Context) (cache.ResourceEventHandlerRegistration, error) {
	informer, err := w.cache.GetInformer(ctx, &v1alpha1.WorkerPool{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	return informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.changed,
		UpdateFunc: func(_, after any) { w.changed(after) },
		DeleteFunc: w.deleted,
	})
}

func (w *Watcher) changed(obj any) {
	of, ok := obj.(*v1alpha1.WorkerPool)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.pools[of.Name] = newPool(of, w.pools[of.Name], now)
	w.publish(now)
}

// deleted drops a pool: it does nothing any more, and its nodes take pods again.
func (w *Watcher) deleted(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	of, ok := obj.(*v1alpha1.WorkerPool)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pools, of.Name)
	w.publish(w.now())
}

// review finds pools that became inactive.
func (w *Watcher) review() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publish(w.now())
}

// publish replaces the intent; under the lock. A Node that two pools name belongs to the first by name.
func (w *Watcher) publish(now time.Time) {
	next := &extender.PoolIntent{Removing: map[string]string{}, Candidates: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		p := w.pools[name]
		if p.holds(now) {
			claim(next.Removing, p.removing, name)
		}
		if p.active(now) {
			claim(next.Candidates, p.candidates, name)
			next.Growing = append(next.Growing, p.growing...)
		}
	}
	for node := range next.Removing {
		delete(next.Candidates, node)
	}
	w.latest.Store(next)
}

func claim(of map[string]string, nodes []string, pool string) {
	for _, node := range nodes {
		if of[node] == "" {
			of[node] = pool
		}
	}
}
