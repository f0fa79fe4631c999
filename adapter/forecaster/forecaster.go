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
	now       func() time.Time
	telemetry *telemetry

	mu          sync.RWMutex
	feeds       map[types.NamespacedName]*Feed
	byNamespace map[string]map[string]*Feed

	startedAt, lastRound time.Time
	settled              bool // every PredictedMetric had its chance to get data
}

// New returns a forecaster that reads the time from now and registers its metrics with r.
func New(now func() time.Time, r prometheus.Registerer) *Forecaster {
	f := &Forecaster{
		now:         now,
		feeds:       map[types.NamespacedName]*Feed{},
		byNamespace: map[string]map[string]*Feed{},
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
	if feed != nil && feed.readsFrom(c.Source) {
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
	delete(f.feeds, key)
	delete(f.byNamespace[key.Namespace], key.Name)
	if len(f.byNamespace[key.Namespace]) == 0 {
		delete(f.byNamespace, key.Namespace)
	}
}

// Get returns the snapshot of one PredictedMetric.
func (f *Forecaster) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	f.mu.RLock()
	feed, ok := f.feeds[key]
	f.mu.RUnlock()
	if !ok {
		return snapshot.Snapshot{}, false
	}
	return feed.Snapshot(), true
}

// List returns the snapshots of a namespace, sorted by name.
func (f *Forecaster) List(namespace string) []snapshot.Snapshot {
	f.mu.RLock()
	feeds := make([]*Feed, 0, len(f.byNamespace[namespace]))
	for _, feed := range f.byNamespace[namespace] {
		feeds = append(feeds, feed)
	}
	f.mu.RUnlock()
	out := make([]snapshot.Snapshot, 0, len(feeds))
	for _, feed := range feeds {
		out = append(out, feed.Snapshot())
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
			for _, feed := range chunk {
				f.telemetry.ran(feed.run(f.now()))
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
