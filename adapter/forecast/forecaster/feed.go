package forecaster

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// Feed receives the samples of one PredictedMetric and makes its forecasts. It is a source.Direct
// and safe for concurrent use. Nothing waits for a forecast that is being made but the next one.
type Feed struct {
	*shared
	now       func() time.Time
	scaled    target
	group     *group // of scaled; set before the feed is found
	published atomic.Pointer[snapshot.Snapshot]

	mu        sync.Mutex // of predictor
	predictor predictor
}

// shared is the part of a feed that is read and set at any time, also while a forecast is made.
type shared struct {
	key       types.NamespacedName
	inbox     *inbox
	settings  atomic.Pointer[settings]
	target    scaleTarget
	footprint footprint
	watch     feedTrace
}

func newFeed(key types.NamespacedName, c Config, now func() time.Time) (*Feed, error) {
	f := emptyFeed(key, c, now)
	if err := f.configure(c); err != nil {
		return nil, err
	}
	f.predictor.adoptSettings()
	why := unavailable(snapshot.WaitingForSamples, "no sample has been read yet")
	f.published.Store(f.predictor.fail(why, now()))
	return f, nil
}

// newRejected returns a feed without forecasts, whose snapshot has the reason why the spec was rejected.
func newRejected(key types.NamespacedName, c Config, now func() time.Time, why error) *Feed {
	f := emptyFeed(key, c, now)
	f.published.Store(f.predictor.fail(unavailable(snapshot.InvalidSpec, "%v", why), now()))
	return f
}

func emptyFeed(key types.NamespacedName, c Config, now func() time.Time) *Feed {
	s := &shared{key: key, inbox: newInbox()}
	s.settings.Store(&settings{Config: c})
	s.footprint.followed.Store(-1)
	return &Feed{shared: s, now: now, scaled: c.target(key), predictor: newPredictor(s)}
}

// configure makes c the configuration, or changes nothing if its parameters are invalid.
func (f *Feed) configure(c Config) error {
	p, err := pipeline.New(c.Params)
	if err != nil {
		return err
	}
	f.settings.Store(&settings{Config: c, pipeline: p})
	f.inbox.limit(c.limits(c.Params.WindowFor(f.target.startupTime(&c))))
	return nil
}

func (f *Feed) readsFrom(origin string) bool {
	c := f.settings.Load()
	return c.pipeline != nil && c.Origin == origin
}

// SetPods sets the pods whose samples count.
func (f *Feed) SetPods(pods Pods) { f.target.pods.Store(&pods) }

// HasPods returns whether SetPods has been called.
func (f *Feed) HasPods() bool { return f.target.known() != nil }

// SetReplicas sets the replicas of the target as of now. The first call counts as a scale-up.
func (f *Feed) SetReplicas(count int) {
	f.target.read.Store(true)
	f.inbox.setReplicas(count, f.now().UnixMilli())
	f.group.replicas.Store(int64(count))
}

// WatchReplicas sets what returns since when changes of the replicas are not seen, zero while they are. With nil they
// are as of the last SetReplicas.
func (f *Feed) WatchReplicas(lost func() time.Time) { f.target.lost.Store(&lost) }

// LoseReplicas marks the replicas of the target as unreadable from now on. The last known number stays.
func (f *Feed) LoseReplicas() {
	f.target.read.Store(true)
	f.inbox.loseReplicas(f.now())
}

// Append implements source.Sink. A sample from the future is a failure of its instance: it would
// make all others look old. Samples from long before the window are ignored.
func (f *Feed) Append(instance string, added ...pipeline.Sample) {
	now := f.now()
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.maxSamples > 0 {
		b.acceptSamples(b.of(instance), added, now)
	}
}

// Receiver implements source.Direct.
func (f *Feed) Receiver(instance string) source.Receiver {
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	return &receiver{b, f.now, b.of(instance), b.generation}
}

// Fail implements source.Sink.
func (f *Feed) Fail(instance string, err error) { f.inbox.fail(instance, err) }

// SourceFailed implements source.Sink.
func (f *Feed) SourceFailed(err error) { f.inbox.failSource(err, f.now()) }

// Refuses implements source.Refuser.
func (f *Feed) Refuses() bool { return f.footprint.beyond.Load() }

// Snapshot returns the snapshot published last, with dry run and the number of ready pods as of
// now, and the joint decision of the last round for the replicas of now.
func (f *Feed) Snapshot() snapshot.Snapshot {
	s := *f.published.Load()
	s.Ready, s.DryRun = f.target.ready(), f.dryRun()
	s.Combined = f.group.decision()
	return s
}

func (f *Feed) dryRun() bool { return f.settings.Load().DryRun }

// awaitsData reports whether there is a load, of ready pods or of the target as a whole, that has
// not been read for long enough, or may be one, of a target whose scale has not been read yet.
func (f *Feed) awaitsData() bool {
	if c := f.settings.Load(); c.pipeline != nil && !f.target.read.Load() {
		return true
	}
	u, ok := errors.AsType[*snapshot.Unavailable](f.published.Load().Err)
	awaited := []snapshot.Reason{snapshot.WaitingForSamples, snapshot.SourceFailing, snapshot.WarmingUp}
	return ok && slices.Contains(awaited, u.Reason) && (f.target.ready() > 0 || f.settings.Load().Params.Whole)
}

// look calls a function between two forecasts.
func (f *Feed) look(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// run makes a forecast and publishes it. Without a forecast it publishes and returns the reason, else it returns "".
func (f *Feed) run(now time.Time, w *workspace) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.footprint.beyond.Store(false)
	f.predictor.adoptSettings()
	if f.predictor.using.pipeline == nil {
		return snapshot.InvalidSpec
	}
	s := f.predictor.run(now, w)
	f.published.Store(s)
	if why, failed := errors.AsType[*snapshot.Unavailable](s.Err); failed {
		return why.Reason
	}
	return ""
}

// stop publishes why there is no forecast, and drops all readings.
func (f *Feed) stop(why error, now time.Time) snapshot.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &f.predictor
	f.footprint.refuse(now, p.window, f.settings.Load(), p.using)
	f.inbox.limit(limits{})
	p.adoptSettings()
	p.clear()
	f.published.Store(p.fail(why, now))
	return snapshot.InvalidSpec
}
