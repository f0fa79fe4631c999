package forecaster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// registry is the feeds of all PredictedMetrics, by their keys, namespaces and scale targets. It is
// safe for concurrent use.
type registry struct {
	nodes func() time.Duration // Options.NodeStartupTime
	added atomic.Int64         // how many feeds have been added

	mu          sync.RWMutex
	feeds       map[types.NamespacedName]*Feed
	byNamespace map[string]map[string]*Feed
	byTarget    map[target]*group
}

func newRegistry(nodes func() time.Duration) *registry {
	return &registry{
		nodes: nodes,
		feeds: map[types.NamespacedName]*Feed{}, byNamespace: map[string]map[string]*Feed{},
		byTarget: map[target]*group{},
	}
}

func (r *registry) put(feed *Feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := feed.key
	old := r.feeds[key]
	feed.target.nodes = r.nodes
	feed.group = r.byTarget[feed.scaled]
	if feed.group == nil {
		feed.group = &group{}
		r.byTarget[feed.scaled] = feed.group
	}
	feed.group.add(feed)
	r.leave(old)
	r.feeds[key] = feed
	r.added.Add(1)
	if r.byNamespace[key.Namespace] == nil {
		r.byNamespace[key.Namespace] = map[string]*Feed{}
	}
	r.byNamespace[key.Namespace][key.Name] = feed
}

func (r *registry) remove(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(r.feeds[key])
	delete(r.feeds, key)
	delete(r.byNamespace[key.Namespace], key.Name)
	if len(r.byNamespace[key.Namespace]) == 0 {
		delete(r.byNamespace, key.Namespace)
	}
}

// leave removes a feed, which may be nil, from those of its target.
func (r *registry) leave(feed *Feed) {
	if feed != nil && feed.group.remove(feed) {
		delete(r.byTarget, feed.scaled)
	}
}

// get returns the feed of a PredictedMetric, nil if there is none.
func (r *registry) get(key types.NamespacedName) *Feed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.feeds[key]
}

// in returns the feeds of a namespace.
func (r *registry) in(namespace string) []*Feed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.byNamespace[namespace]))
}

func (r *registry) all() []*Feed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.feeds))
}

func (r *registry) groups() []*group {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.byTarget))
}

func byKey(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
