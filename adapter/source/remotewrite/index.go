package remotewrite

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/internal/promapi"
)

// index finds the members that read a series by its metric, namespace and pod: the pods of subscriptions. A lookup
// costs the same however many subscriptions the metric has. It is safe for concurrent use.
type index[M comparable] struct {
	tenancy promapi.Tenancy
	orders  atomic.Uint64 // see newOrder

	mu     sync.RWMutex
	groups map[string]*group[M]        // by metric
	cached map[string]*cachedSeries[M] // by their labels as written, one for each receivers at most
}

// group is the subscriptions of one metric, by namespace, so that a series costs nothing for those of other namespaces.
type group[M comparable] struct {
	tenants    map[string]*tenant[M]
	unlabelled atomic.Bool // a series without a namespace came
}

// tenant is the subscriptions of one metric and namespace. Nothing that it keeps belongs to another namespace.
type tenant[M comparable] struct {
	metrics    map[string]*metricIndex[M] // by the label that names pods
	withoutPod example                    // a series that names no pod
	unknownPod example                    // a series of a pod that no target has
}

// metricIndex is the subscriptions of one metric and namespace whose pods are named by the same label.
type metricIndex[M comparable] struct {
	podLabel      string // "": their series belong to targets as a whole
	subscriptions int
	receivers     map[string]*receivers[M] // by pod
}

// receivers are the members of one pod, one for each subscription.
type receivers[M comparable] struct {
	members []M
	cached  *cachedSeries[M] // a series that all of them take, nil if there is none yet
}

// cachedSeries is a series of remote write 1.0 whose members have been found before. Senders write the labels
// of a series in the same way in each request, so these are decoded and checked once. It is immutable.
type cachedSeries[M comparable] struct {
	labels   string // as written, one after the other
	identity []byte
	members  []M
	since    int64 // ms
}

// minCacheTime is the time for which a cached series is not replaced by another one of its pod (ms). Two that
// alternate would otherwise be looked up each time.
const minCacheTime = int64(60_000)

func newIndex[M comparable](t promapi.Tenancy) *index[M] {
	return &index[M]{tenancy: t, groups: map[string]*group[M]{}, cached: map[string]*cachedSeries[M]{}}
}

// isSubscribed reports whether any subscription reads a metric.
func (x *index[M]) isSubscribed(metric string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.groups[metric] != nil
}

// namespace returns the namespace that a series belongs to; "" = none.
func (x *index[M]) namespace(l decode.Labels) string {
	return x.tenancy.Namespace(l.Get(x.tenancy.NamespaceLabel))
}

