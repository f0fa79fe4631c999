package keepalive

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

type change struct {
	at     time.Duration
	needed int
}

func after(changes ...change) *History {
	h := &History{}
	for _, c := range changes {
		h.Observe(start.Add(c.at), c.needed)
	}
	return h
}

func TestIdlePeriodsOfUnits(t *testing.T) {
	h := after(change{0, 3}, change{10 * time.Second, 1}, change{20 * time.Second, 0}, change{50 * time.Second, 2},
		change{60 * time.Second, 4})
	assert.Equal(t, []Period{{1, 1, 30}, {2, 2, 40}, {3, 3, 50}}, h.Periods)
	assert.Empty(t, h.Idle)
	assert.Equal(t, 4, h.Needed)
}

func TestUnitsOfOneRangeEndTogether(t *testing.T) {
	h := after(change{0, 9}, change{10 * time.Second, 2}, change{70 * time.Second, 7})
	assert.Equal(t, []Period{{3, 7, 60}}, h.Periods)
	assert.Equal(t, []Idle{{8, 9, start.Add(10 * time.Second)}}, h.Idle)
}

func TestPeriodsThatWereNotObservedAreDropped(t *testing.T) {
	h := after(change{0, 9}, change{time.Minute, 2})
	h.Resume(4)
	h.Observe(start.Add(time.Hour), 9)
	assert.Empty(t, h.Periods)
	assert.Empty(t, h.Idle)
}

func TestUnitsThatAreNotNeededAgain(t *testing.T) {
	h := after(change{0, 5}, change{time.Minute, 1}, change{time.Hour, 1}, change{2 * time.Hour, 1},
		change{121 * time.Minute, 1})
	assert.Equal(t, []Period{{2, 5, 7200}}, h.Periods)
	assert.Empty(t, h.Idle)
}

func costs(missing time.Duration) Costs { return Costs{Missing: missing, Startup: 45 * time.Second} }

// spikes need so many units for the first part of each period.
func spikes(h *History, from time.Time, n, units int, period, lasts time.Duration) time.Time {
	for i := range n {
		begin := from.Add(time.Duration(i) * period)
		for at := time.Duration(0); at < period; at += 5 * time.Second {
			needed := 1
			if at < lasts {
				needed = units
			}
			h.Observe(begin.Add(at), needed)
		}
	}
	return from.Add(time.Duration(n) * period)
}

func TestNothingIsKeptBeforeALoadHasReturned(t *testing.T) {
	h := after(change{0, 9}, change{10 * time.Second, 2})
	assert.Equal(t, 2, h.Plan(start.Add(11*time.Second), costs(time.Hour)).Keep)
}

// A load that returns sooner than keeping would cost as much as missing is kept for.
func TestLoadsThatReturnSoonAreKeptFor(t *testing.T) {
	h := &History{}
	now := spikes(h, start, 5, 6, 2*time.Minute, time.Minute)
	now = now.Add(-30 * time.Second)
	assert.Equal(t, 6, h.Plan(now, costs(3*time.Minute)).Keep)
	assert.Equal(t, 1, h.Plan(now, costs(10*time.Second)).Keep, "missing costs less than the half minute to come")
	late := now.Add(3 * time.Minute)
	h.Observe(late, 1)
	assert.Equal(t, 1, h.Plan(late, costs(3*time.Minute)).Keep, "it has not returned when it should have")
}

// A load that returns on a schedule is not kept for in between, and started for in time.
func TestLoadsThatReturnOnScheduleAreStartedFor(t *testing.T) {
	h := &History{}
	end := spikes(h, start, 5, 6, 20*time.Minute, time.Minute)
	c := Costs{Missing: 9 * time.Minute, Startup: 45 * time.Second}
	var kept, started time.Duration
	for at := time.Minute; at < 20*time.Minute; at += 5 * time.Second {
		now := end.Add(at - 20*time.Minute)
		p := h.Plan(now, c)
		require.LessOrEqual(t, p.Start, p.Keep)
		if p.Keep == 6 {
			kept += 5 * time.Second
		}
		if p.Start == 6 && started == 0 {
			started = at
		}
	}
	assert.Less(t, kept, 4*time.Minute)
	assert.Greater(t, started, 16*time.Minute)
	assert.Less(t, started, 20*time.Minute-45*time.Second, "ready when the load returns")
}

func TestHistoryIsBoundedAndStored(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := &History{}
	now := start
	for range 500 {
		now = now.Add(time.Duration(random.IntN(600)) * time.Second)
		h.Observe(now, random.IntN(1000))
		require.LessOrEqual(t, len(h.Periods), maxPeriods)
		require.LessOrEqual(t, len(h.Idle), maxRanges)
		requireOrdered(t, h)
		c := Costs{Missing: time.Duration(random.IntN(3600)) * time.Second,
			Startup: time.Duration(1+random.IntN(600)) * time.Second}
		p := h.Plan(now, c)
		require.GreaterOrEqual(t, p.Start, h.Needed)
		require.LessOrEqual(t, p.Start, p.Keep)
	}
	stored, err := json.Marshal(h)
	require.NoError(t, err)
	assert.Less(t, len(stored), 16<<10)
	var restored History
	require.NoError(t, json.Unmarshal(stored, &restored))
	assert.Equal(t, *h, restored)
}

