package fluid_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/world/fluid"
)

type steady float64

func (s steady) Rate(int64) float64 { return float64(s) }

type loadOf func(t int64) float64

func (l loadOf) Rate(t int64) float64 { return l(t) }

type ramp float64 // requests per second more each second

func (r ramp) Rate(t int64) float64 { return float64(r) * float64(t) / 1000 }

func config() fluid.Config {
	return fluid.Config{Load: steady(200), Seed: 1, Min: 1, Max: 20, Warm: 4, Capacity: 100, Startup: 20 * time.Second}
}

// play advances by whole seconds and returns what they were.
func play(w *fluid.World, from, to int64) []lab.Second {
	var out []lab.Second
	for t := from; t < to; t++ {
		w.Advance((t + 1) * 1000)
		out = append(out, w.Second())
	}
	return out
}

func sum(pods []*lab.Pod, mean func(p *lab.Pod) float64) (total float64) {
	for _, p := range pods {
		total += mean(p)
	}
	return total
}

func TestSecondHasTheTrueLoad(t *testing.T) {
	w := fluid.New(config())
	assert.Equal(t, lab.Second{Rate: 200, Offered: 2, Pods: 4, Ready: 4, Target: 4}, play(w, 0, 1)[0])

	c := config()
	c.Load = ramp(10)
	assert.InDelta(t, 0.05, fluidSecond(c, 0).Offered, 1e-12, "the middle of the second 0: 5 requests/s")
	assert.InDelta(t, 9.95, fluidSecond(c, 99).Offered, 1e-12)
}

func fluidSecond(c fluid.Config, s int64) lab.Second {
	w := fluid.New(c)
	w.Advance((s + 1) * 1000)
	return w.Second()
}

func TestPodsStartWithinTheSpread(t *testing.T) {
	c := config()
	c.Max = 200
	w := fluid.New(c)
	w.Advance(10_250)
	w.SetTarget(200)
	least, most, total := int64(math.MaxInt64), int64(0), 0.0
	for _, p := range w.View().Pods[4:] {
		assert.EqualValues(t, 10_250, p.Created)
		assert.Zero(t, p.Ready%1000, "a whole second")
		least, most, total = min(least, p.Ready), max(most, p.Ready), total+float64(p.Ready-p.Created)
	}
	assert.EqualValues(t, 27_000, least, "10.25 + 17 s, rounded")
	assert.EqualValues(t, 33_000, most, "10.25 + 23 s, rounded")
	assert.InDelta(t, 20_000, total/196, 400)

	assert.Equal(t, 23_500*time.Millisecond, fluid.LongestStartup(c.Startup))
	before := w.Second()
	assert.Equal(t, 200, before.Pods)
	assert.Equal(t, 4, before.Ready)
	after := play(w, 11, 40)
	assert.Equal(t, 4, after[26-11].Ready)
	assert.Equal(t, 200, after[33-11].Ready)
	for _, p := range w.View().Pods[4:] {
		assert.Zero(t, p.Requests.Mean(p.Created, p.Ready), "none before it is ready")
		assert.Positive(t, p.Requests.Mean(p.Ready, 40_000))
	}
}

func TestRemovesUnreadyPodsFirstThenTheNewest(t *testing.T) {
	w := fluid.New(config())
	w.Advance(1000)
	w.SetTarget(6)
	w.Advance(40_000)
	w.SetTarget(8)
	w.Advance(45_000)
	w.SetTarget(5)
	pods := w.View().Pods
	require.Len(t, pods, 8)
	var ended []int
	for i, p := range pods {
		if p.Ended != lab.Never {
			ended = append(ended, i)
			assert.EqualValues(t, 45_000, p.Ended)
		}
	}
	assert.Equal(t, []int{5, 6, 7}, ended)
	assert.Equal(t, lab.Never, pods[7].Ready, "it never was")
	assert.EqualValues(t, 40_000, w.View().Rose)
	assert.EqualValues(t, 45_000, w.View().Fell)
	w.Advance(60_000)
	assert.Equal(t, lab.Second{Rate: 200, Offered: 2, Pods: 5, Ready: 5, Target: 5}, w.Second())
	assert.Zero(t, pods[5].Requests.Mean(45_000, 60_000), "nothing reaches a pod that was removed")
}

func TestRequestsAreConservedAndPoisson(t *testing.T) {
	const seconds = 20_000
	for _, rate := range []float64{0.3, 12, 39, 41, 500} {
		c := config()
		c.Load, c.Capacity = steady(rate), 1000
		w := fluid.New(c)
		w.SetTarget(7)
		var n, squares, first float64
		for s := range int64(seconds) {
			w.Advance((s + 1) * 1000)
			all := sum(w.View().Pods, func(p *lab.Pod) float64 { return p.Requests.Mean(s*1000, (s+1)*1000) })
			all = math.Round(all*1e6) / 1e6
			require.Equal(t, all, math.Round(all), "whole requests")
			n, squares, first = n+all, squares+all*all, first+w.View().Pods[0].Requests.Mean(s*1000, (s+1)*1000)
		}
		mean, variance := n/seconds, squares/seconds-(n/seconds)*(n/seconds)
		assert.InDelta(t, rate, mean, 4*math.Sqrt(rate/seconds))
		assert.InDelta(t, rate, variance, 0.05*rate+0.05, "of a Poisson process, rate %v", rate)
		assert.InDelta(t, rate/7, first/seconds, 0.03*rate/7+0.01, "a seventh each")
	}
}

