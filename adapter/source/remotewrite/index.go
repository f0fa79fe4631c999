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

// group is the subscriptions of one metric, by namespace, so that a series costs nothing for those of other namespaces.
type group struct {
	tenants    map[string]*tenant
	unlabelled atomic.Bool // a series without a namespace came
}

// tenant is what one namespace has of a metric. Nothing that it keeps is of another namespace.
type tenant struct {
	keyed      map[string]*keyed // by the label that names pods
	withoutPod example           // a series that names no pod
	unknownPod example           // one of a pod that no target has
}

// keyed is the subscriptions of one metric and namespace whose pods are named by the same label.
type keyed struct {
	podLabel      string // "": their series are of targets as a whole
	subscriptions int
	takers        map[string]*takers // by pod
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

// find calls visit for the members of a series, and returns why there are none. It looks up the labels of the series, however
// many labels name pods. Visits must be short.
func (x *index) find(namespace string, l labels, visit func([]*member)) result {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[l.get(metricName)]
	switch {
	case g == nil:
		return unselected
	case namespace == "":
		if !g.unlabelled.Load() {
			g.unlabelled.Store(true)
		}
		return noNamespaceLabel
	case g.tenants[namespace] == nil:
		return unknownPod
	}
	return g.tenants[namespace].find(l, visit)
}

// find is that of an index, for the series of its namespace.
func (t *tenant) find(l labels, visit func([]*member)) result {
	why := noPodLabel
	try := func(podLabel, pod string) {
		k := t.keyed[podLabel]
		switch {
		case k == nil:
		case k.takers[pod] != nil:
			why = taken
			visit(k.takers[pod].members)
		case why != taken:
			why = unknownPod
		}
	}
	try("", "") // targets as a whole
	for _, x := range l {
		try(x.name, x.value)
	}
	switch why {
	case noPodLabel:
		t.withoutPod.note(l)
	case unknownPod:
		t.unknownPod.note(l)
	}
	return why
}

// podLabels appends the labels that name the pods of a metric's series in a namespace.
func (x *index) podLabels(metric, namespace string, to []string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[metric]
	if g == nil || g.tenants[namespace] == nil {
		return to
	}
	for podLabel := range g.tenants[namespace].keyed {
		if podLabel != "" {
			to = append(to, podLabel)
		}
	}
	return to
}

// join adds a subscription of a namespace without members.
func (x *index) join(metric, podLabel, namespace string) *keyed {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[metric]
	if g == nil {
		g = &group{tenants: map[string]*tenant{}}
		x.groups[metric] = g
	}
	t := g.tenants[namespace]
	if t == nil {
		t = &tenant{keyed: map[string]*keyed{}}
		g.tenants[namespace] = t
	}
	k := t.keyed[podLabel]
	if k == nil {
		x.forgetAll(t) // series may be of two pod labels now
		k = &keyed{podLabel: podLabel, takers: map[string]*takers{}}
		t.keyed[podLabel] = k
	}
	k.subscriptions++
	return k
}

// leave undoes join. The members must have been removed.
func (x *index) leave(metric string, k *keyed, namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k.subscriptions--; k.subscriptions > 0 {
		return
	}
	g := x.groups[metric]
	t := g.tenants[namespace]
	if delete(t.keyed, k.podLabel); len(t.keyed) > 0 {
		return
	}
	if delete(g.tenants, namespace); len(g.tenants) == 0 {
		delete(x.groups, metric)
	}
}

// add adds a member.
func (x *index) add(k *keyed, m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := k.takers[m.pod]
	if of == nil {
		of = &takers{}
		k.takers[m.pod] = of
	}
	x.forget(of)
	of.members = append(of.members, m)
}

// remove undoes add.
func (x *index) remove(k *keyed, m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := k.takers[m.pod]
	x.forget(of)
	if of.members = slices.DeleteFunc(of.members, func(o *member) bool { return o == m }); len(of.members) == 0 {
		delete(k.takers, m.pod)
	}
}

// arrived returns what a namespace has of a metric, and whether series without a namespace came.
func (x *index) arrived(metric, namespace string) (t *tenant, unlabelled bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[metric]
	return g.tenants[namespace], g.unlabelled.Load()
}

// clearExamples clears all examples.
func (x *index) clearExamples() {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, g := range x.groups {
		g.unlabelled.Store(false)
		for _, t := range g.tenants {
			t.withoutPod.clear()
			t.unknownPod.clear()
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
