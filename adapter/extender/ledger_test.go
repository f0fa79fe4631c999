package extender

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/snapshot"
)

// sampled is what is known of a node whose newest samples were taken then.
func sampled(at time.Time, window time.Duration) map[string]snapshot.NodeLoad {
	return map[string]snapshot.NodeLoad{"n": {CPU: snapshot.Use{Sampled: at, Window: window}, Memory: snapshot.Use{Sampled: at}}}
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
		"at a moment, as it settles":    {3 * time.Second, 0, 0, 900},
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
	r.Tentative = 2 * time.Second
	return r
}

// onN is an entry of a pod on the node n, since noon.
func onN(s *slot) entry {
	return entry{slot: s, node: "n", since: noon, estimate: use{800, 600}}
}

// guessN is a guess that a pod will be bound to the node n, since noon.
func guessN(s *slot) *guess {
	return guessOf(&node{slot: s}, use{1000, 1000}, use{800, 600}, noon)
}

// expect scores a pod that is pending.
func (l *ledger) expect(id podID, g *guess) {
	l.await(id)
	l.score(id, g)
}

func TestBoundPodsFadeAsSamplesShowThem(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	id := idOf("pod")
	l.bind(id, onN(s), noon)
	assert.Equal(t, use{800, 600}, s.ledger.load(), "at once")
	assert.Equal(t, use{}, s.requested.load(), "that is not the ledger's")

	started := noon.Add(20 * time.Second)
	at := noon.Add(30 * time.Second)
	l.settle(at, sampled(at, time.Minute))
	assert.Equal(t, map[*slot]bool{s: true}, l.busy(at))
	assert.Equal(t, use{800, 600}, s.ledger.load(), "it has not started")

	l.update(id, use{800, 600}, started)
	l.settle(at, nil)
	assert.Equal(t, use{800, 600}, s.ledger.load(), "nobody samples")
	l.settle(at, sampled(started.Add(-time.Second), time.Minute))
	assert.Equal(t, use{800, 600}, s.ledger.load(), "the sample is older")
	l.settle(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{600, 300}, s.ledger.load(), "a quarter of the window of CPU, and memory that has settled by half")

	l.update(id, use{400, 600}, time.Time{})
	l.settle(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{300, 300}, s.ledger.load(), "another estimate; once started it was seen")
	l.update(id, use{400, 600}, started.Add(time.Hour))
	l.settle(at, sampled(started.Add(15*time.Second), time.Minute))
	assert.Equal(t, use{300, 300}, s.ledger.load(), "started again is not started later")

	l.settle(at, sampled(started.Add(time.Minute), time.Minute))
	assert.NotEmpty(t, l.busy(at), "what it uses is in samples, and comes into forecasts")
	assert.Equal(t, use{}, s.ledger.load())
	l.settle(noon.Add(arrivalLife), nil)
	assert.NotEmpty(t, l.busy(started.Add(arrivalLife-1)))
	assert.Empty(t, l.busy(started.Add(arrivalLife)), "it is no new one any more")
	assert.Equal(t, use{400, 600}, s.ledger.load(), "but counts while nobody samples")
	l.settle(noon.Add(ledgerLife), nil)
	assert.Empty(t, l.busy(noon.Add(ledgerLife)))
	assert.Empty(t, l.bound)
	assert.Equal(t, use{}, s.ledger.load())
	l.update(id, use{800, 600}, started)
	l.settle(noon.Add(ledgerLife), nil)
	assert.Equal(t, use{}, s.ledger.load(), "it does not come back")
}

func TestBoundPodsGoInTime(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	l.bind(idOf("a"), onN(s), noon)
	l.bind(idOf("late"), onN(s), noon.Add(ledgerLife))
	assert.Equal(t, use{800, 600}, s.ledger.load(), "what was bound long ago never counts")
	l.settle(noon.Add(ledgerLife-time.Nanosecond), nil)
	assert.Equal(t, use{800, 600}, s.ledger.load())
	l.settle(noon.Add(ledgerLife), nil)
	assert.Equal(t, use{}, s.ledger.load())

	l.bind(idOf("b"), onN(s), noon)
	l.end(idOf("b"))
	assert.Equal(t, use{}, s.ledger.load(), "it ended before anybody looked")
	l.end(idOf("b"))
	assert.Equal(t, use{}, s.ledger.load())
}

