package remotewrite

import (
	"slices"
	"sync"
	"sync/atomic"
)

// index finds the subscriptions of a series by its metric and pod, however many subscriptions the metric has.
type index struct {
	mu     sync.RWMutex
	groups map[string]*group // by metric
	known  map[string]*known // by their labels as written, one for each takers at most
}

// group is the subscriptions of one metric, by the labels that name their pods.
type group struct {
	keyed []*keyed
}

// keyed is the subscriptions of one metric whose pods are named by the same label.
type keyed struct {
	podLabel   string             // "": their series are of targets as a whole
	tenants    map[string]*tenant // by namespace
	unlabelled atomic.Bool        // a series of nobody's namespace came
}

// tenant is what one namespace has of a keyed. Nothing that it keeps is of another namespace.
type tenant struct {
	subscriptions int
	takers        map[string]*takers // by pod
	withoutPod    example            // a series of the namespace that names no pod
	unknownPod    example            // one of a pod that no target has
}

// takers are the members of one pod, one for each subscription.
type takers struct {
	members []*member
	known   *known // a series that all of them take, nil if there is none yet
}

// member is a pod of a subscription's fleet.
type member struct {
	subscription *subscription
	pod          string
	order        uint64 // of its own

	// Guarded by the subscription's mu:
	newest string // the last of the pod's instances, to which nearly all samples belong
	since  int64  // its start (ms)
	track  *track // of the newest; nil before its first sample
}

func newIndex() *index { return &index{groups: map[string]*group{}, known: map[string]*known{}} }

// wants returns whether any subscription is of a metric.
func (x *index) wants(metric string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.groups[metric] != nil
}

// find calls visit for the keyed pods of a metric. Visits must be short.
func (x *index) find(metric string, visit func(*keyed)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[metric]
	if g == nil {
		return
	}
	for _, k := range g.keyed {
		visit(k)
	}
}

// podLabels appends the labels that name the pods of a metric's series.
func (x *index) podLabels(metric string, to []string) []string {
	x.find(metric, func(k *keyed) {
		if k.podLabel != "" {
			to = append(to, k.podLabel)
		}
	})
	return to
}

// join adds a subscription of a namespace without members.
func (x *index) join(metric, podLabel, namespace string) *keyed {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[metric]
	if g == nil {
		g = &group{}
		x.groups[metric] = g
	}
	i := slices.IndexFunc(g.keyed, func(k *keyed) bool { return k.podLabel == podLabel })
	if i < 0 {
		i = len(g.keyed)
		g.keyed = append(g.keyed, &keyed{podLabel: podLabel, tenants: map[string]*tenant{}})
	}
	k := g.keyed[i]
	if k.tenants[namespace] == nil {
		x.forgetAll(g, namespace) // series may be of two pod labels now
		k.tenants[namespace] = &tenant{takers: map[string]*takers{}}
	}
	k.tenants[namespace].subscriptions++
	return k
}

// leave undoes join. The members must have been removed.
func (x *index) leave(metric string, k *keyed, namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k.tenants[namespace].subscriptions--; k.tenants[namespace].subscriptions > 0 {
		return
	}
	delete(k.tenants, namespace)
	if len(k.tenants) > 0 {
		return
	}
	g := x.groups[metric]
	g.keyed = slices.DeleteFunc(g.keyed, func(o *keyed) bool { return o == k })
	if len(g.keyed) == 0 {
		delete(x.groups, metric)
	}
}

// add adds a member.
func (x *index) add(k *keyed, m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := k.tenants[m.subscription.key.Namespace]
	of := t.takers[m.pod]
	if of == nil {
		of = &takers{}
		t.takers[m.pod] = of
	}
	x.forget(of)
	of.members = append(of.members, m)
}

// remove undoes add.
func (x *index) remove(k *keyed, m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := k.tenants[m.subscription.key.Namespace]
	of := t.takers[m.pod]
	x.forget(of)
	if of.members = slices.DeleteFunc(of.members, func(o *member) bool { return o == m }); len(of.members) == 0 {
		delete(t.takers, m.pod)
	}
}

// of returns the members of a series of a namespace, or why there are none. Call it only in visits of find.
func (k *keyed) of(namespace string, l labels) ([]*member, result) {
	if namespace == "" {
		if !k.unlabelled.Load() {
			k.unlabelled.Store(true)
		}
		return nil, noNamespaceLabel
	}
	t := k.tenants[namespace]
	if t == nil {
		return nil, unknownPod
	}
	pod := l.get(k.podLabel)
	if pod == "" && k.podLabel != "" { // else the series are of no pod
		t.withoutPod.note(l)
		return nil, noPodLabel
	}
	of := t.takers[pod]
	if of == nil {
		t.unknownPod.note(l)
		return nil, unknownPod
	}
	return of.members, taken
}

// arrived returns the tenant of a namespace, and whether series of nobody's came.
func (x *index) arrived(k *keyed, namespace string) (t *tenant, unlabelled bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return k.tenants[namespace], k.unlabelled.Load()
}

// clearExamples clears all examples.
func (x *index) clearExamples() {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, g := range x.groups {
		for _, k := range g.keyed {
			k.unlabelled.Store(false)
			for _, t := range k.tenants {
				t.withoutPod.clear()
				t.unknownPod.clear()
			}
		}
	}
}

// example is one series, kept until it is cleared.
type example struct{ text atomic.Pointer[string] }

// note keeps a series unless there is one.
func (e *example) note(l labels) {
	if e.text.Load() != nil {
		return
	}
	text := shorten(l.String())
	e.text.CompareAndSwap(nil, &text)
}

// get returns the example; "" without one.
func (e *example) get() string {
	if text := e.text.Load(); text != nil {
		return *text
	}
	return ""
}

func (e *example) clear() { e.text.Store(nil) }

// shorten keeps descriptions of series readable.
func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
