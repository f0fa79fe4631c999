// Package forecaster keeps one pipeline per PredictedMetric fed with samples and publishes what it forecasts as
// immutable snapshots. Reading a snapshot never waits for a forecast to be made.
package forecaster

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/snapshot"
)

// Period is how often forecasts are made at the most.
const Period = time.Second

// Forecaster owns the feeds of all PredictedMetrics. It is safe for concurrent use.
type Forecaster struct {
	now        func() time.Time
	telemetry  *telemetry
	workspaces sync.Pool

	mu          sync.RWMutex
	feeds       map[types.NamespacedName]*Feed
	byNamespace map[string]map[string]*Feed
	byTarget    map[target][]*Feed // lists are replaced, not changed

	startedAt, lastRound time.Time
	settled              bool // every PredictedMetric had its chance to get data
}

// New returns a forecaster that reads the time from now and registers its metrics with r.
func New(now func() time.Time, r prometheus.Registerer) *Forecaster {
	f := &Forecaster{
		now:         now,
		workspaces:  sync.Pool{New: func() any { return &workspace{} }},
		feeds:       map[types.NamespacedName]*Feed{},
		byNamespace: map[string]map[string]*Feed{},
		byTarget:    map[target][]*Feed{},
	}
	f.telemetry = newTelemetry(r, f)
	return f
}

// Set adds a PredictedMetric or gives it another configuration. What has been read stays, unless it was read from
// another source or target: then the feed is a new one, and what still arrives for the old one is lost.
func (f *Forecaster) Set(key types.NamespacedName, c Config) (*Feed, error) {
	f.mu.RLock()
	feed := f.feeds[key]
	f.mu.RUnlock()
	if feed != nil && feed.readsFrom(c.Origin) {
		return feed, feed.configure(c)
	}
	feed, err := newFeed(key, c, f.now)
	if err != nil {
		return nil, err
	}
	f.put(key, feed)
	return feed, nil
}

// Refuse has a PredictedMetric answer that its spec is refused, and why.
func (f *Forecaster) Refuse(key types.NamespacedName, c Config, why error) {
	f.put(key, newRefused(key, c, f.now, why))
}

func (f *Forecaster) put(key types.NamespacedName, feed *Feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(f.feeds[key])
	f.byTarget[feed.scaled] = append(slices.Clip(f.byTarget[feed.scaled]), feed)
	f.feeds[key] = feed
	if f.byNamespace[key.Namespace] == nil {
		f.byNamespace[key.Namespace] = map[string]*Feed{}
	}
	f.byNamespace[key.Namespace][key.Name] = feed
}

// Remove forgets a PredictedMetric and everything read for it.
func (f *Forecaster) Remove(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(f.feeds[key])
	delete(f.feeds, key)
	delete(f.byNamespace[key.Namespace], key.Name)
	if len(f.byNamespace[key.Namespace]) == 0 {
		delete(f.byNamespace, key.Namespace)
	}
}

// leave takes a feed, which may be nil, out of those of its target.
func (f *Forecaster) leave(feed *Feed) {
	if feed == nil {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(f.byTarget[feed.scaled]), func(x *Feed) bool { return x == feed })
	f.byTarget[feed.scaled] = rest
	if len(rest) == 0 {
		delete(f.byTarget, feed.scaled)
	}
}

// Get returns the snapshot of one PredictedMetric.
func (f *Forecaster) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	feed, ok := f.feeds[key]
	if !ok {
		return snapshot.Snapshot{}, false
	}
	return f.snapshot(feed), true
}

// snapshot returns what a feed has published, with what the PredictedMetrics of its target come to together.
func (f *Forecaster) snapshot(feed *Feed) snapshot.Snapshot {
	s := feed.Snapshot()
	others := f.byTarget[feed.scaled]
	all := make([]snapshot.Snapshot, 0, 4)
	all = append(all, s)
	for _, other := range others {
		if other != feed {
			all = append(all, *other.published.Load())
		}
	}
	s.Joint = snapshot.Join(all)
	return s
}

// List returns the snapshots of a namespace, sorted by name.
func (f *Forecaster) List(namespace string) []snapshot.Snapshot {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]snapshot.Snapshot, 0, len(f.byNamespace[namespace]))
	for _, feed := range f.byNamespace[namespace] {
		out = append(out, f.snapshot(feed))
	}
	slices.SortFunc(out, func(a, b snapshot.Snapshot) int { return strings.Compare(a.Metric.Name, b.Metric.Name) })
	return out
}

func (f *Forecaster) all() []*Feed {
	f.mu.RLock()
	defer f.mu.RUnlock()
	feeds := make([]*Feed, 0, len(f.feeds))
	for _, feed := range f.feeds {
		feeds = append(feeds, feed)
	}
	return feeds
}

// Run makes forecasts once a Period until the context ends, on the whole seconds of the clock: replicas then forecast at
// the same moments.
func (f *Forecaster) Run(ctx context.Context) error {
	begun := f.now()
	f.mu.Lock()
	f.startedAt, f.lastRound = begun, begun
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(begun.Truncate(Period).Add(Period).Sub(begun)):
	}
	ticker := time.NewTicker(Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.runAll()
		}
	}
}

// runAll makes a forecast for every feed, on all cores.
func (f *Forecaster) runAll() {
	started := f.now()
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for chunk := range slices.Chunk(f.all(), 64) {
		workers.Go(func() error {
			w := f.workspaces.Get().(*workspace)
			defer f.workspaces.Put(w)
			for _, feed := range chunk {
				f.telemetry.ran(feed.run(f.now(), w))
			}
			return nil
		})
	}
	_ = workers.Wait() // the workers return no errors
	ended := f.now()
	f.telemetry.round.Observe(ended.Sub(started).Seconds())
	f.mu.Lock()
	f.lastRound = ended
	f.mu.Unlock()
}