// An image may take as long to come as a pod counts as new after it was bound.
func TestNodesAreBusyFromWhenPodsStart(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	e := onN(s)
	l.bind(idOf("pod"), e, noon)
	assert.Empty(t, l.busy(noon.Add(arrivalLife)), "it has not started, and counts in full")
	started := noon.Add(arrivalLife + time.Minute)
	l.update(idOf("pod"), e.estimate, started)
	at := started.Add(settles)
	l.settle(at, sampled(at, 0))
	assert.Equal(t, use{}, s.ledger.load(), "samples show it")
	assert.Equal(t, map[*slot]bool{s: true}, l.busy(at), "forecasts do not")
	assert.NotEmpty(t, l.busy(noon), "a clock that is ahead does no harm")
}

func TestScoredPods(t *testing.T) {
	var l *ledger
	var a, b *slot
	var what string
	id := idOf("pod")
	at := func(s *slot, since time.Duration) *guess {
		g := guessN(s)
		g.since = noon.Add(since)
		return g
	}
	counts := func(why string, inA, inB, requestedOfA, requestedOfB use) {
		t.Helper()
		assert.Equal(t, [4]use{inA, inB, requestedOfA, requestedOfB},
			[4]use{a.ledger.load(), b.ledger.load(), a.requested.load(), b.requested.load()}, "%s: %s", what, why)
	}
	estimate, requests := use{800, 600}, use{1000, 1000}
	for name, then := range map[string]func(){
		"it takes too long": func() {
			l.settle(noon.Add(2*time.Second-time.Nanosecond), nil)
			counts("not yet", estimate, use{}, requests, use{})
			l.settle(noon.Add(2*time.Second), nil)
			counts("", use{}, use{}, use{}, use{})
		},
		"it is bound where we thought": func() {
			l.bind(id, onN(a), noon)
			counts("its requests are told by others", estimate, use{}, use{}, use{})
			l.settle(noon.Add(time.Minute), nil)
			counts("", estimate, use{}, use{}, use{})
		},
		"it is bound elsewhere": func() {
			l.bind(id, onN(b), noon)
			counts("", use{}, estimate, use{}, use{})
		},
		"it is bound, but we hear of that late": func() {
			l.bind(id, onN(b), noon.Add(ledgerLife))
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
			l.score(id, at(b, time.Second))
			counts("on another", use{}, estimate, use{}, requests)
			l.score(id, at(b, time.Second))
			counts("on the same", use{}, estimate, use{}, requests)
			l.settle(noon.Add(2500*time.Millisecond), nil)
			counts("since later", use{}, estimate, use{}, requests)
		},
		"it is bound, and asked about by another scheduler": func() {
			l.bind(id, onN(b), noon)
			l.score(id, at(a, 0))
			counts("", use{}, estimate, use{}, use{})
		},
		"it is bound and ends in one moment": func() {
			l.bind(id, onN(b), noon)
			l.end(id)
			l.settle(noon.Add(time.Second), nil)
			counts("", use{}, use{}, use{}, use{})
		},
		"it is asked about again once it is bound": func() {
			l.bind(id, onN(b), noon)
			l.end(id)
			l.score(id, at(a, 0))
			counts("", use{}, use{}, use{}, use{})
		},
		"one is that nobody knows": func() {
			l.score(idOf("other"), at(b, 0))
			counts("", estimate, use{}, requests, use{})
		},
		"another is": func() {
			l.bind(idOf("other"), onN(b), noon)
			counts("", estimate, estimate, requests, use{})
		},
	} {
		l, a, b, what = newLedger(testRules()), &slot{}, &slot{}, name
		l.expect(id, at(a, 0))
		counts("it is scored", estimate, use{}, requests, use{})
		then()
	}
}

