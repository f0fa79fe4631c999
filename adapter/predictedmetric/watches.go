package predictedmetric

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// catchUp is how long after an outage of a watch the changes that were missed may take to be reconciled.
const catchUp = 2 * time.Second

// Watches records since when changes of the objects in a cache are not seen, by their kinds. What the cache has is as
// old as that. A nil one knows of none.
type Watches struct {
	scheme *runtime.Scheme
	now    func() time.Time

	mu      sync.Mutex
	outages map[schema.GroupKind]map[*watched]outage
}

// outage is a time in which changes are not seen.
type outage struct{ since, ended time.Time }

// NewWatches returns Watches of a cache whose typed objects are of a scheme.
func NewWatches(scheme *runtime.Scheme, now func() time.Time) *Watches {
	return &Watches{scheme: scheme, now: now, outages: map[schema.GroupKind]map[*watched]outage{}}
}

// NewInformer makes the informers of a cache, as cache.Options.NewInformer.
func (w *Watches) NewInformer(
	from toolscache.ListerWatcher, like runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if kind, err := apiutil.GVKForObject(like, w.scheme); err == nil {
		v := &watched{toolscache.ToListerWatcherWithContext(from), w, kind.GroupKind()}
		reads := &toolscache.ListWatch{ListWithContextFunc: v.list, WatchFuncWithContext: v.watch}
		from = toolscache.ToListWatcherWithWatchListSemantics(reads, from)
	}
	return toolscache.NewSharedIndexInformer(from, like, resync, indexers)
}

// Lost returns since when changes of objects of a kind are not seen, zero while they are.
func (w *Watches) Lost(kind schema.GroupKind) (since time.Time) {
	if w == nil {
		return since
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for v, o := range w.outages[kind] {
		switch {
		case !o.ended.IsZero() && w.now().Sub(o.ended) > catchUp:
			delete(w.outages[kind], v)
		case since.IsZero() || o.since.Before(since):
			since = o.since
		}
	}
	return since
}

// touch records whether the API server answers a watch, whose informer ends with a context.
func (w *Watches) touch(ctx context.Context, v *watched, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, lost := w.outages[v.kind][v]
	switch {
	case ctx.Err() != nil, err == nil && !lost:
		return
	case err != nil && !lost:
		o.since = w.now()
		context.AfterFunc(ctx, func() { w.forget(v) })
	case err != nil:
		o.ended = time.Time{}
	case o.ended.IsZero():
		o.ended = w.now()
	}
	if w.outages[v.kind] == nil {
		w.outages[v.kind] = map[*watched]outage{}
	}
	w.outages[v.kind][v] = o
}

func (w *Watches) forget(v *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.outages[v.kind], v)
}

// watched reads the objects of a kind for an informer: those of all namespaces, or of one.
type watched struct {
	toolscache.ListerWatcherWithContext
	watches *Watches
	kind    schema.GroupKind
}

func (v *watched) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	all, err := v.ListWithContext(ctx, o)
	if err != nil {
		v.watches.touch(ctx, v, err)
	}
	return all, err // changes are seen once the watch that follows is answered
}

func (v *watched) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := v.WatchWithContext(ctx, o)
	if !errors.IsResourceExpired(err) && !errors.IsGone(err) { // after these all are listed again
		v.watches.touch(ctx, v, err)
	}
	return w, err
}
