package standing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// lookAgain is when WorkerPools are looked for again in a cluster that does not know them.
	lookAgain = time.Minute
	// retryAfter is when they are after any other error.
	retryAfter = 5 * time.Second
	// reviewEvery is how often it is looked at which pools have fallen silent.
	reviewEvery = 5 * time.Second
)

// ErrUnsynced is why nothing is known of pools while they have not been listed once.
var ErrUnsynced = errors.New("WorkerPools: not listed yet")

// Cache watches the objects of a kind. That of a manager is one.
type Cache interface {
	GetInformer(ctx context.Context, of client.Object, options ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error)
}

// Watcher keeps at hand what pools are about to do. It implements [extender.Pools].
type Watcher struct {
	cache Cache
	now   func() time.Time
	log   *slog.Logger
	again time.Duration // [lookAgain], but in tests

	latest atomic.Pointer[extender.Standing]
	ready  atomic.Pointer[error]

	mu    sync.Mutex
	pools map[string]*pool
}

var _ extender.Pools = (*Watcher)(nil)

// New returns a watcher that knows of no pool until it is run.
func New(of Cache, now func() time.Time, log *slog.Logger) *Watcher {
	w := &Watcher{cache: of, now: now, log: log, again: lookAgain, pools: map[string]*pool{}}
	w.latest.Store(&extender.Standing{})
	w.setReady(ErrUnsynced)
	return w
}

// Standing returns what is known now, never nil. It does not block.
func (w *Watcher) Standing() *extender.Standing { return w.latest.Load() }

// Ready tells why pools are not known, nil if they are. In a cluster that does not know WorkerPools there are none, and
// when it has come to know them they are listed first.
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

// watch begins to watch, once the cluster knows WorkerPools. It returns nil if the context has ended before.
func (w *Watcher) watch(ctx context.Context) cache.ResourceEventHandlerRegistration {
	for {
		watched, err := w.follow(ctx)
		if err == nil {
			return watched
		}
		wait := retryAfter
		if meta.IsNoMatchError(err) {
			w.setReady(nil)
			w.log.Debug("the cluster knows no WorkerPools", "again", w.again)
			wait = w.again
		} else {
			w.setReady(fmt.Errorf("%w: %w", ErrUnsynced, err))
			w.log.Error("cannot watch WorkerPools", "error", err, "again", retryAfter)
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

// deleted forgets a pool: what it was about to do it does not do any more, and its nodes take pods again.
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

// review finds the pools that have fallen silent.
func (w *Watcher) review() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publish(w.now())
}

// publish makes the standing anew; under the lock. A Node of two pools is the one's that comes first by name.
func (w *Watcher) publish(now time.Time) {
	next := &extender.Standing{Removing: map[string]string{}, Candidates: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		p := w.pools[name]
		if p.holds(now) {
			claim(next.Removing, p.removing, name)
		}
		if p.works(now) {
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