// Whatever a pod declares, it takes no more than there is.
func TestPodsCountAsNoMoreThanANodeHas(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	large := use{9000, 9000}
	small := &node{slot: s, allocatable: use{4000, 2000}}
	l.expect(idOf("scored"), guessOf(small, large, use{9000, -1}, noon))
	assert.Equal(t, use{4000, 0}, s.ledger.load())
	assert.Equal(t, use{4000, 2000}, s.requested.load())
	l.end(idOf("scored"))

	s.allocatable.set(use{4000, 2000})
	e := onN(s)
	e.estimate, e.started = large, noon
	l.bind(idOf("bound"), e, noon)
	assert.Equal(t, use{4000, 2000}, s.ledger.load())
	s.allocatable.set(use{2000, 0})
	l.settle(noon, sampled(noon.Add(15*time.Second), 0))
	assert.Equal(t, use{1000, 4500}, s.ledger.load(), "what is not known bounds nothing")
	l.end(idOf("bound"))
	assert.Equal(t, use{}, s.ledger.load())
}

func TestScoredPodsAreBounded(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	for i := range mostScored + 10 {
		l.expect(idOf(uid(i)), guessOf(&node{slot: s}, use{1, 1}, use{1, 1}, noon))
	}
	assert.Len(t, l.scored, mostScored)
	assert.Equal(t, use{mostScored, mostScored}, s.ledger.load())
	l.settle(noon.Add(time.Minute), nil)
	assert.Empty(t, l.scored)
	assert.Equal(t, use{}, s.ledger.load())
}

func TestClocksThatAreSetBack(t *testing.T) {
	l, s := newLedger(testRules()), &slot{}
	l.bind(idOf("bound"), onN(s), noon)
	l.expect(idOf("scored"), guessN(s))
	earlier := noon.Add(-time.Hour)
	l.settle(earlier, nil)
	assert.Equal(t, use{1600, 1200}, s.ledger.load())
	l.settle(earlier.Add(2*time.Second), nil)
	assert.Equal(t, use{800, 600}, s.ledger.load(), "as if it had been scored when the clock was set")
	l.settle(earlier.Add(ledgerLife), nil)
	assert.Equal(t, use{}, s.ledger.load())
}

func TestMoveTakesWhatIsBound(t *testing.T) {
	l, old, fresh, other := newLedger(testRules()), &slot{}, &slot{}, &slot{}
	l.bind(idOf("bound"), onN(old), noon)
	l.bind(idOf("else"), onN(other), noon)
	l.expect(idOf("scored"), guessN(old))
	l.update(idOf("bound"), use{800, 600}, noon)
	l.settle(noon.Add(time.Second), sampled(noon.Add(30*time.Second), time.Minute))
	l.move(old, fresh)
	assert.Equal(t, use{400, 0}, fresh.ledger.load(), "as it counted")
	assert.Equal(t, use{}, fresh.requested.load())
	assert.Equal(t, use{800, 600}, old.ledger.load(), "what was scored was meant for what is gone")
	assert.Equal(t, use{800, 600}, other.ledger.load())
	l.bind(idOf("scored"), onN(fresh), noon)
	assert.Equal(t, use{1200, 600}, fresh.ledger.load())
	assert.Equal(t, use{}, old.ledger.load())
	assert.Equal(t, use{}, old.requested.load())
}

func TestWithoutLedger(t *testing.T) {
	rules := testRules()
	rules.NoLedger = true
	l, s := newLedger(rules), &slot{}
	l.expect(idOf("scored"), guessN(s))
	l.bind(idOf("bound"), onN(s), noon)
	l.update(idOf("bound"), use{1, 1}, noon)
	l.settle(noon, nil)
	assert.Empty(t, l.busy(noon))
	assert.Equal(t, use{}, s.ledger.load())
	assert.Equal(t, use{}, s.requested.load())
	l.end(idOf("bound"))
	assert.Equal(t, use{}, s.ledger.load())
}
