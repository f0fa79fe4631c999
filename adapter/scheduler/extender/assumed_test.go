package extender

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// sampled is what is known of a node whose newest samples were taken then.
func sampled(at time.Time, window time.Duration) map[string]snapshot.NodeLoad {
	return map[string]snapshot.NodeLoad{"n": {CPU: snapshot.Use{Sampled: at, Window: window},
		Memory: snapshot.Use{Sampled: at}}}
}

func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		sampled, started time.Duration // from noon
		window           time.Duration
		want             int64
	}{
		"sampled before it started":     {0, time.Second, time.Minute, 1000},
		"sampled just then":             {0, 0, time.Minute, 1000},
		"a quarter of the window":       {15 * time.Second, 0, time.Minute, 750},
		"the whole window":              {time.Minute, 0, time.Minute, 0},
		"long after":                    {time.Hour, 0, time.Minute, 0},
		"at a moment, before":           {0, time.Second, 0, 1000},
		"at the moment":                 {0, 0, 0, 1000},
		"at a moment, as it rampUpTime": {3 * time.Second, 0, 0, 900},
		"at a moment, settled":          {30 * time.Second, 0, 0, 0},
		"a short window":                {15 * time.Second, 0, 10 * time.Second, 500},
		"a window of less than no time": {time.Second, 0, -time.Second, 966},
	} {
		got := unseen(1000, snapshot.Use{Sampled: noon.Add(c.sampled), Window: c.window}, noon.Add(c.started))
		assert.Equal(t, c.want, got, name)
	}
	assert.EqualValues(t, 1000, unseen(1000, snapshot.Use{}, noon), "never sampled")
	assert.EqualValues(t, 1000, unseen(1000, snapshot.Use{Sampled: noon}, time.Time{}), "not started")
}

func testRules() Rules {
	r := DefaultRules()
	r.AssumeTimeout = 2 * time.Second
	return r
}

// onN is an entry of a pod on the node n, since noon.
func onN(s *slot) recentPod {
	return recentPod{slot: s, node: "n", since: noon, estimate: use{800, 600}}
}

// guessN is a guess that a pod will be bound to the node n, since noon.
func guessN(s *slot) *assumedPod {
	return newAssumedPod(&node{slot: s}, use{1000, 1000}, use{800, 600}, noon)
}

// assumePending assumes a pod that is pending.
func (l *assumedPods) assumePending(id podID, g *assumedPod) {
	l.markPending(id)
	l.assume(id, g)
}

func TestBoundPodsFadeAsSamplesIncludeThem(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	id := idOf("pod")
	l.bind(id, onN(s), noon)
	assert.Equal(t, use{800, 600}, s.assumed.load(), "at once")
	assert.Equal(t, use{}, s.requested.load(), "that is not the assumed's")

	started := noon.Add(20 * time.Second)
	at := noon.Add(30 * time.Second)
	l.recount(at, sampled(at, time.Minute))
	assert.Equal(t, map[*slot]bool{s: true}, l.busy(at))
	assert.Equal(t, use{800, 600}, s.assumed.load(), "it has not started")

	l.update(id, use{800, 600}, started)
	l.recount(at, nil)
	assert.Equal(t, use{800, 600}, s.assumed.load(), "no one samples")
	l.recount(at, sampled(started.Add(-time.Second), time.Minute))
	assert.Equal(t, use{800, 600}, s.assumed.load(), "the sample is older")
	l.recount(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{600, 300}, s.assumed.load(),
		"a quarter of the window of CPU, and memory that has settled by half")

	l.update(id, use{400, 600}, time.Time{})
	l.recount(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{300, 300}, s.assumed.load(), "another estimate; once started it was seen")
	l.update(id, use{400, 600}, started.Add(time.Hour))
	l.recount(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{300, 300}, s.assumed.load(), "started again is not started later")

	l.recount(at, sampled(started.Add(time.Minute), time.Minute))
	assert.NotEmpty(t, l.busy(at), "what it uses is in samples, and comes into forecasts")
	assert.Equal(t, use{}, s.assumed.load())
	l.recount(noon.Add(arrivalLife), nil)
	assert.NotEmpty(t, l.busy(started.Add(arrivalLife-1)))
	assert.Empty(t, l.busy(started.Add(arrivalLife)), "it is no new one any more")
	assert.Equal(t, use{400, 600}, s.assumed.load(), "but counts while no one samples")
	l.recount(noon.Add(assumedLife), nil)
	assert.Empty(t, l.busy(noon.Add(assumedLife)))
	assert.Empty(t, l.bound)
	assert.Equal(t, use{}, s.assumed.load())
	l.update(id, use{800, 600}, started)
	l.recount(noon.Add(assumedLife), nil)
	assert.Equal(t, use{}, s.assumed.load(), "it does not come back")
}

