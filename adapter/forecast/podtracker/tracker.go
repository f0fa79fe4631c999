package podtracker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Tracker follows the pods that a Watcher feeds it. It is safe for concurrent use. The cost of a
// change of a pod depends on how many targets select it, not on how many there are.
type Tracker struct {
	retention time.Duration
	now       func() time.Time
	waits     waits

	mu         sync.Mutex
	namespaces map[string]*namespace
	targets    map[types.NamespacedName]*TargetPods
	outages    map[string]outage // by namespace whose pods are watched ("" is all)
}

// outage is a time in which changes of pods are not seen.
type outage struct {
	since time.Time
	why   error
	ended time.Time // when the API answered again, zero before
}

// catchUp is how long after an outage the changes that were missed may take to arrive.
const catchUp = 2 * time.Second

// NewTracker returns a Tracker that knows no pods.
func NewTracker(o Options) *Tracker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tracker{
		retention:  cmp.Or(o.Retention, DefaultRetention),
		now:        o.Now,
		namespaces: map[string]*namespace{},
		targets:    map[types.NamespacedName]*TargetPods{},
		outages:    map[string]outage{},
	}
}

// touch records whether changes of the pods of a namespace ("" for all) are seen: err is why not.
func (t *Tracker) touch(namespace string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	o, lost := t.outages[namespace]
	switch {
	case err != nil && !lost:
		t.outages[namespace] = outage{since: now, why: err}
	case err != nil:
		t.outages[namespace] = outage{since: o.since, why: err}
	case lost && o.ended.IsZero():
		o.ended = now
		t.outages[namespace] = o
	}
}

// listed records that all pods of a namespace ("" for all) are known.
func (t *Tracker) listed(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.outages, namespace)
}

// lost returns since when changes of the pods of a namespace are not seen, and why; zero if they are.
// The caller holds mu.
func (t *Tracker) lost(namespace string) (since time.Time, why error) {
	for _, scope := range []string{namespace, metav1.NamespaceAll} {
		o, lost := t.outages[scope]
		if lost && !o.ended.IsZero() && t.now().Sub(o.ended) > catchUp {
			delete(t.outages, scope)
			continue
		}
		if lost {
			return o.since, o.why
		}
	}
	return time.Time{}, nil
}

// Follow returns the pods that a selector selects in a namespace, under a key of the caller's.
// Until Forget, a key has one TargetPods, with the namespace of its first call. Another selector
// makes the pods that only the old one selects end now, and those that only the new one selects
// start now: a pod that was ready long ago begins to carry load of the target when it becomes a
// part of it.
func (t *Tracker) Follow(key types.NamespacedName, namespace string, selector labels.Selector) *TargetPods {
	f := t.follow(key, namespace, selector)
	f.deliver()
	return f
}

func (t *Tracker) follow(key types.NamespacedName, namespace string, selector labels.Selector) *TargetPods {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.targets[key]; old != nil {
		t.reselect(old, selector)
		return old
	}
	f := &TargetPods{
		tracker: t, namespace: namespace, selector: selector,
		retention: t.retention, now: t.now,
		members: map[types.UID]*member{},
	}
	t.targets[key] = f
	ns := t.namespace(namespace)
	ns.targets.add(f)
	now := t.now()
	for _, p := range slices.SortedFunc(ns.selectedBy(f), byReadiness) {
		f.join(p, now)
	}
	return f
}

