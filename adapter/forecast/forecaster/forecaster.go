// Package forecaster keeps one pipeline per PredictedMetric fed with samples and publishes what it forecasts as
// immutable snapshots. Reading a snapshot never waits for a forecast to be made.
package forecaster

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/share"
)

// Period is how often forecasts are made.
const Period = time.Second

// Forecaster owns the feeds of all PredictedMetrics. It is safe for concurrent use.
type Forecaster struct {
	now        func() time.Time
	feeds      *registry
	telemetry  *telemetry
	liveness   liveness
	readiness  readiness
	workspaces *workspaces
	budget     budget
	tracing    tracer
}

// Options configure a forecaster. The zero value is ready.
type Options struct {
	// MaxReadings is how many readings the forecasts of one namespace may keep together. 0 = DefaultMaxReadings.
	MaxReadings int64
	// MaxSamples is how many samples the forecasts of all namespaces may keep together. They share it. 0 = any number.
	MaxSamples int64
	// NodeStartupTime returns how long a node takes to start, 0 while there need not be a forecast
	// for then. nil: there never is one.
	NodeStartupTime func() time.Duration
}

// New returns a forecaster that reads the time from now and registers its metrics with r.
func New(now func() time.Time, r prometheus.Registerer, o Options) *Forecaster {
	f := &Forecaster{
		now:        now,
		feeds:      newRegistry(o.NodeStartupTime),
		workspaces: newWorkspaces(),
		budget:     budget{maxReadings: cmp.Or(o.MaxReadings, DefaultMaxReadings), maxSamples: o.MaxSamples},
	}
	f.readiness.seen.Store(-1)
	f.telemetry = newTelemetry(r, f)
	return f
}

// Set adds a PredictedMetric or changes its configuration. The samples stay, unless they are of
// another source or target: then the feed is a new one, and samples that still arrive for the old
// one are lost.
func (f *Forecaster) Set(key types.NamespacedName, c Config) (*Feed, error) {
	feed := f.feeds.get(key)
	if feed != nil && feed.readsFrom(c.Origin) {
		return feed, reconfigure(feed, c)
	}
	feed, err := newFeed(key, c, f.now)
	if err != nil {
		return nil, err
	}
	f.feeds.put(feed)
	return feed, nil
}

// reconfigure changes a feed. One that enters or leaves dry run leaves or enters the joint decision
// of its target at once.
func reconfigure(feed *Feed, c Config) error {
	before := feed.dryRun()
	err := feed.configure(c)
	if feed.dryRun() != before {
		feed.group.join()
	}
	return err
}

// Reject publishes for a PredictedMetric that its spec was rejected, and why.
func (f *Forecaster) Reject(key types.NamespacedName, c Config, why error) {
	f.feeds.put(newRejected(key, c, f.now, why))
}

// Remove removes a PredictedMetric and its samples.
func (f *Forecaster) Remove(key types.NamespacedName) { f.feeds.remove(key) }

// Learned returns what has been learned of the loads.
func (f *Forecaster) Learned() Learned { return Learned{f.feeds} }

// Get returns the snapshot of one PredictedMetric.
func (f *Forecaster) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	feed := f.feeds.get(key)
	if feed == nil {
		return snapshot.Snapshot{}, false
	}
	return feed.Snapshot(), true
}

// List returns the snapshots of a namespace, sorted by name.
func (f *Forecaster) List(namespace string) []snapshot.Snapshot {
	feeds := f.feeds.in(namespace)
	out := make([]snapshot.Snapshot, 0, len(feeds))
	for _, feed := range feeds {
		out = append(out, feed.Snapshot())
	}
	slices.SortFunc(out, func(a, b snapshot.Snapshot) int { return strings.Compare(a.Metric.Name, b.Metric.Name) })
	return out
}

// All returns the snapshots of all PredictedMetrics, in any order.
func (f *Forecaster) All() []snapshot.Snapshot {
	feeds := f.feeds.all()
	out := make([]snapshot.Snapshot, len(feeds))
	for i, feed := range feeds {
		out[i] = feed.Snapshot()
	}
	return out
}

// Trace returns how the newest forecast of a PredictedMetric came about, and false if there is no
// such PredictedMetric. It is nil while there is no forecast, and at first: forecasts are traced
// from the first call on, for as long as calls go on, those of maxWatched PredictedMetrics at most.
func (f *Forecaster) Trace(key types.NamespacedName) (*snapshot.Trace, bool) {
	feed := f.feeds.get(key)
	if feed == nil {
		return nil, false
	}
	f.tracing.extend(feed, f.now())
	return feed.watch.trace.Load(), true
}

// Run makes forecasts once a Period until the context ends, in rounds that begin on whole seconds
// of the clock, so that all replicas forecast at the same moments.
func (f *Forecaster) Run(ctx context.Context) error {
	begun := f.now()
	f.readiness.start(begun)
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
			f.round(share.Spread(ctx, Period))
		}
	}
}

// chunkSize is how many forecasts are made at a time.
const chunkSize = 16

// round makes a forecast for every feed, on as many cores as it takes, and joins those of each
// target. It waits before each part, with the share of the forecasts that came before. The time of
// that is not part of how long the round took.
func (f *Forecaster) round(wait func(share float64) time.Duration) {
	started := f.now()
	var waited time.Duration
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	added := f.feeds.added.Load()
	feeds := f.feeds.all()
	// In one order, so that each has its forecasts at its own part of each second, on every replica.
	slices.SortFunc(feeds, func(a, b *Feed) int { return byKey(a.key, b.key) })
	tasks := make([]task, len(feeds))
	for i, feed := range feeds {
		tasks[i] = task{Feed: feed, keeping: feed.footprint.keeping(feed.settings.Load(), &feed.target, started)}
		f.liveness.progress.Add(1)
	}
	f.budget.plan(tasks)
	done := 0
	for chunk := range slices.Chunk(tasks, chunkSize) {
		waited += wait(float64(done) / float64(len(tasks)))
		done += len(chunk)
		workers.Go(func() error {
			for i := range chunk {
				f.perform(&chunk[i])
				f.liveness.progress.Add(1)
			}
			return nil
		})
	}
	_ = workers.Wait() // the workers return no errors
	f.workspaces.endRound()
	for _, g := range f.feeds.groups() {
		g.join()
	}
	ended := f.now()
	f.readiness.endRound(feeds, added, ended)
	f.telemetry.round.Observe((ended.Sub(started) - waited).Seconds())
	f.liveness.progress.Add(1)
}

func (f *Forecaster) perform(t *task) {
	if t.refused != nil {
		f.telemetry.ran(t.stop(t.refused, f.now()))
		return
	}
	f.workspaces.run(t.total(), func(w *workspace) {
		now := f.now()
		reason := t.run(now, w)
		f.telemetry.ran(reason)
		if reason == "" {
			f.readiness.extendValidity(t.published.Load().ValidUntil(), now)
		}
	})
}

// Ready returns why there is no data to serve, nil if there is.
func (f *Forecaster) Ready() error { return f.readiness.check(f.now(), f.feeds.added.Load()) }

// Alive returns an error if no forecast has been made for minutes though Run runs, which only a
// restart ends. Forecasts are made from memory, so neither an API server nor a source that is down
// is a reason. It never waits.
func (f *Forecaster) Alive() error {
	if f.readiness.startedAt.Load() == nil {
		return nil // it waits for the cluster
	}
	if idle := f.liveness.stalled(f.now()); idle >= hangLimit {
		return fmt.Errorf("the forecaster hangs: no forecast was made for %s", idle.Round(time.Second))
	}
	return nil
}
