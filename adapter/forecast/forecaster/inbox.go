package forecaster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// inbox keeps what arrives for a feed until its next forecast, so that sources do not wait for one
// that is being made.
type inbox struct {
	mu         sync.Mutex
	arrivals   map[string]*arrival // by instance
	fresh      []*arrival          // the ones that have been read since the last forecast
	generation int                 // how often any of them were dropped
	limits     limits
	sourceErr  error
	failures   int       // how many reports of sourceErr came in a row
	failed     time.Time // the first of them
	replicas   replicas
}

// limits are what an inbox accepts.
type limits struct {
	interval   time.Duration // Δt
	window     time.Duration // how far back the last forecast looked
	maxSamples int           // samples of one instance; 0: none of any
	values     gate.Limits
}

// arrival holds the readings of one instance since the last forecast.
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

// of returns the arrival of an instance. The caller holds mu.
func (b *inbox) of(instance string) *arrival {
	a := b.arrivals[instance]
	if a == nil {
		a = &arrival{instance: instance}
		b.arrivals[instance] = a
	}
	return a
}

// markFresh has the next forecast look at an arrival. The caller holds mu.
func (b *inbox) markFresh(a *arrival) {
	if !a.read {
		a.read = true
		b.fresh = append(b.fresh, a)
	}
}

// receiver adds samples of one instance, which it need not look up each time.
type receiver struct {
	inbox      *inbox
	now        func() time.Time
	arrival    *arrival // valid until the inbox drops arrivals again
	generation int      // the inbox's count when it was looked up
}

// Append implements source.Receiver.
func (r *receiver) Append(added ...pipeline.Sample) {
	now := r.now()
	b := r.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.maxSamples == 0 {
		return
	}
	if r.generation != b.generation {
		r.arrival, r.generation = b.of(r.arrival.instance), b.generation
	}
	b.acceptSamples(r.arrival, added, now)
}

// acceptSamples keeps samples that can be a load, and are neither from the future nor from long
// before the window. Every reading of every source passes here. The caller holds mu, and has
// checked that any are accepted.
func (b *inbox) acceptSamples(a *arrival, added []pipeline.Sample, now time.Time) {
	b.markFresh(a)
	a.err = nil
	earliest, latest := now.Add(-2*b.limits.window).UnixMilli(), now.Add(b.limits.interval).UnixMilli()
	for _, x := range added {
		v, err := b.limits.values.Check(x.V)
		switch {
		case err != nil:
			a.err = err
			a.refused++
		case x.T > latest:
			at := time.UnixMilli(x.T).UTC().Format(time.RFC3339)
			a.err = fmt.Errorf("a sample is dated %s, which is in the future: check the clocks", at)
			a.refused++
		case x.T < earliest:
		default:
			if len(a.samples) >= b.limits.maxSamples {
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
		"must be about one each sample interval (%s)", l.maxSamples, l.interval)
}

func (b *inbox) fail(instance string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.maxSamples > 0 {
		a := b.of(instance)
		b.markFresh(a)
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
	if l.maxSamples == 0 {
		b.drop(func(*arrival) bool { return true })
	}
}

// drop drops arrivals with their samples. The fresh ones must all be among them, or none.
func (b *inbox) drop(which func(*arrival) bool) {
	b.generation++
	maps.DeleteFunc(b.arrivals, func(_ string, a *arrival) bool {
		if !which(a) {
			return false
		}
		a.samples, a.series = nil, nil // a receiver may still have it
		return true
	})
	b.fresh = slices.DeleteFunc(b.fresh, which)
}

// setReplicas sets the replicas of the target as of now (ms). The first time counts as a scale-up:
// there may have been one just before this process started, whose pods are not ready yet.
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
