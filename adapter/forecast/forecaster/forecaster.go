// Package forecaster keeps one pipeline per PredictedMetric fed with samples and publishes what it forecasts as
// immutable snapshots. Reading a snapshot never waits for a forecast to be made.
package forecaster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/spread"
)

// Period is how often forecasts are made.
const Period = time.Second

// Forecaster owns the feeds of all PredictedMetrics. It is safe for concurrent use.
type Forecaster struct {
	now         func() time.Time
	telemetry   *telemetry
	liveness    liveness
	workspaces  *workspaces
	maxReadings int64 // of a namespace
	maxSamples  int64 // of all; 0 = any number
	nodes       func() time.Duration

	mu          sync.RWMutex
	feeds       map[types.NamespacedName]*Feed
	byNamespace map[string]map[string]*Feed
	byTarget    map[target]*group

	watchedMu sync.Mutex
	watched   []*Feed // those that are traced

	// What Ready needs, which must answer at once however many PredictedMetrics there are.
	startedAt, lastRound atomic.Pointer[time.Time] // nil: not yet
	validUntil           atomic.Pointer[time.Time] // until when a snapshot counts; nil: there was none
	settled              atomic.Bool               // every PredictedMetric has had its time to get data
	added                atomic.Int64              // how many feeds have been added
	seen                 atomic.Int64              // of those, how many the last round knew; -1: there was none
	waiting              atomic.Int64              // how many waited for their first data after the last round
}

// Options configure a forecaster. The zero value is ready.
type Options struct {
	// MaxReadings is how many readings the forecasts of one namespace may keep together. 0 = DefaultMaxReadings.
	MaxReadings int64
	// MaxSamples is how many samples the forecasts of all namespaces may keep together. They share it. 0 = any number.
	MaxSamples int64
	// NodeStartupTime returns how long a node takes to start, 0 while there need not be a forecast for then. nil: there never is one.
	NodeStartupTime func() time.Duration
}

// New returns a forecaster that reads the time from now and registers its metrics with r.
func New(now func() time.Time, r prometheus.Registerer, o Options) *Forecaster {
	f := &Forecaster{
		now:         now,
		workspaces:  newWorkspaces(),
		maxReadings: cmp.Or(o.MaxReadings, DefaultMaxReadings),
		maxSamples:  o.MaxSamples,
		nodes:       o.NodeStartupTime,
		feeds:       map[types.NamespacedName]*Feed{},
		byNamespace: map[string]map[string]*Feed{},
		byTarget:    map[target]*group{},
	}
	f.seen.Store(-1)
	f.telemetry = newTelemetry(r, f)
	return f
}

// Set adds a PredictedMetric or changes its configuration. The samples stay, unless they are of another source or target:
// then the feed is a new one, and samples that still arrive for the old one are lost.
func (f *Forecaster) Set(key types.NamespacedName, c Config) (*Feed, error) {
	feed := f.feed(key)
	if feed != nil && feed.readsFrom(c.Origin) {
		return feed, reconfigure(feed, c)
	}
	feed, err := newFeed(key, c, f.now)
	if err != nil {
		return nil, err
	}
	f.put(key, feed)
	return feed, nil
}

// reconfigure changes a feed. One that enters or leaves dry run leaves or enters the joint decision of its target at once.
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
	f.put(key, newRejected(key, c, f.now, why))
}

func (f *Forecaster) put(key types.NamespacedName, feed *Feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.feeds[key]
	feed.nodes = f.nodes
	feed.group = f.byTarget[feed.scaled]
	if feed.group == nil {
		feed.group = &group{}
		f.byTarget[feed.scaled] = feed.group
	}
	feed.group.add(feed)
	f.leave(old)
	f.feeds[key] = feed
	f.added.Add(1)
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
	if feed != nil && feed.group.remove(feed) {
		delete(f.byTarget, feed.scaled)
	}
}

// Get returns the snapshot of one PredictedMetric.
func (f *Forecaster) Get(key types.NamespacedName) (snapshot.Snapshot, bool) {
	feed := f.feed(key)
	if feed == nil {
		return snapshot.Snapshot{}, false
	}
	return feed.Snapshot(), true
}

// feed returns the feed of a PredictedMetric, nil if there is none.
func (f *Forecaster) feed(key types.NamespacedName) *Feed {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.feeds[key]
}

// List returns the snapshots of a namespace, sorted by name.
func (f *Forecaster) List(namespace string) []snapshot.Snapshot {
	f.mu.RLock()
	feeds := slices.Collect(maps.Values(f.byNamespace[namespace]))
	f.mu.RUnlock()
	out := make([]snapshot.Snapshot, 0, len(feeds))
	for _, feed := range feeds {
		out = append(out, feed.Snapshot())
	}
	slices.SortFunc(out, func(a, b snapshot.Snapshot) int { return strings.Compare(a.Metric.Name, b.Metric.Name) })
	return out
}