func TestBoundPodsExpire(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	l.bind(idOf("a"), onN(s), noon)
	l.bind(idOf("late"), onN(s), noon.Add(assumedLife))
	assert.Equal(t, use{800, 600}, s.assumed.load(), "what was bound long ago never counts")
	l.recount(noon.Add(assumedLife-time.Nanosecond), nil)
	assert.Equal(t, use{800, 600}, s.assumed.load())
	l.recount(noon.Add(assumedLife), nil)
	assert.Equal(t, use{}, s.assumed.load())

	l.bind(idOf("b"), onN(s), noon)
	l.end(idOf("b"))
	assert.Equal(t, use{}, s.assumed.load(), "it ended before anybody looked")
	l.end(idOf("b"))
	assert.Equal(t, use{}, s.assumed.load())
}

// An image may take as long to come as a pod counts as new after it was bound.
func TestBusyNodes(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	e := onN(s)
	l.bind(idOf("pod"), e, noon)
	assert.Empty(t, l.busy(noon.Add(arrivalLife)), "it has not started, and counts in full")
	started := noon.Add(arrivalLife + time.Minute)
	l.update(idOf("pod"), e.estimate, started)
	at := started.Add(rampUpTime)
	l.recount(at, sampled(at, 0))
	assert.Equal(t, use{}, s.assumed.load(), "samples show it")
	assert.Equal(t, map[*slot]bool{s: true}, l.busy(at), "forecasts do not")
	assert.NotEmpty(t, l.busy(noon), "a clock that is ahead does no harm")
}

func TestAssumedPods(t *testing.T) {
	var l *assumedPods
	var a, b *slot
	var what string
	id := idOf("pod")
	at := func(s *slot, since time.Duration) *assumedPod {
		g := guessN(s)
		g.since = noon.Add(since)
		return g
	}
	counts := func(why string, inA, inB, requestedOfA, requestedOfB use) {
		t.Helper()
		assert.Equal(t, [4]use{inA, inB, requestedOfA, requestedOfB},
			[4]use{a.assumed.load(), b.assumed.load(), a.requested.load(), b.requested.load()}, "%s: %s", what, why)
	}
	estimate, requests := use{800, 600}, use{1000, 1000}
	for name, then := range map[string]func(){
		"it takes too long": func() {
			l.recount(noon.Add(2*time.Second-time.Nanosecond), nil)
			counts("not yet", estimate, use{}, requests, use{})
			l.recount(noon.Add(2*time.Second), nil)
			counts("", use{}, use{}, use{}, use{})
		},
		"it is bound where we thought": func() {
			l.bind(id, onN(a), noon)
			counts("its requests are told by others", estimate, use{}, use{}, use{})
			l.recount(noon.Add(time.Minute), nil)
			counts("", estimate, use{}, use{}, use{})
		},
		"it is bound elsewhere": func() {
			l.bind(id, onN(b), noon)
			counts("", use{}, estimate, use{}, use{})
		},
		"it is bound, but we hear of that late": func() {
			l.bind(id, onN(b), noon.Add(assumedLife))
			counts("", use{}, use{}, use{}, use{})
		},
		"it is removed": func() {
			l.end(id)
			counts("", use{}, use{}, use{}, use{})
		},
		"it is asked about again": func() {
			l.forget(id)
			counts("", use{}, use{}, use{}, use{})
			l.forget(id)
			counts("twice", use{}, use{}, use{}, use{})
		},
		"it is scored again": func() {
			l.assume(id, at(b, time.Second))
			counts("on another", use{}, estimate, use{}, requests)
			l.assume(id, at(b, time.Second))
			counts("on the same", use{}, estimate, use{}, requests)
			l.recount(noon.Add(2500*time.Millisecond), nil)
			counts("since later", use{}, estimate, use{}, requests)
		},
		"it is bound, and asked about by another scheduler": func() {
			l.bind(id, onN(b), noon)
			l.assume(id, at(a, 0))
			counts("", use{}, estimate, use{}, use{})
		},
		"it is bound and ends in one moment": func() {
			l.bind(id, onN(b), noon)
			l.end(id)
			l.recount(noon.Add(time.Second), nil)
			counts("", use{}, use{}, use{}, use{})
		},
		"it is asked about again once it is bound": func() {
			l.bind(id, onN(b), noon)
			l.end(id)
			l.assume(id, at(a, 0))
			counts("", use{}, use{}, use{}, use{})
		},
		"one is that no one knows": func() {
			l.assume(idOf("other"), at(b, 0))
			counts("", estimate, use{}, requests, use{})
		},
		"another is": func() {
			l.bind(idOf("other"), onN(b), noon)
			counts("", estimate, estimate, requests, use{})
		},
	} {
		l, a, b, what = newAssumedPods(testRules()), &slot{}, &slot{}, name
		l.assumePending(id, at(a, 0))
		counts("it is scored", estimate, use{}, requests, use{})
		then()
	}
}