// requireOrdered checks that the idle ranges are those above what is needed, and that lower units
// became idle later.
func requireOrdered(t *testing.T, h *History) {
	t.Helper()
	next := h.Needed + 1
	for i, r := range h.Idle {
		require.Equal(t, next, r.First)
		require.LessOrEqual(t, r.First, r.Last)
		next = r.Last + 1
		require.False(t, i > 0 && r.Since.After(h.Idle[i-1].Since))
	}
}

// A slow fall of many units is remembered in few ranges.
func TestSlowFallsAreBounded(t *testing.T) {
	h := &History{}
	for i := range 1000 {
		h.Observe(start.Add(time.Duration(i)*5*time.Second), 1000-i)
		require.LessOrEqual(t, len(h.Idle), maxRanges)
		requireOrdered(t, h)
	}
	assert.Equal(t, 1000, h.Idle[len(h.Idle)-1].Last)
}

// Frequent changes of a few units do not displace what is known of others.
func TestRarePeriodsStay(t *testing.T) {
	h := &History{}
	now := spikes(h, start, 3, 40, 10*time.Minute, time.Minute)
	for i := range 1000 {
		now = now.Add(5 * time.Second)
		h.Observe(now, 1+i%2)
	}
	assert.Len(t, h.samples(40), 2)
}

// outcome is what a policy costs.
type outcome struct{ unitHours, missingHours float64 }

// play has a load come and go. A unit is removed when it is idle for idleFor and the history does
// not keep it, and started when it is needed or the history says so.
func play(needed []int, idleFor time.Duration, c *Costs) outcome {
	const step = 5 * time.Second
	h := &History{}
	var out outcome
	type unit struct{ ready, used time.Time }
	var units []unit
	for i, n := range needed {
		now := start.Add(time.Duration(i) * step)
		h.Observe(now, n)
		keep, want := n, n
		if c != nil {
			p := h.Plan(now, *c)
			keep, want = p.Keep, p.Start
		}
		for len(units) < want {
			units = append(units, unit{now.Add(45 * time.Second), now})
		}
		for j := range units {
			if j < keep {
				units[j].used = now
			}
		}
		for len(units) > keep && now.Sub(units[len(units)-1].used) >= idleFor {
			units = units[:len(units)-1]
		}
		for j, u := range units {
			out.unitHours += step.Hours()
			if j < n && now.Before(u.ready) {
				out.missingHours += step.Hours()
			}
		}
	}
	return out
}

// batches are jobs that come at random.
func batches(random *rand.Rand, every time.Duration) []int {
	needed := make([]int, 12*60*8)
	for at := 0.0; ; {
		at += random.ExpFloat64() * every.Seconds() / 5
		if int(at) >= len(needed) {
			break
		}
		nodes, until := 1+random.IntN(6), int(at)+12+random.IntN(36)
		for i := int(at); i < min(until, len(needed)); i++ {
			needed[i] += nodes
		}
	}
	for i := range needed {
		needed[i] += 2
	}
	return needed
}

func spiky() []int {
	needed := make([]int, 12*60*8)
	for i := range needed {
		if needed[i] = 2; i%48 < 12 {
			needed[i] = 10
		}
	}
	return needed
}

// BenchmarkPolicies prints what fixed times and learned ones cost: unit hours, and hours in which a
// unit was missing.
func BenchmarkPolicies(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, needed := range map[string][]int{
		"spikes": spiky(), "batches-2m": batches(random, 2*time.Minute), "batches-10m": batches(random, 10*time.Minute),
		"batches-30m": batches(random, 30*time.Minute),
	} {
		for _, idleFor := range []time.Duration{15 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
			10 * time.Minute} {
			b.Run(fmt.Sprintf("%s/fixed-%s", name, idleFor),
				func(b *testing.B) { report(b, play(needed, idleFor, nil)) })
		}
		for _, missing := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute,
			10 * time.Minute} {
			c := &Costs{Missing: missing, Startup: 45 * time.Second}
			b.Run(fmt.Sprintf("%s/learned-%s", name, missing),
				func(b *testing.B) { report(b, play(needed, 15*time.Second, c)) })
		}
	}
}

func report(b *testing.B, o outcome) {
	b.ReportMetric(o.unitHours, "unit-h")
	b.ReportMetric(60*o.missingHours, "missing-min")
	b.ReportMetric(0, "ns/op")
}