// find calls visit for the members of a series, and returns why there are none. It looks up the labels of the
// series, however many labels name pods. Visits must be short.
func (x *index[M]) find(l decode.Labels, visit func([]M)) result {
	namespace := x.namespace(l)
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[l.Get(decode.MetricName)]
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

// find calls visit for the members of a series of the namespace, and returns why there are none.
func (t *tenant[M]) find(l decode.Labels, visit func([]M)) result {
	why := noPodLabel
	try := func(podLabel, pod string) {
		k := t.metrics[podLabel]
		switch {
		case k == nil:
		case k.receivers[pod] != nil:
			why = taken
			visit(k.receivers[pod].members)
		case why != taken:
			why = unknownPod
		}
	}
	try("", "") // targets as a whole
	for _, x := range l {
		try(x.Name, x.Value)
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
func (x *index[M]) podLabels(metric, namespace string, to []string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[metric]
	if g == nil || g.tenants[namespace] == nil {
		return to
	}
	for podLabel := range g.tenants[namespace].metrics {
		if podLabel != "" {
			to = append(to, podLabel)
		}
	}
	return to
}

// join adds a subscription of a namespace without members.
func (x *index[M]) join(metric, podLabel, namespace string) *metricIndex[M] {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[metric]
	if g == nil {
		g = &group[M]{tenants: map[string]*tenant[M]{}}
		x.groups[metric] = g
	}
	t := g.tenants[namespace]
	if t == nil {
		t = &tenant[M]{metrics: map[string]*metricIndex[M]{}}
		g.tenants[namespace] = t
	}
	k := t.metrics[podLabel]
	if k == nil {
		x.dropCachedOf(t) // a series may now have two pod labels
		k = &metricIndex[M]{podLabel: podLabel, receivers: map[string]*receivers[M]{}}
		t.metrics[podLabel] = k
	}
	k.subscriptions++
	return k
}

// leave undoes join. The members must have been removed.
func (x *index[M]) leave(metric string, k *metricIndex[M], namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k.subscriptions--; k.subscriptions > 0 {
		return
	}
	g := x.groups[metric]
	t := g.tenants[namespace]
	if delete(t.metrics, k.podLabel); len(t.metrics) > 0 {
		return
	}
	if delete(g.tenants, namespace); len(g.tenants) == 0 {
		delete(x.groups, metric)
	}
}

// newOrder returns a number that no other member has, by which members can be sorted.
func (x *index[M]) newOrder() uint64 { return x.orders.Add(1) }

// add adds a member, which is a pod, or with "" the target as a whole.
func (x *index[M]) add(k *metricIndex[M], pod string, m M) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := k.receivers[pod]
	if of == nil {
		of = &receivers[M]{}
		k.receivers[pod] = of
	}
	x.dropCached(of)
	of.members = append(of.members, m)
}

// remove undoes add.
func (x *index[M]) remove(k *metricIndex[M], pod string, m M) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := k.receivers[pod]
	x.dropCached(of)
	if of.members = slices.DeleteFunc(of.members, func(o M) bool { return o == m }); len(of.members) == 0 {
		delete(k.receivers, pod)
	}
}

// recall returns the cached series whose labels are written so, nil if there is none.
func (x *index[M]) recall(written []byte) *cachedSeries[M] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.cached[string(written)]
}

// cache keeps a series if its members are all that may take it.
func (x *index[M]) cache(written, identity []byte, members []M, l decode.Labels, now int64) {
	x.mu.RLock()
	of := x.onlyReceivers(l, members, now)
	x.mu.RUnlock()
	if of == nil {
		return
	}
	s := &cachedSeries[M]{string(written), slices.Clone(identity), slices.Clone(members), now}
	x.mu.Lock()
	defer x.mu.Unlock()
	if of = x.onlyReceivers(l, members, now); of == nil {
		return // they have changed meanwhile
	}
	x.dropCached(of)
	of.cached = s
	x.cached[s.labels] = s
}

// onlyReceivers returns the receivers of a series if they consist of these members, and none of another pod
// label may take it as well. It is nil while another series of the pod is to stay cached. The caller holds mu.
func (x *index[M]) onlyReceivers(l decode.Labels, members []M, now int64) *receivers[M] {
	g, namespace := x.groups[l.Get(decode.MetricName)], x.namespace(l)
	if g == nil || g.tenants[namespace] == nil || len(g.tenants[namespace].metrics) != 1 {
		return nil
	}
	var of *receivers[M]
	for _, k := range g.tenants[namespace].metrics {
		of = k.receivers[l.Get(k.podLabel)]
	}
	if of == nil || !slices.Equal(of.members, members) || of.cached != nil && now-of.cached.since < minCacheTime {
		return nil
	}
	return of
}

// dropCached makes find look up the next series of a pod again. The caller holds mu.
func (x *index[M]) dropCached(of *receivers[M]) {
	if of.cached != nil {
		delete(x.cached, of.cached.labels)
		of.cached = nil
	}
}

// dropCachedOf drops the cached series of all pods that a namespace has of a metric. The caller holds mu.
func (x *index[M]) dropCachedOf(t *tenant[M]) {
	for _, k := range t.metrics {
		for _, of := range k.receivers {
			x.dropCached(of)
		}
	}
}

// arrived returns the subscriptions of a metric in a namespace, and whether series without a namespace came.
func (x *index[M]) arrived(metric, namespace string) (t *tenant[M], unlabelled bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.groups[metric]
	return g.tenants[namespace], g.unlabelled.Load()
}

// clearExamples clears all examples.
func (x *index[M]) clearExamples() {
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