// reselect gives a target another selector.
func (t *Tracker) reselect(f *TargetPods, selector labels.Selector) {
	if f.selector.String() == selector.String() {
		return
	}
	now := t.now()
	ns := t.namespace(f.namespace)
	ns.targets.remove(f)
	pods := f.reselect(selector)
	ns.targets.add(f)
	for p := range ns.selectedBy(f) {
		if !slices.Contains(p.targets, f) {
			p.targets = append(p.targets, f)
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, byReadiness)
	for _, p := range pods {
		f.observe(p, now, now)
	}
}

func byReadiness(a, b *pod) int {
	return cmp.Or(a.status.readyAt.Compare(b.status.readyAt), cmp.Compare(a.status.uid, b.status.uid))
}

// Forget stops following under a key. Its TargetPods is empty from then on.
func (t *Tracker) Forget(key types.NamespacedName) {
	t.mu.Lock()
	f := t.targets[key]
	if f != nil {
		t.forget(key, f)
	}
	t.mu.Unlock()
	if f != nil {
		f.deliver()
	}
}

func (t *Tracker) forget(key types.NamespacedName, f *TargetPods) {
	delete(t.targets, key)
	ns := t.namespace(f.namespace)
	ns.targets.remove(f)
	f.close()
	t.tidy(f.namespace)
}

// Update takes a new pod, or a new version of one.
func (t *Tracker) Update(p *corev1.Pod) { deliver(t.observe(recordOf(p), false)) }

// Delete takes the last version of a deleted pod.
func (t *Tracker) Delete(p *corev1.Pod) { deliver(t.delete(recordOf(p), false)) }

func deliver(targets []*TargetPods) {
	for _, f := range targets {
		f.deliver()
	}
}

// maxLag is how long ago a change that is seen at once may be recorded to have happened. If it is
// longer, the clock of who recorded it is behind that of this process, with whose times samples are
// read.
const maxLag = 10 * time.Second

// watched reports whether changes of the pods of a namespace are seen. The caller holds mu.
func (t *Tracker) watched(namespace string) bool {
	since, _ := t.lost(namespace)
	return since.IsZero()
}

// seenAt returns a recorded time by the clock of this process, of a change that is seen now.
func seenAt(recorded, now time.Time) time.Time {
	if !recorded.IsZero() && now.Sub(recorded) > maxLag {
		return now.Round(0)
	}
	return recorded
}

// observe takes a version of a pod and returns the targets that it may have changed. Live means that
// changes of pods are seen at once.
func (t *Tracker) observe(r *record, live bool) (touched []*TargetPods) {
	t.waits.add(r.status.uid, r.wait)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	ns := t.namespace(r.key.Namespace)
	p := ns.pods[r.key.Name]
	if p != nil && p.status.uid != r.status.uid {
		// Another pod of the same name, as of a StatefulSet; the event of the deletion is missing.
		ns.remove(p)
		touched = p.drop(now)
		p = nil
	}
	if p == nil {
		p = &pod{key: r.key}
	} else {
		r.status.rebase(&p.status, live && t.watched(r.key.Namespace), now)
	}
	ns.update(p, r)
	for _, f := range p.targets {
		f.observe(p, time.Time{}, now)
	}
	for f := range ns.targets.selecting(p) {
		if !slices.Contains(p.targets, f) {
			f.join(p, now)
		}
	}
	return append(touched, p.targets...)
}

// delete takes the deletion of a pod and returns the targets that it may have changed. Live is as with
// observe.
func (t *Tracker) delete(r *record, live bool) []*TargetPods {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(r.key.Namespace)
	defer t.tidy(r.key.Namespace)
	p := ns.pods[r.key.Name]
	if p == nil || p.status.uid != r.status.uid {
		return nil
	}
	ns.remove(p)
	r.status.rebase(&p.status, live && t.watched(r.key.Namespace), t.now())
	p.status = r.status
	return p.drop(t.now())
}

// others returns the known pods of a namespace ("" for all namespaces) except those given.
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

// PodState is the known state of a pod.
type PodState int

// The states of pods.
const (
	PodUnknown  PodState = iota // the pods of its namespace are not all known
	PodAbsent                   // there is no such pod
	PodStarting                 // it is not Ready
	PodReady
	PodLeaving // it is being deleted, or its containers have ended
)

func (t *Tracker) podState(namespace, name string) PodState {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p *pod
	if ns := t.namespaces[namespace]; ns != nil {
		p = ns.pods[name]
	}
	since, _ := t.lost(namespace)
	switch {
	case !since.IsZero():
		return PodUnknown
	case p == nil:
		return PodAbsent
	case p.status.leaving:
		return PodLeaving
	case p.status.active:
		return PodReady
	}
	return PodStarting
}

func (t *Tracker) namespace(name string) *namespace {
	ns := t.namespaces[name]
	if ns == nil {
		ns = newNamespace()
		t.namespaces[name] = ns
	}
	return ns
}

// tidy removes a namespace that is empty.
func (t *Tracker) tidy(name string) {
	if ns := t.namespaces[name]; ns != nil && ns.empty() {
		delete(t.namespaces, name)
	}
}