// Whatever a pod declares, it takes no more than there is.
func TestPodsAreCappedAtAllocatable(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	large := use{9000, 9000}
	small := &node{slot: s, allocatable: use{4000, 2000}}
	l.assumePending(idOf("scored"), newAssumedPod(small, large, use{9000, -1}, noon))
	assert.Equal(t, use{4000, 0}, s.assumed.load())
	assert.Equal(t, use{4000, 2000}, s.requested.load())
	l.end(idOf("scored"))

	s.allocatable.set(use{4000, 2000})
	e := onN(s)
	e.estimate, e.started = large, noon
	l.bind(idOf("bound"), e, noon)
	assert.Equal(t, use{4000, 2000}, s.assumed.load())
	s.allocatable.set(use{2000, 0})
	l.recount(noon, sampled(noon.Add(15*time.Second), 0))
	assert.Equal(t, use{1000, 4500}, s.assumed.load(), "what is not known bounds nothing")
	l.end(idOf("bound"))
	assert.Equal(t, use{}, s.assumed.load())
}

func TestAssumedPodsAreBounded(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	for i := range maxAssumed + 10 {
		l.assumePending(idOf(uid(i)), newAssumedPod(&node{slot: s}, use{1, 1}, use{1, 1}, noon))
	}
	assert.Len(t, l.assumed, maxAssumed)
	assert.Equal(t, use{maxAssumed, maxAssumed}, s.assumed.load())
	l.recount(noon.Add(time.Minute), nil)
	assert.Empty(t, l.assumed)
	assert.Equal(t, use{}, s.assumed.load())
}

func TestClockSetBackKeepsEntries(t *testing.T) {
	l, s := newAssumedPods(testRules()), &slot{}
	l.bind(idOf("bound"), onN(s), noon)
	l.assumePending(idOf("scored"), guessN(s))
	earlier := noon.Add(-time.Hour)
	l.recount(earlier, nil)
	assert.Equal(t, use{1600, 1200}, s.assumed.load())
	l.recount(earlier.Add(2*time.Second), nil)
	assert.Equal(t, use{800, 600}, s.assumed.load(), "as if it had been scored when the clock was set")
	l.recount(earlier.Add(assumedLife), nil)
	assert.Equal(t, use{}, s.assumed.load())
}

func TestMoveKeepsBoundPods(t *testing.T) {
	l, old, fresh, other := newAssumedPods(testRules()), &slot{}, &slot{}, &slot{}
	l.bind(idOf("bound"), onN(old), noon)
	l.bind(idOf("else"), onN(other), noon)
	l.assumePending(idOf("scored"), guessN(old))
	l.update(idOf("bound"), use{800, 600}, noon)
	l.recount(noon.Add(time.Second), sampled(noon.Add(30*time.Second), time.Minute))
	l.move(old, fresh)
	assert.Equal(t, use{400, 0}, fresh.assumed.load(), "as it counted")
	assert.Equal(t, use{}, fresh.requested.load())
	assert.Equal(t, use{800, 600}, old.assumed.load(), "what was scored was meant for what is gone")
	assert.Equal(t, use{800, 600}, other.assumed.load())
	l.bind(idOf("scored"), onN(fresh), noon)
	assert.Equal(t, use{1200, 600}, fresh.assumed.load())
	assert.Equal(t, use{}, old.assumed.load())
	assert.Equal(t, use{}, old.requested.load())
}
