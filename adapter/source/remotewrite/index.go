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
}

// group is the subscriptions of one metric, by the labels that name their pods.
type group struct {
	keyed []*keyed
}

// labelNames are the labels that name the pod and the namespace.
type labelNames struct{ pod, namespace string }

// podKey names a pod in the cluster.
type podKey struct{ namespace, pod string }

// keyed is the pods of the subscriptions of one metric with the same labelNames.
type keyed struct {
	names         labelNames
	subscriptions int
	members       map[podKey][]*member
	namespaces    map[string][]string // of the pods of a name
	unmatched     unmatched
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

func newIndex() *index { return &index{groups: map[string]*group{}} }

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

// join adds a subscription without members.
func (x *index) join(metric string, names labelNames) *keyed {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[metric]
	if g == nil {
		g = &group{}
		x.groups[metric] = g
	}
	i := slices.IndexFunc(g.keyed, func(k *keyed) bool { return k.names == names })
	if i < 0 {
		i = len(g.keyed)
		g.keyed = append(g.keyed, &keyed{names: names, members: map[podKey][]*member{}, namespaces: map[string][]string{}})
	}
	g.keyed[i].subscriptions++
	return g.keyed[i]
}

// leave undoes join. The members must have been removed.
func (x *index) leave(metric string, k *keyed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k.subscriptions--
	if k.subscriptions > 0 {
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
	namespace := m.subscription.key.Namespace
	at := podKey{namespace, m.pod}
	if len(k.members[at]) == 0 {
		k.namespaces[m.pod] = append(k.namespaces[m.pod], namespace)
	}
	k.members[at] = append(k.members[at], m)
}

// remove undoes add.
func (x *index) remove(k *keyed, m *member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	namespace := m.subscription.key.Namespace
	at := podKey{namespace, m.pod}
	rest := slices.DeleteFunc(k.members[at], func(o *member) bool { return o == m })
	if len(rest) > 0 {
		k.members[at] = rest
		return
	}
	delete(k.members, at)
	others := slices.DeleteFunc(k.namespaces[m.pod], func(o string) bool { return o == namespace })
	if len(others) > 0 {
		k.namespaces[m.pod] = others
		return
	}
	delete(k.namespaces, m.pod)
}

// of returns the members of a series with some labels, or why there are none. Call it only in visits of find.
func (k *keyed) of(l labels) ([]*member, result) {
	pod := l.get(k.names.pod)
	if pod == "" {
		k.unmatched.withoutPod.note(l)
		return nil, noPodLabel
	}
	namespace := l.get(k.names.namespace)
	if namespace == "" {
		switch in := k.namespaces[pod]; len(in) {
		case 0:
		case 1:
			namespace = in[0]
		default:
			k.unmatched.ambiguous.note(l)
			return nil, ambiguousNamespace
		}
	}
	members := k.members[podKey{namespace, pod}]
	if len(members) == 0 {
		k.unmatched.unknownPod.note(l)
		return nil, unknownPod
	}
	return members, taken
}

// clearExamples clears all examples.
func (x *index) clearExamples() {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, g := range x.groups {
		for _, k := range g.keyed {
			k.unmatched.withoutPod.clear()
			k.unmatched.unknownPod.clear()
			k.unmatched.ambiguous.clear()
		}
	}
}

// unmatched are examples of series of a metric that belong to no subscription.
type unmatched struct {
	withoutPod, unknownPod, ambiguous example
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
