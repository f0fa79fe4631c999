package forecaster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// inbox keeps what arrives for a feed until its next forecast, so that nobody who brings it waits for one that is being made.
type inbox struct {
	mu        sync.Mutex
	arrivals  map[string]*arrival // by instance
	fresh     []*arrival          // of them, those that have been read since the last forecast
	dropped   int                 // how often any of them were dropped
	limits    limits
	sourceErr error
	failures  int       // how many reports of sourceErr came in a row
	failed    time.Time // the first of them
	replicas  replicas
}

// limits are what an inbox accepts.
type limits struct {
	interval time.Duration // Δt
	window   time.Duration // how far back the last forecast looked
	most     int           // samples of one instance; 0: none of any
	values   gate.Limits
}

// arrival is what has arrived of one instance since the last forecast.
type arrival struct {
	instance  string
	samples   []pipeline.Sample
	err       error // of the last reading
	failures  int   // how many failed in a row, of those since the last forecast
	read      bool  // anything has arrived
	succeeded bool  // one of them, at least, did not fail
	refused   int   // readings that cannot be a load

	full time.Time // when samples last gave way to newer ones

	series *samples.Packed // of the feed, where its samples are moved to; nil: look it up
}

// replicas is the number of replicas that the target is set to, and when it was last seen to change (ms).
type replicas struct {
	count      int
	known      bool
	rose, fell int64
	lost       time.Time // since when it cannot be read; zero: it can
}

func newInbox() *inbox {
	return &inbox{arrivals: map[string]*arrival{}, replicas: replicas{rose: pipeline.Never, fell: pipeline.Never}}
}

// failing is an instance whose last reading failed.
type failing struct {
	err   error
	times int // how many readings failed in a row
	since time.Time
}

// of returns the arrival of an instance. The caller holds mu.
func (b *inbox) of(instance string) *arrival {
	a := b.arrivals[instance]
	if a == nil {
		a = &arrival{instance: instance}
		b.arrivals[instance] = a
	}
	return a
}

// touch has the next forecast look at an arrival. The caller holds mu.
func (b *inbox) touch(a *arrival) {
	if !a.read {
		a.read = true
		b.fresh = append(b.fresh, a)
	}
}

// receiver adds samples of one instance, which it need not look up each time.
type receiver struct {
	feed    *Feed
	arrival *arrival // good for as long as
	as      int      // is what the inbox has as dropped
}

// Receiver implements source.Direct.
func (f *Feed) Receiver(instance string) source.Receiver {
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	return &receiver{f, b.of(instance), b.dropped}
}

// Append implements source.Receiver.
func (r *receiver) Append(added ...pipeline.Sample) {
	now := r.feed.now()
	b := r.feed.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.most == 0 {
		return
	}
	if r.as != b.dropped {
		r.arrival, r.as = b.of(r.arrival.instance), b.dropped
	}
	b.add(r.arrival, added, now)
}

// add keeps samples that can be a load, and are neither from the future nor from long before the window. Every reading
// of every source passes here. The caller holds mu, and has checked that any are accepted.
func (b *inbox) add(a *arrival, added []pipeline.Sample, now time.Time) {
	b.touch(a)
	a.err = nil
	earliest, latest := now.Add(-2*b.limits.window).UnixMilli(), now.Add(b.limits.interval).UnixMilli()
	for _, x := range added {
		v, err := b.limits.values.Check(x.V)
		switch {
		case err != nil:
			a.err = err
			a.refused++
		case x.T > latest:
			a.err = fmt.Errorf("a sample is dated %s, which is in the future: check the clocks", time.UnixMilli(x.T).UTC().Format(time.RFC3339))
			a.refused++
		case x.T < earliest:
		default:
			if len(a.samples) >= b.limits.most {
				a.full = now
				a.dropOldest()
			}
			a.samples = append(a.samples, pipeline.Sample{T: x.T, V: v})
		}
	}
	if a.err == nil && now.Sub(a.full) < b.limits.window {
		a.err = b.limits.tooMany()
	}
	if a.err != nil {
		a.failures++
		return
	}
	a.failures, a.succeeded = 0, true
}

// dropOldest drops the older half of the samples, so that it costs little for each sample of a flood.
func (a *arrival) dropOldest() {
	slices.SortStableFunc(a.samples, func(x, y pipeline.Sample) int { return cmp.Compare(x.T, y.T) })
	a.samples = slices.Delete(a.samples, 0, (len(a.samples)+1)/2)
}