func TestRecordedLoadsArePoisson(t *testing.T) {
	const seconds = 20_000
	for _, rate := range []float64{0.3, 12, 500} {
		load := fluid.Recorded(steady(rate), 1)
		var n, squares float64
		for s := int64(seconds); s > 0; s-- {
			x := load.Rate((s - seconds/2) * 1000)
			require.Equal(t, x, load.Rate((s-seconds/2)*1000+999), "the same all second")
			n, squares = n+x, squares+x*x
		}
		mean, variance := n/seconds, squares/seconds-(n/seconds)*(n/seconds)
		assert.InDelta(t, rate, mean, 4*math.Sqrt(rate/seconds))
		assert.InDelta(t, rate, variance, 0.05*rate+0.05, "of a Poisson process, rate %v", rate)
	}
	differ := 0
	for s := range int64(100) {
		if fluid.Recorded(steady(500), 1).Rate(s*1000) != fluid.Recorded(steady(500), 2).Rate(s*1000) {
			differ++
		}
	}
	assert.Greater(t, differ, 90, "seeds differ")
}

func TestExactLoadsHaveNoNoiseOfCounting(t *testing.T) {
	c := config()
	c.Load, c.Exact = steady(137), true
	w := fluid.New(c)
	for s := range int64(100) {
		w.Advance((s + 1) * 1000)
		assert.InDelta(t, 137, sum(w.View().Pods,
			func(p *lab.Pod) float64 { return p.Requests.Mean(s*1000, (s+1)*1000) }), 1e-9)
	}
	assert.NotEqual(t, 137.0/4, w.View().Pods[0].Requests.Mean(0, 100_000), "which pod they go to is left to chance")
}

// Counts of seconds that follow each other are not evened out.
func TestExactLoadsArePlayedSecondBySecond(t *testing.T) {
	c := config()
	c.Load, c.Exact = loadOf(func(at int64) float64 { // straight between 0 and 100, as a trace has it between two counts
		phase := float64(at%2000) / 1000
		return 100 * min(phase, 2-phase)
	}), true
	w := fluid.New(c)
	for s, second := range play(w, 0, 20) {
		count := 100 * float64(s%2)
		from := int64(s) * 1000
		assert.InDelta(t, count, sum(w.View().Pods,
			func(p *lab.Pod) float64 { return p.Requests.Mean(from, from+1000) }), 1e-9)
		assert.InDelta(t, count, second.Rate, 0)
		assert.InDelta(t, count/c.Capacity, second.Offered, 1e-12)
	}
}

func TestOverloadWaitsForTenSecondsOfWork(t *testing.T) {
	c := config()
	c.Load = steady(4000)
	w := fluid.New(c)
	play(w, 0, 60)
	for _, p := range w.View().Pods {
		assert.InDelta(t, 1, p.Busy.Mean(0, 60_000), 1e-12, "busy all the time, and no more")
		assert.InDelta(t, 1000, p.Requests.Mean(0, 60_000), 20, "what reaches it is more than it can do")
	}
	c.Unclipped = true
	w = fluid.New(c)
	play(w, 0, 60)
	assert.InDelta(t, 10, w.View().Pods[0].Busy.Mean(0, 60_000), 0.2, "what it was asked to do")
	c.Load = steady(0)
	w = fluid.New(c)
	play(w, 0, 60)
	assert.Zero(t, w.View().Pods[0].Busy.Mean(0, 60_000))
}

// Two runs of one seed meet the same arrivals and pods, whatever is decided in them, and whenever
// they are looked at.
func TestRunsOfOneSeedArePaired(t *testing.T) {
	c := config()
	one, other := fluid.New(c), fluid.New(c)
	other.SetTarget(9)
	for s := range int64(300) {
		one.Advance(s*1000 + 300)
		one.Advance((s + 1) * 1000)
		if s == 200 {
			one.SetTarget(9)
		}
		other.Advance((s + 1) * 1000)
		arrived := func(p *lab.Pod) float64 { return p.Requests.Mean(s*1000, (s+1)*1000) }
		require.InDelta(t, sum(one.View().Pods, arrived), sum(other.View().Pods, arrived), 1e-9)
	}
	a, b := one.View().Pods[6], other.View().Pods[6]
	assert.Equal(t, a.ID, b.ID)
	assert.Equal(t, a.Ready-a.Created, b.Ready-b.Created)

	c.Seed = 2
	third := fluid.New(c)
	third.Advance(300_000)
	assert.NotEqual(t, one.View().Pods[0].Requests.Mean(0, 300_000), third.View().Pods[0].Requests.Mean(0, 300_000))
}

// A look in the middle of a second sees the part of it that has passed.
func TestLooksWithinASecond(t *testing.T) {
	w := fluid.New(config())
	w.Advance(10_400)
	p := w.View().Pods[0]
	early := p.Busy.Mean(9_400, 10_400)
	w.Advance(12_000)
	assert.Equal(t, early, p.Busy.Mean(9_400, 10_400))
}

func TestDropsOldPodsAndReadings(t *testing.T) {
	w := fluid.New(config())
	for s := int64(0); s < 4*3600; s += 60 {
		w.Advance(s * 1000)
		w.SetTarget(4 + int(s/60)%2)
	}
	assert.LessOrEqual(t, len(w.View().Pods), 4+1+12, "those that ended within ten minutes")
	p := w.View().Pods[0]
	now := w.View().Now
	assert.InDelta(t, 50, p.Requests.Mean(now-600_000, now), 4)
}

func BenchmarkDay(b *testing.B) {
	c := config()
	c.Load = steady(1400)
	for b.Loop() {
		w := fluid.New(c)
		w.SetTarget(20)
		play(w, 0, 86_400)
	}
}
