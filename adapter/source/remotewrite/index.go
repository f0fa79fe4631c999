package remotewrite

import (
	"slices"
	"sync"
)

// index finds the subscriptions that want a series, by its metric and pod, however many want series of that metric.
type index struct {
	mu     sync.RWMutex
	groups map[string]*group // by metric
}

// group is the subscriptions of one metric, by the labels that they know pods by.
type group struct {
	keyed []*keyed
}

// labelNames are the labels that subscriptions know pods by.
type labelNames struct{ pod, namespace string }

// podKey names a pod in the cluster.
type podKey struct{ namespace, pod string }

// keyed is the pods of the subscriptions of one metric that know pods by the same labels.
type keyed struct {
	names         labelNames
	subscriptions int
	members       map[podKey][]*member
	namespaces    map[string][]string // of the pods of a name
	strays        strays
}

// member is a pod of a subscription's fleet.
type member struct {
	subscription *subscription
	pod          string
	order        uint64 // of its own

	// Guarded by the subscription's mu:
	newest string // the last of the pod's instances, which nearly all samples are of
	since  int64  // its start (ms)
	track  *track // of the newest; nil before its first sample
}

func newIndex() *index { return &index{groups: map[string]*group{}} }

// wants tells whether any subscription is of a metric.
func (x *index) wants(metric string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.groups[metric] != nil
}

// find calls visit for each set of pods that subscriptions of a metric know by the same labels. Visits must be short.
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

// join makes room for the pods of a subscription.
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

// leave undoes join. All members have been removed before.
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

// add lets a member be found.
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

// of returns the members that a series with some labels is of, or why it is of none. It is for visits of find.
func (k *keyed) of(l labels) ([]*member, result) {
	pod := l.get(k.names.pod)
	if pod == "" {
		k.strays.withoutPod.note(l)
		return nil, noPodLabel
	}
	namespace := l.get(k.names.namespace)
	if namespace == "" {
		switch in := k.namespaces[pod]; len(in) {
		case 0:
		case 1:
			namespace = in[0]
		default:
			k.strays.ambiguous.note(l)
			return nil, ambiguousNamespace
		}
	}
	members := k.members[podKey{namespace, pod}]
	if len(members) == 0 {
		k.strays.unknownPod.note(l)
		return nil, unknownPod
	}
	return members, taken
}

// forgetStrays forgets all examples.
func (x *index) forgetStrays() {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, g := range x.groups {
		for _, k := range g.keyed {
			k.strays.withoutPod.clear()
			k.strays.unknownPod.clear()
			k.strays.ambiguous.clear()
		}
	}
}
