package world

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// row is an object in the form in which it is kept. Client-go finds its key by its metadata.
type row[T any] struct {
	key  types.NamespacedName
	kept T
	none bool // the object matters to nothing
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r *row[T]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}
}

// table is what a reflector stores the objects of one kind in. Each is kept as what keep makes of it, none where it says
// so; of the rest no copy is held, not even while the first ones arrive.
type table[O metav1.Object, T any] struct {
	watcher *Watcher
	what    string
	keep    func(O) (T, bool)
	changed func(before, after T) // with zero values for none; under the watcher's lock
	lost    *time.Time            // since when it has been out of touch with the API; under the watcher's lock
	why     error

	rows   map[types.NamespacedName]T // under the watcher's lock
	synced bool
}

var _ cache.TransformingStore = (*table[metav1.Object, int])(nil)

func (t *table[O, T]) rowOf(obj any) (*row[T], error) {
	switch x := obj.(type) {
	case *row[T]:
		return x, nil
	case cache.DeletedFinalStateUnknown:
		return t.rowOf(x.Obj)
	case O:
		r := &row[T]{key: types.NamespacedName{Namespace: one(x.GetNamespace()), Name: x.GetName()}}
		var ok bool
		r.kept, ok = t.keep(x)
		r.none = !ok
		return r, nil
	default:
		return nil, fmt.Errorf("watching %s: got a %T", t.what, obj)
	}
}

// Transformer implements cache.TransformingStore.
func (t *table[O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return t.rowOf(obj) }
}

// Add implements cache.ReflectorStore.
func (t *table[O, T]) Add(obj any) error { return t.Update(obj) }

// Update implements cache.ReflectorStore.
func (t *table[O, T]) Update(obj any) error {
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.watcher.mu.Lock()
	defer t.watcher.mu.Unlock()
	t.put(r)
	return nil
}

// Delete implements cache.ReflectorStore.
func (t *table[O, T]) Delete(obj any) error {
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.watcher.mu.Lock()
	defer t.watcher.mu.Unlock()
	r.none = true
	t.put(r)
	return nil
}

// Replace implements cache.ReflectorStore: these are all the objects that there are.
func (t *table[O, T]) Replace(list []any, _ string) error {
	present := make(map[types.NamespacedName]*row[T], len(list))
	for _, obj := range list {
		r, err := t.rowOf(obj)
		if err != nil {
			return err
		}
		present[r.key] = r
	}
	t.watcher.mu.Lock()
	defer t.watcher.mu.Unlock()
	for key := range t.rows {
		if present[key] == nil {
			t.put(&row[T]{key: key, none: true})
		}
	}
	for _, r := range present {
		t.put(r)
	}
	t.synced, t.lost, t.why = true, nil, nil
	return nil
}

// Resync implements cache.ReflectorStore. There is nothing to do.
func (t *table[O, T]) Resync() error { return nil }

// put is called under the watcher's lock.
func (t *table[O, T]) put(r *row[T]) {
	before, known := t.rows[r.key]
	var after T
	switch {
	case !r.none:
		after = r.kept
		t.rows[r.key] = after
	case known:
		delete(t.rows, r.key)
	default:
		return
	}
	if t.changed != nil {
		t.changed(before, after)
	}
}

// touch remembers whether the API answers. The end of a watch is followed by the next one within seconds, or by an error.
func (t *table[O, T]) touch(err error) {
	t.watcher.mu.Lock()
	defer t.watcher.mu.Unlock()
	t.why = err
	if err == nil {
		t.lost = nil
	} else if t.lost == nil {
		t.lost = new(t.watcher.now())
	}
}

// stale tells whether the table has been out of touch for too long to be trusted. Then a watch that begins is no news of
// what has happened meanwhile: it takes a list.
func (t *table[O, T]) stale() bool {
	t.watcher.mu.Lock()
	defer t.watcher.mu.Unlock()
	return t.lost != nil && t.watcher.now().Sub(*t.lost) > patience
}

// state tells what keeps the table from being trusted; under the watcher's lock.
func (t *table[O, T]) state(now time.Time) error {
	switch {
	case !t.synced && t.why != nil:
		return fmt.Errorf("%s: %w: %w", t.what, ErrUnsynced, t.why)
	case !t.synced:
		return fmt.Errorf("%s: %w", t.what, ErrUnsynced)
	case t.lost != nil && now.Sub(*t.lost) > patience:
		return fmt.Errorf("%s: out of touch for %s: %w", t.what, now.Sub(*t.lost).Round(time.Second), t.why)
	}
	return nil
}

// reflect fills a table until the context ends.
func reflect[O interface {
	metav1.Object
	runtime.Object
}, T any, L runtime.Object](ctx context.Context, t *table[O, T], like O, of source[L]) {
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
				return nil, apierrors.NewResourceExpired(t.what + ": out of touch for too long, to be listed again")
			}
			w, err := of.Watch(ctx, o)
			if err != nil || !lists {
				t.touch(err)
			}
			return w, err
		},
	}, t.watcher.client)
	cache.NewReflectorWithOptions(lw, like, t, cache.ReflectorOptions{Name: t.what}).RunWithContext(ctx)
}