// All returns the snapshots of all PredictedMetrics, in any order.
func (f *Forecaster) All() []snapshot.Snapshot {
	feeds := f.all()
	out := make([]snapshot.Snapshot, len(feeds))
	for i, feed := range feeds {
		out[i] = feed.Snapshot()
	}
	return out
}

func (f *Forecaster) all() []*Feed {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Collect(maps.Values(f.feeds))
}

func (f *Forecaster) groups() []*group {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Collect(maps.Values(f.byTarget))
}

// Run makes forecasts once a Period until the context ends, in rounds that begin on whole seconds of the clock, so that all replicas
// forecast at the same moments.
func (f *Forecaster) Run(ctx context.Context) error {
	begun := f.now()
	f.lastRound.Store(&begun)
	f.startedAt.Store(&begun)
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
			f.round(spread.Over(ctx, Period))
		}
	}
}

// chunkSize is how many forecasts are made at a time.
const chunkSize = 16

// runAll makes a round at once.
func (f *Forecaster) runAll() { f.round(spread.Not) }

// round makes a forecast for every feed, on as many cores as it takes, and joins those of each target. It waits before each part, with
// the share of the forecasts that came before. The time of that is not part of how long the round took.
func (f *Forecaster) round(wait func(share float64) time.Duration) {
	started := f.now()
	var waited time.Duration
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	added := f.added.Load()
	feeds := f.all()
	// In one order, so that each has its forecasts at its own part of each second, on every replica.
	slices.SortFunc(feeds, func(a, b *Feed) int { return byKey(a.key, b.key) })
	tasks := f.plan(feeds, started)
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
	for _, g := range f.groups() {
		g.join()
	}
	if !f.settled.Load() {
		f.waiting.Store(int64(count(feeds, (*Feed).awaitsData)))
		f.seen.Store(added)
	}
	ended := f.now()
	f.telemetry.round.Observe((ended.Sub(started) - waited).Seconds())
	f.lastRound.Store(&ended)
	f.liveness.progress.Add(1)
}

func byKey(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
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
			f.extendValidity(t.published.Load().ValidUntil(), now)
		}
	})
}

// maxCredit bounds how long a snapshot that lasts longer than others, as its owner says so, counts for all of them.
const maxCredit = 30 * time.Second

// extendValidity notes that a snapshot is valid until a time. It counts for at most maxCredit from now on.
func (f *Forecaster) extendValidity(until, now time.Time) {
	latest := now.Add(maxCredit)
	if until.After(latest) {
		until = latest
	}
	for {
		known := f.validUntil.Load()
		keep := known != nil && !until.After(*known) && !known.After(latest) // later than that: the clock was set back
		if keep || f.validUntil.CompareAndSwap(known, &until) {
			return
		}
	}
}

// anyValid reports whether a snapshot that was valid when it was made still is, and was made lately.
func (f *Forecaster) anyValid(now time.Time) bool {
	until := f.validUntil.Load()
	return until != nil && !now.After(*until) && !until.After(now.Add(maxCredit))
}

func count(feeds []*Feed, is func(*Feed) bool) (n int) {
	for _, feed := range feeds {
		if is(feed) {
			n++
		}
	}
	return n
}

const (
	// startLimit is how long a start waits for the first data of every PredictedMetric.
	startLimit = time.Minute
	// stallLimit is after how long without a round of forecasts a forecaster none of whose snapshots is
	// valid is not ready.
	stallLimit = 10 * Period
)

// Ready returns why there is no data to serve, nil if there is. After the start it waits until every
// PredictedMetric whose target has ready pods has been read for long enough, at most a minute: a
// rolling update of the adapter leaves no gap. Later one PredictedMetric without data does not count:
// an error that says why is better than an unreachable server. Nor do rounds that take long count while
// snapshots are valid: under overload all replicas would be unready at once, and no value would be
// read.
func (f *Forecaster) Ready() error {
	now := f.now()
	started := f.startedAt.Load()
	if started == nil {
		return errors.New("the forecaster has not started")
	}
	if idle := now.Sub(*f.lastRound.Load()); idle > stallLimit && !f.anyValid(now) {
		return fmt.Errorf("no forecast for %s", idle.Round(time.Second))
	}
	if f.settled.Load() {
		return nil
	}
	if now.Sub(*started) <= startLimit {
		if f.seen.Load() != f.added.Load() {
			return errors.New("not every PredictedMetric has been forecast for the first time")
		}
		if waiting := f.waiting.Load(); waiting > 0 {
			return fmt.Errorf("%d PredictedMetrics wait for their first data", waiting)
		}
	}
	f.settled.Store(true)
	return nil
}