func (l limits) tooMany() error {
	return fmt.Errorf("more than %d samples within the window, of which the oldest are dropped: "+
		"must be about one each sample interval (%s)", l.most, l.interval)
}

func (b *inbox) fail(instance string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.most > 0 {
		a := b.of(instance)
		b.touch(a)
		a.err = err
		a.failures++
	}
}

func (b *inbox) failSource(err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sourceErr = err
	if err == nil {
		b.failures = 0
		return
	}
	if b.failures == 0 {
		b.failed = now
	}
	b.failures++
}

// limit sets what is accepted from now on.
func (b *inbox) limit(l limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
	if l.most == 0 {
		b.drop(func(*arrival) bool { return true })
	}
}

// drop drops arrivals, of which nothing is kept. Those that are fresh must all be among them, or none.
func (b *inbox) drop(which func(*arrival) bool) {
	b.dropped++
	maps.DeleteFunc(b.arrivals, func(_ string, a *arrival) bool {
		if !which(a) {
			return false
		}
		a.samples, a.series = nil, nil // a receiver may still have it
		return true
	})
	b.fresh = slices.DeleteFunc(b.fresh, which)
}

// setReplicas sets the replicas of the target as of now (ms). The first time counts as a scale-up: there may have been one just
// before this process started, whose pods are not ready yet.
func (b *inbox) setReplicas(count int, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.replicas
	if !r.known || count > r.count {
		r.rose = now
	}
	if r.known && count < r.count {
		r.fell = now
	}
	r.count, r.known, r.lost = count, true, time.Time{}
}

func (b *inbox) loseReplicas(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.replicas.lost.IsZero() {
		b.replicas.lost = now
	}
}

// clockSet moves the times of changes with a clock that was set, and returns the replicas.
func (b *inbox) clockSet(by time.Duration, now time.Time) replicas {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.replicas
	for _, t := range []*int64{&r.rose, &r.fell} {
		if *t != pipeline.Never {
			*t = min(*t+by.Milliseconds(), now.UnixMilli())
		}
	}
	r.lost, b.failed = notAfter(r.lost, now), notAfter(b.failed, now)
	return *r
}

// keptCapacity is up to how many samples the memory of an arrival is kept for the next ones. After a backfill it is not.
const keptCapacity = 16

// spareArrivals is of how many instances more than twice those that are read something may be kept: some have gone.
const spareArrivals = 16

// collect moves what has arrived to where forecasts read it.
func (f *Feed) collect() {
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	f.replicas, f.sourceErr, f.sourceFailures, f.sourceFailed = b.replicas, b.sourceErr, b.failures, b.failed
	if len(b.arrivals) > 2*max(len(b.fresh), len(f.series))+spareArrivals {
		b.drop(func(a *arrival) bool { return !a.read })
	}
	if f.released != f.forgotten {
		for _, a := range b.arrivals {
			a.series = nil // which may have been dropped
		}
		f.released = f.forgotten
	}
	for _, a := range b.fresh {
		err := a.err
		for _, x := range a.samples {
			if !f.keep(a, x, b.limits.most) {
				a.full, err = f.now(), b.limits.tooMany()
			}
		}
		f.refused.add(a.refused, f.now())
		switch {
		case err == nil && len(f.failing) > 0:
			delete(f.failing, a.instance)
		case err != nil && a.succeeded:
			f.failing[a.instance] = failing{err, max(1, a.failures), f.now()}
		case err != nil:
			x := f.failing[a.instance]
			if x.times == 0 {
				x.since = f.now()
			}
			f.failing[a.instance] = failing{err, x.times + max(1, a.failures), x.since}
		}
		a.samples, a.err, a.failures, a.succeeded, a.read, a.refused = a.samples[:0], nil, 0, false, false, 0
		if cap(a.samples) > keptCapacity {
			a.samples = nil
		}
	}
	clear(b.fresh)
	b.fresh = b.fresh[:0]
}

// keep adds a sample to those of an instance, of which there are at most so many. It returns false if older ones gave
// way.
func (f *Feed) keep(a *arrival, x pipeline.Sample, most int) bool {
	if a.series == nil {
		a.series = f.series[a.instance]
	}
	if a.series == nil {
		a.series = &samples.Packed{}
		f.series[a.instance] = a.series
	}
	full := a.series.Len() >= most
	if full {
		a.series.DropOldest(most/8 + 1)
	}
	a.series.Add(x)
	f.newest = max(f.newest, x.T)
	return !full
}
