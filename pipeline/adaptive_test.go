package pipeline_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// noisyFleet are n instances that share a load for six minutes up to 360 s, each reading its share
// with a noise of its own.
func (r fleets) noisyFleet(n int, noise float64, load func(second int) float64) pipeline.Input {
	in := at(360_000)
	for i := range n {
		instance := pipeline.Instance{ID: fmt.Sprint(i), Start: -1_000_000}
		for k := range 361 {
			v := max(0, load(k)/float64(n)+noise*r.NormFloat64())
			instance.Samples = append(instance.Samples, pipeline.Sample{T: int64(k) * 1000, V: v})
		}
		in.Instances = append(in.Instances, instance)
	}
	return in
}

// A constant load has no trend, however noisy, and a fleet that is large enough for it stays as it is.
func TestAdaptiveHoldsOnNoise(t *testing.T) {
	const windows = 1000
	for _, c := range []struct {
		instances, target int
		load, noise       float64
	}{
		{4, 3, 2, 0.02}, {4, 3, 2, 0.1}, {12, 10, 7, 0.15},
	} {
		sloped, acted, off := 0, 0, 0
		for seed := range uint64(windows) {
			in := newFleets(seed).noisyFleet(c.instances, c.noise, func(int) float64 { return c.load })
			in.Target = c.target
			f := run(t, adaptive(), in)
			if math.Abs(f.Level-c.load) > 0.1*c.load {
				off++
			}
			if f.Trend != 0 {
				sloped++
			}
			if f.Decision.Action != pipeline.Hold {
				acted++
			}
		}
		t.Logf("%+v: %d of %d have a trend, %d act, %d are off by a tenth", c, sloped, windows, acted, off)
		require.LessOrEqual(t, sloped, 2, "%+v", c)
		require.LessOrEqual(t, acted, 5, "%+v", c)
		require.LessOrEqual(t, off, 5, "%+v", c)
	}
}

// A load that is counted is its newest value, whatever it was before. What arrives at once is no
// trend, and what goes on rising is.
func TestCountedLoads(t *testing.T) {
	for name, c := range map[string]struct {
		load  func(second int) float64
		trend float64 // per second
	}{
		"a jump":                {func(s int) float64 { return map[bool]float64{true: 10, false: 2}[s >= 358] }, 0},
		"a jump in three ticks": {func(s int) float64 { return 2 + 3*float64(min(3, max(0, s-356))) }, 0},
		"steps apart":           {func(s int) float64 { return 2 + float64(s/20) }, 0},
		"noise":                 {func(s int) float64 { return 5 + float64(s%2) }, 0},
		"a rise":                {func(s int) float64 { return 2 + 0.1*float64(max(0, s-300)) }, 0.1},
		"a rise with a pause":   {func(s int) float64 { return 2 + 0.1*float64(max(0, s-300)-max(0, min(1, s-357))) }, 0.1},
		"a fall":                {func(s int) float64 { return 20 - 0.1*float64(max(0, s-300)) }, -0.1},
	} {
		t.Run(name, func(t *testing.T) {
			p := adaptive()
			p.Counted, p.NoiseMargin = true, 0
			f := run(t, p, newFleets(1).noisyFleet(1, 0, c.load))
			require.Equal(t, c.load(360), f.Level)
			require.Zero(t, f.Error)
			require.InDelta(t, c.trend, f.Trend, 0.02*0.1)
		})
	}
}

// A rise of half of a minute's standing is seen at the horizon, 40 s on, to within a tenth under noise.
func TestAdaptiveSeesARampAhead(t *testing.T) {
	for name, c := range map[string]struct{ from, to float64 }{"up": {2, 8}, "down": {8, 4}} {
		t.Run(name, func(t *testing.T) {
			load := func(second int) float64 { return c.from + (c.to-c.from)*max(0, float64(second-300)/60) }
			for seed := range uint64(200) {
				f := run(t, adaptive(), newFleets(seed).noisyFleet(8, 0.01, load))
				require.InDelta(t, load(360), f.Level, 0.05*load(360), "seed %d", seed)
				require.InDelta(t, load(400), f.Total, 0.1*load(400)+0.15, "seed %d", seed)
				require.GreaterOrEqual(t, f.PlannedLoad, max(f.Level, f.Total), "seed %d", seed)
			}
		})
	}
}

