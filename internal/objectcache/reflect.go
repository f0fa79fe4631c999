package objectcache

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source reads the objects of one kind.
type Source[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// Reflect fills a table until the context ends. like is an object of the kind. The client, which may be nil, says whether
// it can list by watching.
func Reflect[K comparable, O interface {
	metav1.Object
	runtime.Object
}, T any, L runtime.Object](ctx context.Context, client any, t *Table[K, O, T], like O, of Source[L]) {
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all, err := of.List(ctx, o)
			if err != nil {
				t.touch(err) // otherwise Replace does
			}
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			lists := o.SendInitialEvents != nil && *o.SendInitialEvents
			if !lists && t.stale() {
				return nil, apierrors.NewResourceExpired(t.What + ": the API was out of reach for too long, listing again")
			}
			w, err := of.Watch(ctx, o)
			if err != nil || !lists {
				t.touch(err)
			}
			return w, err
		},
	}, client)
	cache.NewReflectorWithOptions(lw, like, t, cache.ReflectorOptions{Name: t.What}).RunWithContext(ctx)
}

// touch records whether the API answers. The end of a watch is followed by the next one within seconds, or by an error.
func (t *Table[K, O, T]) touch(err error) {
	t.Lock.Lock()
	defer t.Lock.Unlock()
	t.why = err
	if err == nil {
		t.lost = nil
	} else if t.lost == nil {
		t.lost = new(t.Now())
	}
}

// stale returns whether the API was out of reach for too long. A new watch does not bring the changes since then, so the
// objects must be listed.
func (t *Table[K, O, T]) stale() bool {
	t.Lock.Lock()
	defer t.Lock.Unlock()
	return t.lost != nil && t.Now().Sub(*t.lost) > MaxOutage
}
