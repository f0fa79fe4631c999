// Package forecaster keeps one pipeline per PredictedMetric fed with samples and publishes what it forecasts as
// immutable snapshots. Reading a snapshot never waits for a forecast to be made.
package forecaster

import (
	"context"
	"errors"
	"fmt"
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

// Period is how often forecasts are made.
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
	settled              bool // every PredictedMetric has had its time to get data
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

// Set adds a PredictedMetric or changes its configuration. The samples stay, unless they are of another source or target:
// then the feed is a new one, and samples that still arrive for the old one are lost.
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

// Reject publishes for a PredictedMetric that its spec was rejected, and why.
func (f *Forecaster) Reject(key types.NamespacedName, c Config, why error) {
	f.put(key, newRejected(key, c, f.now, why))
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

// Remove removes a PredictedMetric and its samples.
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

// leave removes a feed, which may be nil, from those of its target.
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

// snapshot returns the published snapshot of a feed, with the combined decision of its target.
func (f *Forecaster) snapshot(feed *Feed) snapshot.Snapshot {
	s := feed.Snapshot()
	others := f.byTarget[feed.scaled]
	all := make([]snapshot.Snapshot, 0, 4)
	all = append(all, s)
	for _, other := range others {
		if other != feed {
			all = append(all, other.latest())
		}
	}
	s.Combined = snapshot.Combine(all)
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

// Run makes forecasts once a Period until the context ends, on whole seconds of the clock, so that all replicas forecast at
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

const (
	// startLimit is how long a start waits for the first data of every PredictedMetric.
	startLimit = time.Minute
	// stallLimit is after how long without a round of forecasts the forecaster is not ready.
	stallLimit = 10 * Period
)

// Ready returns why there is no data to serve, nil if there is. After the start it waits until every PredictedMetric whose
// target has ready pods has been read for long enough, at most a minute: a rolling update of the adapter leaves no gap.
// Later one PredictedMetric without data does not count: an error that says why is better than an unreachable server.
func (f *Forecaster) Ready() error {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.startedAt.IsZero() {
		return errors.New("the forecaster has not started")
	}
	if idle := now.Sub(f.lastRound); idle > stallLimit {
		return fmt.Errorf("no forecast for %s", idle.Round(time.Second))
	}
	if f.settled || now.Sub(f.startedAt) > startLimit {
		f.settled = true
		return nil
	}
	waiting := 0
	for _, feed := range f.feeds {
		s := feed.Snapshot()
		var u *snapshot.Unavailable
		if errors.As(s.Err, &u) && (u.Reason == snapshot.WaitingForSamples || u.Reason == snapshot.WarmingUp) && s.Ready > 0 {
			waiting++
		}
	}
	if waiting > 0 {
		return fmt.Errorf("%d of %d PredictedMetrics wait for their first data", waiting, len(f.feeds))
	}
	f.settled = true
	return nil
}
