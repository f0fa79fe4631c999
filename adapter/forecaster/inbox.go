package forecaster

import (
	"fmt"
	"sync"
	"time"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// inbox keeps what arrives for a feed until its next forecast, so that nobody who brings it waits for one that is being made.
type inbox struct {
	mu        sync.Mutex
	arrivals  map[string]*arrival // by instance
	limits    limits
	sourceErr error
	replicas  replicas
}

// limits are what an inbox accepts.
type limits struct {
	interval time.Duration // Δt
	window   time.Duration // how far back the last forecast looked
	most     int           // samples of one instance; 0: none of any
}

// arrival is what has arrived of one instance since the last forecast.
type arrival struct {
	samples []pipeline.Sample
	err     error // of the last reading
	read    bool  // anything has arrived
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

func (b *inbox) of(instance string) *arrival {
	a := b.arrivals[instance]
	if a == nil {
		a = &arrival{}
		b.arrivals[instance] = a
	}
	a.read = true
	return a
}

// add keeps samples that are neither from the future nor from long before the window.
func (b *inbox) add(instance string, added []pipeline.Sample, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.most == 0 {
		return
	}
	a := b.of(instance)
	a.err = nil
	earliest, latest := now.Add(-2*b.limits.window).UnixMilli(), now.Add(b.limits.interval).UnixMilli()
	for _, x := range added {
		switch {
		case x.T > latest:
			a.err = fmt.Errorf("a sample is dated %s, which is in the future: check the clocks", time.UnixMilli(x.T).UTC().Format(time.RFC3339))
		case x.T < earliest:
		case len(a.samples) >= b.limits.most:
			a.err = b.limits.tooMany()
		default:
			a.samples = append(a.samples, x)
		}
	}
}

func (l limits) tooMany() error {
	return fmt.Errorf("more than %d samples within the window: must be about one each sample interval (%s)", l.most, l.interval)
}

func (b *inbox) fail(instance string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.most > 0 {
		b.of(instance).err = err
	}
}

func (b *inbox) failSource(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sourceErr = err
}

// limit sets what is accepted from now on.
func (b *inbox) limit(l limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
	if l.most == 0 {
		clear(b.arrivals)
	}
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

// keptCapacity is up to how many samples the memory of an arrival is kept for the next ones. After a backfill it is not.
const keptCapacity = 16

// collect moves what has arrived to where forecasts read it.
func (f *Feed) collect() {
	b := f.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	f.replicas, f.sourceErr = b.replicas, b.sourceErr
	for id, a := range b.arrivals {
		if !a.read {
			delete(b.arrivals, id)
			continue
		}
		err := a.err
		for _, x := range a.samples {
			if !f.keep(id, x, b.limits.most) {
				err = b.limits.tooMany()
				break
			}
		}
		if f.failing[id] = err; err == nil {
			delete(f.failing, id)
		}
		*a = arrival{samples: a.samples[:0]}
		if cap(a.samples) > keptCapacity {
			a.samples = nil
		}
	}
}

// keep adds a sample to those of an instance, of which there are at most so many, or returns false.
func (f *Feed) keep(instance string, x pipeline.Sample, most int) bool {
	s := f.series[instance]
	if s == nil {
		s = &samples.Packed{}
		f.series[instance] = s
	}
	if s.Len() >= most {
		return false
	}
	s.Add(x)
	f.newest = max(f.newest, x.T)
	return true
}