// While a load falls, the requested load is the present one.
func TestFallingLoadsAreNotForecastBelowNow(t *testing.T) {
	lower := 0
	for seed := range uint64(300) {
		r := newFleets(seed)
		slope := r.Between(-0.02, 0)
		f := run(t, adaptive(), r.noisyFleet(8, pick(r, 0, 0.02, 0.1),
			func(second int) float64 { return 8 + slope*float64(second) }))
		require.GreaterOrEqual(t, f.PlannedLoad, f.Level, "seed %d", seed)
		require.GreaterOrEqual(t, f.Required, f.Level/tau, "seed %d", seed)
		if f.Total < f.Level {
			lower++
		}
	}
	require.Greater(t, lower, 100, "trends down")
}

// Noise adds a margin to the required load.
func TestNoiseMargin(t *testing.T) {
	in := newFleets(3).noisyFleet(8, 0.1, func(int) float64 { return 4 })
	damped := func(margin float64) float64 {
		p := adaptive()
		p.NoiseMargin = margin
		f := run(t, p, in)
		require.InDelta(t, f.PlannedLoad/tau, f.Required, 1e-12)
		return f.PlannedLoad
	}
	deviation := 0.1 * math.Sqrt(8)
	require.InDelta(t, 0.8*deviation, damped(0.8)-damped(0), 0.25*deviation)
	require.InDelta(t, 2*(damped(0.8)-damped(0)), damped(1.6)-damped(0), 1e-12)
}

// As seen from outside: four instances that read all they can, and newcomers that do not yet.
func TestNewcomersDoNotEndAClippedRise(t *testing.T) {
	const clippedFrom = 40
	fleet := func(fresh int, now int) pipeline.Forecast {
		var in pipeline.Input
		for i := range 4 {
			values := append(ramp(clippedFrom, 0.4, 0.6/clippedFrom), repeat(now-clippedFrom+1, 1)...)
			in.Instances = append(in.Instances, pipeline.Instance{ID: fmt.Sprint(i), Samples: everySecond(0, values...)})
		}
		for i := range fresh {
			values := repeat(11, 0.2)
			in.Instances = append(in.Instances, pipeline.Instance{
				ID: fmt.Sprint("new-", i), Start: int64(now-10) * 1000, Samples: everySecond(int64(now-10)*1000, values...),
			})
		}
		in.Now, in.TargetRose, in.Target = int64(now)*1000, pipeline.Never, 4
		return run(t, clipping(), in)
	}
	for _, now := range []int{50, 60, 70} {
		alone := fleet(0, now)
		require.GreaterOrEqual(t, alone.Total, 4*1.15-1e-9)
		require.GreaterOrEqual(t, alone.LoadNow, 1.0, "a fleet that reads all it can has no less to do")
		require.InDelta(t, 0.06, alone.Trend, 0.006, "at %d", now) // 4·0.6/40
		require.InDelta(t, 4+0.06*min(50, float64(now-clippedFrom)+40), alone.Total, 0.5, "at %d", now)
		joined := fleet(5, now)
		require.GreaterOrEqual(t, joined.Total, alone.Total, "at %d", now)
		require.InDelta(t, alone.Trend, joined.Trend, 1e-12, "at %d", now)
		require.Equal(t, pipeline.ScaleUp, joined.Decision.Action)
	}
}

// A fleet that jumps to full may hide half as much again as it shows, and no more, for as long as it is full.
func TestAJumpToFullHidesHalfAsMuchAgainAtMost(t *testing.T) {
	for _, onTheWay := range []float64{0.2, 0.5, 0.95} { // what it read at the tick in between
		for _, full := range []int{3, 10, 60} {
			in := at(int64(100+full) * 1000)
			for i := range 2 {
				values := append(append(repeat(100, 0.2), onTheWay), repeat(full, 1)...)
				in.Instances = append(in.Instances,
					pipeline.Instance{ID: fmt.Sprint(i), Start: -1_000_000, Samples: everySecond(0, values...)})
			}
			f := run(t, clipping(), in)
			require.GreaterOrEqual(t, f.Level, 2-1e-9, "%v, then full for %d s", onTheWay, full)
			require.GreaterOrEqual(t, f.Total, 2*1.15-1e-9, "%v, then full for %d s", onTheWay, full)
			require.LessOrEqual(t, f.Level, 3+1e-9, "%v, then full for %d s", onTheWay, full)
			require.LessOrEqual(t, f.Total, 3+1e-9, "%v, then full for %d s", onTheWay, full)
		}
	}
}

// A fleet that is clipped for the whole window is taken to have 15% more load than it shows.
func TestClippedThroughout(t *testing.T) {
	f := run(t, clipping(), at(60_000, constants(1, 1, 1)...))
	require.InDelta(t, 3.45, f.Total, 1e-12)
	require.Equal(t, pipeline.ScaleUp, f.Decision.Action)
	require.Equal(t, 5, f.Decision.Desired)
}
