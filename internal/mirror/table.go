// Package mirror keeps what is needed of the objects of a cluster at hand: tables that client-go's reflectors fill, in
// forms much smaller than the objects, and that know whether they can be trusted.
package mirror

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

// ErrUnsynced is why nothing is known of objects that have not been listed once.
var ErrUnsynced = errors.New("not listed yet")

// Patience is how long the API may be out of touch until what was seen last is no longer taken for the present. A
// restart of an API server is shorter.
const Patience = 30 * time.Second

// Table is what a reflector stores the objects of one kind in. Each is kept as what Keep makes of it, none where it says
// so; of the rest no copy is held, not even while the first ones arrive.
type Table[K comparable, O metav1.Object, T any] struct {
	Options[K, O, T]

	// Under the lock.
	rows   map[K]T
	synced bool
	lost   *time.Time // since when it has been out of touch with the API
	why    error
}

// Options say what a Table keeps, and how.
type Options[K comparable, O metav1.Object, T any] struct {
	What string // the objects, in errors: nodes
	Lock sync.Locker
	Now  func() time.Time

	// Key tells objects apart. Of all that there are at one moment no two have the same. It is not called under the lock.
	Key func(O) K
	// Keep makes of an object what is kept of it, and tells whether it matters at all. It is not called under the lock.
	Keep func(O) (T, bool)
	// Changed is told, under the lock, of each change, with the zero T for none. It may be nil.
	Changed func(key K, before, after T)
	// Patience is how long the table is trusted while the API is out of touch, if that is less than Patience, the constant;
	// 0 is that. What is trusted for less is not listed again any sooner.
	Patience time.Duration
}

// New returns an empty table.
func New[K comparable, O metav1.Object, T any](o Options[K, O, T]) *Table[K, O, T] {
	return &Table[K, O, T]{Options: o, rows: map[K]T{}}
}

// NameOf is a Key: namespace and name.
func NameOf[O metav1.Object](o O) types.NamespacedName {
	return types.NamespacedName{Namespace: unique.Make(o.GetNamespace()).Value(), Name: o.GetName()}
}

// Rows returns what is kept. It is read under the lock, and changed by the table alone.
func (t *Table[K, O, T]) Rows() map[K]T { return t.rows }

// State tells what keeps the table from being trusted, nil for nothing. It is called under the lock.
func (t *Table[K, O, T]) State(now time.Time) error {
	switch {
	case !t.synced && t.why != nil:
		return fmt.Errorf("%s: %w: %w", t.What, ErrUnsynced, t.why)
	case !t.synced:
		return fmt.Errorf("%s: %w", t.What, ErrUnsynced)
	case t.lost != nil && now.Sub(*t.lost) > t.patience():
		return fmt.Errorf("%s: out of touch for %s: %w", t.What, now.Sub(*t.lost).Round(time.Second), t.why)
	}
	return nil
}

func (o *Options[K, O, T]) patience() time.Duration {
	if o.Patience > 0 {
		return min(o.Patience, Patience)
	}
	return Patience
}

var _ cache.TransformingStore = (*Table[string, metav1.Object, int])(nil)

// row is an object in the form in which it is kept. Client-go tells it from others by its metadata.
type row[K comparable, T any] struct {
	name types.NamespacedName
	key  K
	kept T
	none bool // the object matters to nothing
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

// Replace implements cache.ReflectorStore: these are all the objects that there are.
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

// Resync implements cache.ReflectorStore. There is nothing to do.
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
