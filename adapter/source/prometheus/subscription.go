package prometheus

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// subscription is one Set key. It takes its own series from the answers of its group.
type subscription struct {
	group    *group
	config   Config
	fleet    Fleet
	sink     source.Sink
	podIndex *podtracker.PodIndex

	mu      sync.Mutex // held while the sink is called
	ended   bool
	fill    backfill
	begun   bool              // the first answer with its samples, or one after it, has been taken
	spacing int64             // between samples, by the newest answer (ms)
	from    int64             // samples before are left out (ms)
	tracks  map[string]*track // by instance
	buffer  []pipeline.Sample
	whole   *whole // of a target as a whole; nil before its first answer
}

func newSubscription(g *group, c Config, fleet Fleet, sink source.Sink) *subscription {
	podIndex := podtracker.NewPodIndex(fleet)
	return &subscription{
		group: g, config: c, fleet: fleet, sink: sink, podIndex: podIndex,
		fill: backfill{group: g, fleet: fleet, podIndex: podIndex}, tracks: map[string]*track{},
	}
}

// same returns whether Set with these arguments would change nothing: a shorter window was read
// with the longer one. u may be nil.
func (u *subscription) same(c Config, fleet Fleet, sink source.Sink) bool {
	if u == nil {
		return false
	}
	c.Window = max(c.Window, u.config.Window)
	return u.config == c && u.fleet == fleet && u.sink == sink
}

// end ends a subscription, which may be nil. Its sink is not called any more when it returns.
func (u *subscription) end() {
	if u == nil {
		return
	}
	u.podIndex.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

// waits returns whether the first answer is still to come. A fleet without pods does not wait,
// unless its load is measured as a whole.
func (u *subscription) waits() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.begun && (u.config.Whole || u.podIndex.AnyActive())
}

// fail reports why there is no answer.
func (u *subscription) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.sink.SourceFailed(err)
	}
}

// taking is the context of an answer.
type taking struct {
	now     time.Time     // when it was requested
	span    time.Duration // the requested time
	step    int64         // the time in which each series gets a sample and all are requested (ms)
	spacing int64         // between two samples of a series, as far as it is known (ms)
}

// take gives the sink its own part of an answer.
func (u *subscription) take(a *answer, t taking) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.spacing = t.spacing
	if u.config.Whole {
		u.takeWhole(a, t)
		return
	}
	active := u.podIndex.Active()
	if !u.begun && len(active) > 0 && !a.empty() {
		if a.partial == "" && u.fill.undecided(a.series, active, t) {
			u.sink.SourceFailed(nil) // the server answers; the samples are taken soon
			return
		}
		u.begun = true
		u.from = u.fill.beginning(a.series, active, a.partial, t)
	}
	r := report{subscription: u, answer: a, taking: t, came: map[string]bool{}}
	if u.begun {
		if a.newest < u.from {
			u.from = 0 // the server's clock has been set back
		}
		u.giveAll(a.series, &r)
		u.forget(t.now)
	}
	r.missing(active)
	u.sink.SourceFailed(r.trouble(active))
}

// giveAll gives the sink the samples of all known pods. The series are sorted by pod.
func (u *subscription) giveAll(all []*series, r *report) {
	for begin := 0; begin < len(all); {
		end := begin + 1
		for end < len(all) && all[end].pod == all[begin].pod {
			end++
		}
		u.givePod(all[begin:end], r)
		begin = end
	}
}

// givePod gives the sink the samples of one pod.
func (u *subscription) givePod(of []*series, r *report) {
	pod := of[0].pod
	if _, ok := u.podIndex.Find(pod, of[0].last()); !ok {
		return
	}
	r.came[pod] = true
	x, err := join(of, r.taking.spacing*9/10) // scrapes are not quite on time
	if err != nil {
		id, _ := u.podIndex.Find(pod, latest(of))
		u.sink.Fail(id, err)
		return
	}
	for rest := x.samples; len(rest) > 0; {
		id, n := u.stretch(pod, rest)
		u.give(id, rest[:n], x.spacing, r)
		rest = rest[n:]
	}
}

// stretch returns the instance of the first of a pod's samples, and how many samples it has in a row.
func (u *subscription) stretch(pod string, samples []pipeline.Sample) (id string, n int) {
	id, _ = u.podIndex.Find(pod, samples[0].T)
	if last, _ := u.podIndex.Find(pod, samples[len(samples)-1].T); last == id {
		return id, len(samples) // instances of a pod follow each other
	}
	for n = 1; n < len(samples); n++ {
		if next, _ := u.podIndex.Find(pod, samples[n].T); next != id {
			break
		}
	}
	return id, n
}

// give gives the sink the new samples of one instance. Their spacing is in ms, 0 if unknown.
func (u *subscription) give(id string, samples []pipeline.Sample, spacing int64, r *report) {
	k := u.tracks[id]
	if k == nil {
		k = &track{}
		u.tracks[id] = k
	}
	k.seen, k.spacing = r.taking.now, cmp.Or(spacing, k.spacing)
	var taken taken
	u.buffer, taken = k.take(samples, u.buffer[:0], u.from, 3*r.taking.step, u.config.Type)
	r.finite = r.finite || taken.finite
	if len(u.buffer) > 0 {
		u.sink.Append(id, u.buffer...)
	}
	if taken.err != nil {
		u.sink.Fail(id, taken.err)
	}
}

// forget drops the tracks of instances whose samples cannot appear in an answer any more.
func (u *subscription) forget(now time.Time) {
	maps.DeleteFunc(u.tracks, func(_ string, k *track) bool { return now.Sub(k.seen) > 2*u.config.reach() })
}

// latest returns the time of the newest sample of some series.
func latest(all []*series) int64 {
	t := int64(0)
	for _, x := range all {
		t = max(t, x.last())
	}
	return t
}
