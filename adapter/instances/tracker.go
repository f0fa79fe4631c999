package instances

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// DefaultRetention is how long ended instances are kept unless Options say otherwise.
const DefaultRetention = 30 * time.Minute

// Options of a Tracker; the zero value is usable.
type Options struct {
	// Retention is how long an instance is kept after its end was seen. It must cover the longest window, with its
	// redistribution timeout, that forecasts are made of. 0 = DefaultRetention.
	Retention time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Tracker follows pods. It is a handler for the events of any pod informer, whole or filtered, and is safe for
// concurrent use. An event of a pod costs as much as the fleets that select it, not as there are fleets.
type Tracker struct {
	retention time.Duration
	now       func() time.Time

	mu         sync.Mutex
	namespaces map[string]*namespace
	fleets     map[types.NamespacedName]*Fleet
}

var _ cache.ResourceEventHandler = (*Tracker)(nil)

// NewTracker returns a Tracker that knows no pods.
func NewTracker(o Options) *Tracker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tracker{
		retention:  cmp.Or(o.Retention, DefaultRetention),
		now:        o.Now,
		namespaces: map[string]*namespace{},
		fleets:     map[types.NamespacedName]*Fleet{},
	}
}

// Follow returns the fleet of the pods that a selector selects in a namespace, under a key of the caller's. Pods that
// are known already are replayed to the observer (which may be nil) in order of readiness. The same namespace and
// selector again return the same fleet and change nothing, its observer included; others replace it, and the fleet
// that was there before is empty from then on.
func (t *Tracker) Follow(key types.NamespacedName, namespace string, selector labels.Selector, o Observer) *Fleet {
	f, touched := t.follow(key, namespace, selector, o)
	deliver(touched)
	return f
}

func (t *Tracker) follow(key types.NamespacedName, namespace string, selector labels.Selector, o Observer) (f *Fleet, touched []*Fleet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.fleets[key]; old != nil {
		if old.namespace == namespace && old.selector.String() == selector.String() {
			return old, nil
		}
		t.forget(key, old)
		touched = append(touched, old)
	}
	f = &Fleet{
		namespace: namespace, selector: selector,
		retention: t.retention, now: t.now,
		members: map[types.UID]*member{},
	}
	if o != nil {
		f.watches = []*watch{{o}}
	}
	t.fleets[key] = f
	ns := t.namespace(namespace)
	ns.fleets.add(f)
	now := t.now()
	for _, p := range slices.SortedFunc(ns.selectedBy(f), byReadiness) {
		f.join(p, now)
	}
	return f, append(touched, f)
}

func byReadiness(a, b *pod) int {
	return cmp.Or(a.status.readyAt.Compare(b.status.readyAt), cmp.Compare(a.status.uid, b.status.uid))
}

// Forget ends the following under a key. Its fleet is empty from then on.
func (t *Tracker) Forget(key types.NamespacedName) {
	t.mu.Lock()
	f := t.fleets[key]
	if f != nil {
		t.forget(key, f)
	}
	t.mu.Unlock()
	if f != nil {
		f.deliver()
	}
}

func (t *Tracker) forget(key types.NamespacedName, f *Fleet) {
	delete(t.fleets, key)
	ns := t.namespace(f.namespace)
	ns.fleets.remove(f)
	f.close()
	t.tidy(f.namespace)
}

// OnAdd implements cache.ResourceEventHandler.
func (t *Tracker) OnAdd(obj any, _ bool) { t.upsert(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (t *Tracker) OnUpdate(_, obj any) { t.upsert(obj) }

// OnDelete implements cache.ResourceEventHandler.
func (t *Tracker) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	deliver(t.delete(p))
}

func (t *Tracker) upsert(obj any) {
	if p, ok := obj.(*corev1.Pod); ok {
		deliver(t.observe(p))
	}
}

func deliver(fleets []*Fleet) {
	for _, f := range fleets {
		f.deliver()
	}
}

// observe takes a version of a pod and returns the fleets that it may have changed.
func (t *Tracker) observe(obj *corev1.Pod) (touched []*Fleet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	ns := t.namespace(obj.Namespace)
	p := ns.pods[obj.Name]
	if p != nil && p.status.uid != obj.UID {
		// Another pod of the same name, as stateful sets make them; the deletion of the first was not shown.
		ns.remove(p)
		touched = p.drop(now)
		p = nil
	}
	if p == nil {
		p = &pod{key: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
	}
	ns.update(p, statusOf(obj))
	for _, f := range p.fleets {
		f.observe(p, now)
	}
	for f := range ns.fleets.selecting(p) {
		if !slices.Contains(p.fleets, f) {
			f.join(p, now)
		}
	}
	return append(touched, p.fleets...)
}

// delete takes the deletion of a pod and returns the fleets that it may have changed.
func (t *Tracker) delete(obj *corev1.Pod) []*Fleet {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(obj.Namespace)
	defer t.tidy(obj.Namespace)
	p := ns.pods[obj.Name]
	if p == nil || p.status.uid != obj.UID {
		return nil
	}
	ns.remove(p)
	p.status = statusOf(obj)
	return p.drop(t.now())
}

func (t *Tracker) namespace(name string) *namespace {
	ns := t.namespaces[name]
	if ns == nil {
		ns = newNamespace()
		t.namespaces[name] = ns
	}
	return ns
}

// tidy forgets a namespace of which nothing is left.
func (t *Tracker) tidy(name string) {
	if ns := t.namespaces[name]; ns != nil && ns.empty() {
		delete(t.namespaces, name)
	}
}
