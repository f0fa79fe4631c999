package instances

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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

// Tracker follows pods, of which a Watcher or anybody else tells it. It is safe for concurrent use. A change of a pod
// costs as much as the fleets that select it, not as there are fleets.
type Tracker struct {
	retention time.Duration
	now       func() time.Time

	mu         sync.Mutex
	namespaces map[string]*namespace
	fleets     map[types.NamespacedName]*Fleet
}

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

// Update takes a new pod or a new version of one.
func (t *Tracker) Update(p *corev1.Pod) { deliver(t.observe(recordOf(p))) }

// Delete takes the last version of a pod that is no more.
func (t *Tracker) Delete(p *corev1.Pod) { deliver(t.delete(recordOf(p))) }

func deliver(fleets []*Fleet) {
	for _, f := range fleets {
		f.deliver()
	}
}

// observe takes a version of a pod and returns the fleets that it may have changed.
func (t *Tracker) observe(r *record) (touched []*Fleet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	ns := t.namespace(r.key.Namespace)
	p := ns.pods[r.key.Name]
	if p != nil && p.status.uid != r.status.uid {
		// Another pod of the same name, as stateful sets make them; the deletion of the first was not shown.
		ns.remove(p)
		touched = p.drop(now)
		p = nil
	}
	if p == nil {
		p = &pod{key: r.key}
	}
	ns.update(p, r.status)
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
func (t *Tracker) delete(r *record) []*Fleet {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(r.key.Namespace)
	defer t.tidy(r.key.Namespace)
	p := ns.pods[r.key.Name]
	if p == nil || p.status.uid != r.status.uid {
		return nil
	}
	ns.remove(p)
	p.status = r.status
	return p.drop(t.now())
}

// others returns what is known of the pods of a namespace ("" for all namespaces) that are not among those given.
func (t *Tracker) others(namespace string, among map[types.NamespacedName]bool) []*record {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*record
	for name, ns := range t.namespaces {
		if namespace != "" && name != namespace {
			continue
		}
		for _, p := range ns.pods {
			if !among[p.key] {
				out = append(out, &record{key: p.key, status: p.status})
			}
		}
	}
	return out
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
