// Package objectcache caches parts of the objects of a cluster in tables that client-go's
// reflectors fill. The parts are much smaller than the objects, and a table knows whether it can be
// trusted. Tables of one kind may share a watch.
package objectcache

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ErrUnsynced is the error of objects that have never been listed.
var ErrUnsynced = errors.New("not listed yet")

// MaxOutage is how long a table is trusted while the API cannot be reached. A restart of an API
// server is shorter.
const MaxOutage = 30 * time.Second

// Table stores the objects of one kind for a reflector. Of each object it holds only what Keep
// returns, not even for a moment more.
type Table[K comparable, O metav1.Object, T any] struct {
	Options[K, O, T]

	// Under the lock.
	rows   map[K]T
	synced bool
	lost   *time.Time // since when the API cannot be reached
	why    error
}

// Options configure a Table.
type Options[K comparable, O metav1.Object, T any] struct {
	What string // the objects, in errors: nodes
	Lock sync.Locker
	Now  func() time.Time

	// Key identifies an object; no two that exist at the same time may have the same. It is called
	// without the lock.
	Key func(O) K
	// Keep returns the part of an object that is stored, and whether to store it at all. It is
	// called without the lock.
	Keep func(O) (T, bool)
	// Changed is called under the lock for each change, with the zero T where there is no row. It may be nil.
	Changed func(key K, before, after T)
	// MaxOutage shortens how long the table is trusted while the API cannot be reached; 0: the
	// constant MaxOutage. It does not shorten the time after which objects are listed again.
	MaxOutage time.Duration
}

// New returns an empty table.
func New[K comparable, O metav1.Object, T any](o Options[K, O, T]) *Table[K, O, T] {
	return &Table[K, O, T]{Options: o, rows: map[K]T{}}
}

// NameOf is a Key: namespace and name.
func NameOf[O metav1.Object](o O) types.NamespacedName {
	return types.NamespacedName{Namespace: unique.Make(o.GetNamespace()).Value(), Name: o.GetName()}
}

// Rows returns the rows. They must be read under the lock, and not be changed.
func (t *Table[K, O, T]) Rows() map[K]T { return t.rows }

// State returns why the table cannot be trusted, nil if it can. It must be called under the lock.
func (t *Table[K, O, T]) State(now time.Time) error {
	switch {
	case !t.synced && t.why != nil:
		return fmt.Errorf("%s: %w: %w", t.What, ErrUnsynced, t.why)
	case !t.synced:
		return fmt.Errorf("%s: %w", t.What, ErrUnsynced)
	case t.lost != nil && now.Sub(*t.lost) > t.maxOutage():
		return fmt.Errorf("%s: out of touch for %s: %w", t.What, now.Sub(*t.lost).Round(time.Second), t.why)
	}
	return nil
}

func (o *Options[K, O, T]) maxOutage() time.Duration {
	if o.MaxOutage > 0 {
		return min(o.MaxOutage, MaxOutage)
	}
	return MaxOutage
}

var _ Store = (*Table[string, metav1.Object, int])(nil)

// row is the stored part of an object. Client-go identifies it by its metadata.
type row[K comparable, T any] struct {
	name types.NamespacedName
	key  K
	kept T
	none bool // the object is not stored
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r *row[K, T]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.name.Namespace, Name: r.name.Name}
}

func (t *Table[K, O, T]) rowOf(obj any) (*row[K, T], error) {
	switch x := obj.(type) {
	case *row[K, T]:
		return x, nil
	case cache.DeletedFinalStateUnknown:
		return t.rowOf(x.Obj)
	case O:
		r := &row[K, T]{name: NameOf(x), key: t.Key(x)}
		var ok bool
		r.kept, ok = t.Keep(x)
		r.none = !ok
		return r, nil
	default:
		return nil, fmt.Errorf("watching %s: got a %T", t.What, obj)
	}
}

// Transformer implements cache.TransformingStore.
func (t *Table[K, O, T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return t.rowOf(obj) }
}

// Add implements cache.ReflectorStore.
func (t *Table[K, O, T]) Add(obj any) error { return t.Update(obj) }

// Update implements cache.ReflectorStore.
func (t *Table[K, O, T]) Update(obj any) error {
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.Lock.Lock()
	defer t.Lock.Unlock()
	t.put(r)
	return nil
}

// Delete implements cache.ReflectorStore.
func (t *Table[K, O, T]) Delete(obj any) error {
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.Lock.Lock()
	defer t.Lock.Unlock()
	t.put(&row[K, T]{key: r.key, none: true})
	return nil
}

// Replace implements cache.ReflectorStore. The list is complete.
func (t *Table[K, O, T]) Replace(list []any, _ string) error {
	present := make(map[K]*row[K, T], len(list))
	for _, obj := range list {
		r, err := t.rowOf(obj)
		if err != nil {
			return err
		}
		present[r.key] = r
	}
	t.Lock.Lock()
	defer t.Lock.Unlock()
	for key := range t.rows {
		if present[key] == nil {
			t.put(&row[K, T]{key: key, none: true})
		}
	}
	for _, r := range present {
		t.put(r)
	}
	t.synced, t.lost, t.why = true, nil, nil
	return nil
}

// Touch implements Store.
func (t *Table[K, O, T]) Touch(err error) {
	t.Lock.Lock()
	defer t.Lock.Unlock()
	t.why = err
	if err == nil {
		t.lost = nil
	} else if t.lost == nil {
		t.lost = new(t.Now())
	}
}

// ListAfterOutage implements Store. A watch that begins says nothing of what has gone meanwhile.
func (t *Table[K, O, T]) ListAfterOutage() bool { return true }

// Resync implements cache.ReflectorStore. It does nothing.
func (t *Table[K, O, T]) Resync() error { return nil }

// put is called under the lock.
func (t *Table[K, O, T]) put(r *row[K, T]) {
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
	if t.Changed != nil {
		t.Changed(r.key, before, after)
	}
}
