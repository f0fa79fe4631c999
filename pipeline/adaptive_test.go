package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// noisyFleet are n instances that share a load for six minutes up to 360 s, each reading its share with a noise of its own.
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

// A load that is counted is its newest value, whatever it was before. What arrives at once is no trend, and what goes on rising is.
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
				require.GreaterOrEqual(t, f.Damped, max(f.Level, f.Total), "seed %d", seed)
			}
		})
	}
}

// A trend goes on for a quarter longer than the line it was read from, and no longer.
func TestTrendsEnd(t *testing.T) {
	for _, n := range []int{10, 20, 36, 64} {
		values := append(repeat(150-n, 100), ramp(n, 104, 4)...)
		l := line.Fit(seriestest.Loads(values...), line.NewSampling(1, 0), make([]float64, len(values)))
		o := pipeline.LoadsOf(values...).Project(1)
		require.Equal(t, 1.25*float64(l.Ticks), o.Lasts)
		require.Equal(t, l.Level, o.Level)
		require.Equal(t, l.Slope*l.Trust(), o.Slope)
		for _, ticks := range []float64{0, 1, o.Lasts / 2, o.Lasts} {
			require.InDelta(t, o.Level+o.Slope*ticks, o.Total(ticks), 1e-9)
		}
		require.Equal(t, o.Total(o.Lasts), o.Total(o.Lasts+1))
		require.Equal(t, o.Total(o.Lasts), o.Total(1e9))
		require.InDelta(t, values[149]+4*1.25*float64(n), o.Total(1e9), 0.25*4*1.25*float64(n)+2, "over %d", n)
	}
	falling := pipeline.LoadsOf(ramp(90, 1000, -10)...).Project(1)
	require.InDelta(t, 110-400, falling.Level+40*falling.Slope, 1)
	require.Zero(t, falling.Total(40), "load does not fall below nothing")
}

// From the third tick after a jump on the level is what it jumped to, without a trend. Until then, as it could be the begin of
// a steep rise, it is carried on for a moment, by some twice the jump at most.
func TestAdaptiveFollowsAJump(t *testing.T) {
	for since := 1; since <= 20; since++ {
		o := pipeline.LoadsOf(append(repeat(200, 10), repeat(since, 20)...)...).Project(1)
		assert.GreaterOrEqual(t, o.Total(40), 20-1e-9, "%d ticks after", since)
		assert.LessOrEqual(t, o.Total(40), 42.0, "%d ticks after", since)
		if since >= 3 {
			assert.InDelta(t, 20, o.Level, 0.1, "%d ticks after", since)
			assert.InDelta(t, 20, o.Total(40), 0.1, "%d ticks after", since)
		}
	}
}

// Where a load falls no more is asked for than now, and no less either.
func TestFallingLoadsAreNotForecastBelowNow(t *testing.T) {
	lower := 0
	for seed := range uint64(300) {
		r := newFleets(seed)
		slope := r.Between(-0.02, 0)
		f := run(t, adaptive(), r.noisyFleet(8, pick(r, 0, 0.02, 0.1), func(second int) float64 { return 8 + slope*float64(second) }))
		require.GreaterOrEqual(t, f.Damped, f.Level, "seed %d", seed)
		require.GreaterOrEqual(t, f.Required, f.Level/tau, "seed %d", seed)
		if f.Total < f.Level {
			lower++
		}
	}
	require.Greater(t, lower, 100, "trends down")
}

// Noise adds its margin to what is required.
func TestNoiseMargin(t *testing.T) {
	in := newFleets(3).noisyFleet(8, 0.1, func(int) float64 { return 4 })
	damped := func(margin float64) float64 {
		p := adaptive()
		p.NoiseMargin = margin
		f := run(t, p, in)
		require.InDelta(t, f.Damped/tau, f.Required, 1e-12)
		return f.Damped
	}
	deviation := 0.1 * math.Sqrt(8)
	require.InDelta(t, 0.8*deviation, damped(0.8)-damped(0), 0.25*deviation)
	require.InDelta(t, 2*(damped(0.8)-damped(0)), damped(1.6)-damped(0), 1e-12)
}

// While a fleet is clipped its load is taken to go on rising as it did, and to be at least 15% more than what shows.
func TestClippedRiseGoesOn(t *testing.T) {
	for _, since := range []int{5, 10, 20, 30, 60} {
		values := append(repeat(100, 10), ramp(60, 10.5, 0.5)...) // up to 40
		values = append(values, repeat(since, 40)...)
		n := len(values)
		o := pipeline.LoadsOf(values...).Clip(160, n).Project(1)
		require.Equal(t, float64(since), o.Ahead)
		require.InDelta(t, 0.5, o.Slope, 0.02)
		require.InDelta(t, 40, o.Level, 0.2)
		require.InDelta(t, 46, o.Least, 1e-9)
		require.Zero(t, o.Noise)
		for _, ticks := range []float64{0, 10, 40} {
			want := max(46, 40+0.5*min(float64(since)+ticks, 75))
			require.InDelta(t, want, o.Total(ticks), 4, "clipped for %d, %v ahead", since, ticks)
		}
	}
	flat := append(repeat(100, 20), repeat(20, 24)...)
	require.InDelta(t, 1.15*24, pipeline.LoadsOf(flat...).Clip(100, 120).Project(1).Total(40), 1e-9, "without a rise before")
	falling := append(ramp(100, 60, -0.5), repeat(20, 24)...)
	o := pipeline.LoadsOf(falling...).Clip(100, 120).Project(1)
	require.Zero(t, o.Slope, "what fell before it was clipped does not go on falling")
	require.InDelta(t, 1.15*24, o.Total(40), 1e-9)
	more := append(repeat(100, 20), append(repeat(20, 24), repeat(20, 36)...)...)
	require.InDelta(t, 1.15*36, pipeline.LoadsOf(more...).Clip(100, 140).Project(1).Total(0), 1e-9, "a fleet that has grown shows more")
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
				in.Instances = append(in.Instances, pipeline.Instance{ID: fmt.Sprint(i), Start: -1_000_000, Samples: everySecond(0, values...)})
			}
			f := run(t, clipping(), in)
			require.GreaterOrEqual(t, f.Level, 2-1e-9, "%v, then full for %d s", onTheWay, full)
			require.GreaterOrEqual(t, f.Total, 2*1.15-1e-9, "%v, then full for %d s", onTheWay, full)
			require.LessOrEqual(t, f.Level, 3+1e-9, "%v, then full for %d s", onTheWay, full)
			require.LessOrEqual(t, f.Total, 3+1e-9, "%v, then full for %d s", onTheWay, full)
		}
	}
}

// A whole window that is clipped shows a bound, and no trend.
func TestClippedThroughout(t *testing.T) {
	require.Equal(t, 8.0, pipeline.LoadsOf(repeat(4, 8)...).Clip(0, 4).Project(1).Total(40), "a few ticks may be noise")
	for _, n := range []int{5, 20, 300} {
		o := pipeline.LoadsOf(repeat(n, 8)...).Clip(0, n).Project(1)
		require.Equal(t, 8.0, o.Level)
		require.Zero(t, o.Slope)
		for _, ticks := range []float64{0, 40, 1000} {
			require.InDelta(t, 9.2, o.Total(ticks), 1e-9)
		}
	}
	f := run(t, clipping(), at(60_000, constants(1, 1, 1)...))
	require.InDelta(t, 3.45, f.Total, 1e-12)
	require.Equal(t, pipeline.ScaleUp, f.Decision.Action)
	require.Equal(t, 5, f.Decision.Desired)
}

// Ticks that are clipped only as noise has it are as any others.
func TestNoiseExplainsShortClippedRuns(t *testing.T) {
	noisy := func(seed uint64, n int) []float64 {
		r, values := newFleets(seed), repeat(n, 50)
		for k := range values {
			values[k] += 3 * r.NormFloat64()
		}
		return values
	}
	for seed := range uint64(100) {
		values := noisy(seed, 200)
		for _, run := range []struct{ at, n int }{{100, 3}, {150, 3}, {197, 3}} {
			for k := range run.n {
				values[run.at+k] = 56
			}
		}
		want := pipeline.LoadsOf(values...).Project(1)
		got := pipeline.LoadsOf(values...).Clip(100, 103).Clip(150, 153).Clip(197, 200).Project(1)
		want.Total, got.Total = nil, nil
		require.Equal(t, want, got, "seed %d", seed)
	}
	for name, c := range map[string]struct {
		values   []float64
		from, to int
		ignored  bool
	}{
		"a few ticks after too few to tell":  {append(repeat(9, 5), repeat(4, 9)...), 9, 13, true},
		"more ticks after too few to tell":   {append(repeat(9, 5), repeat(5, 9)...), 9, 14, false},
		"a few ticks far above a quiet load": {append(repeat(100, 5), repeat(3, 9)...), 100, 103, false},
		"far above a noisy load":             {append(noisy(1, 100), repeat(3, 90)...), 100, 103, false},
		"above a noisy load, for long":       {append(noisy(1, 100), repeat(40, 56)...), 100, 140, false},
		"no more than the load before":       {append(noisy(1, 100), repeat(3, 40)...), 100, 103, false},
		"two thirds of the ticks of a run":   {append(repeat(9, 5), 9, 9, 1, 9, 9), 9, 14, false},
	} {
		o := pipeline.LoadsOf(c.values...).Clip(c.from, c.to).Project(1)
		if c.ignored {
			assert.Zero(t, o.Least, name)
			assert.Zero(t, o.Ahead, name)
		} else {
			assert.InDelta(t, 1.15*c.values[len(c.values)-1], o.Least, 1e-9, name)
			assert.Equal(t, float64(c.to-c.from), o.Ahead, name)
		}
	}
}

// What has been read since the fleet was clipped last is what counts, and single ticks between clipped ones do not end a run.
func TestReadableSinceClipped(t *testing.T) {
	values := slices.Concat(repeat(100, 10), repeat(30, 40), repeat(12, 22))
	o := pipeline.LoadsOf(values...).Clip(100, 130).Project(1)
	require.InDelta(t, 22, o.Level, 1e-9)
	require.Zero(t, o.Slope)
	require.Zero(t, o.Ahead)
	require.Equal(t, 1.25*12, o.Lasts)

	o = pipeline.LoadsOf(values[:131]...).Clip(100, 112).Clip(113, 130).Project(1)
	require.Equal(t, 22.0, o.Level, "all that can be read is the last tick")
	o = pipeline.LoadsOf(values[:130]...).Clip(100, 112).Clip(113, 130).Project(1)
	require.Equal(t, 30.0, o.Ahead)
	o = pipeline.LoadsOf(values[:130]...).Clip(100, 112).Clip(114, 130).Project(1)
	require.Equal(t, 16.0, o.Ahead, "two ticks end it")
}

// A load that comes back up is not taken to pass what it came down from, until it does.
func TestRecentPeakCapsARise(t *testing.T) {
	down := slices.Concat(repeat(60, 100), ramp(40, 98, -2), repeat(30, 20))
	for _, rise := range []int{28, 30, 35} {
		o := pipeline.LoadsOf(append(slices.Clone(down), ramp(rise, 22, 2)...)...).Project(1)
		require.InDelta(t, 100, o.Most, 1e-9)
		require.Greater(t, o.Level+o.Slope*min(40, o.Lasts), 105.0, "risen for %d", rise)
		require.InDelta(t, 100, o.Total(40), 1e-9, "risen for %d", rise)
		require.Less(t, o.Total(0), 100.0)
	}
	passed := pipeline.LoadsOf(append(slices.Clone(down), ramp(70, 22, 2)...)...).Project(1)
	require.InDelta(t, 100, passed.Most, 1e-9)
	require.InDelta(t, 160, passed.Level, 2)
	require.InDelta(t, 240, passed.Total(40), 5)
}

// A fleet that is clipped may have passed the peak unseen, once it shows as much; until then it is bounded by the peak,
// but never by less than it shows.
func TestRecentPeakDoesNotHideLoad(t *testing.T) {
	hump := slices.Concat(repeat(60, 20), repeat(40, 43), repeat(80, 20), ramp(10, 22, 1.5))
	clipped := func(shown float64) pipeline.Projection {
		values := append(slices.Clone(hump), repeat(10, shown)...)
		return pipeline.LoadsOf(values...).Clip(len(hump), len(values)).Project(1)
	}
	passed := clipped(60)
	require.True(t, math.IsInf(passed.Most, 1))
	require.GreaterOrEqual(t, passed.Total(40), 1.15*60-1e-9)
	below := clipped(41)
	require.InDelta(t, 1.15*41, below.Most, 1e-9)
	require.InDelta(t, 1.15*41, below.Total(40), 1e-9)
	far := clipped(36)
	require.InDelta(t, 43, far.Total(40), 1e-9)
	before := pipeline.LoadsOf(slices.Concat(repeat(60, 20), repeat(40, 40), repeat(80, 20))...).Clip(60, 100)
	require.InDelta(t, 1.15*40, before.RecentPeak(1), 1e-9, "a peak that was clipped was higher than it shows")
}

// Noise of readings that are far apart is no trend either.
func TestNoiseOfCoarseReadingsIsNoTrend(t *testing.T) {
	for _, spacing := range []int{1, 5, 15, 30} {
		r, trends := newFleets(uint64(spacing)), 0
		const windows = 300
		for range windows {
			readings := repeat(300/spacing+1, 50)
			for i := range readings {
				readings[i] += 5 * r.NormFloat64()
			}
			values := make([]float64, 300)
			for k := range values {
				a, b := readings[k/spacing], readings[k/spacing+1]
				values[k] = a + (b-a)*float64(k%spacing)/float64(spacing)
			}
			o := pipeline.LoadsOf(values...).Project(spacing)
			if math.Abs(o.Slope*min(40, o.Lasts)) > 5 {
				trends++
			}
		}
		assert.LessOrEqual(t, trends, windows/50, "readings %d ticks apart", spacing)
	}
}

func TestRecentPeak(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"nothing":                   {nil, inf},
		"too little":                {repeat(4, 9), inf},
		"no load":                   {repeat(90, 0), inf},
		"constant":                  {repeat(90, 9), inf},
		"rising":                    {ramp(90, 9, 1), inf},
		"down by a quarter":         {append(repeat(50, 100), repeat(20, 75)...), inf},
		"down by a third":           {append(repeat(50, 100), repeat(20, 67)...), 100},
		"a single tick":             {slices.Concat(repeat(50, 50), []float64{100}, repeat(49, 50)), inf},
		"five ticks":                {slices.Concat(repeat(50, 50), repeat(5, 100), repeat(45, 50)), 100},
		"up again after it":         {slices.Concat(repeat(50, 100), repeat(50, 20), repeat(99, 200)), 100},
		"the higher of two":         {slices.Concat(repeat(30, 100), repeat(30, 20), repeat(30, 80), repeat(99, 10)), 100},
		"the higher of two, second": {slices.Concat(repeat(30, 80), repeat(30, 20), repeat(30, 100), repeat(99, 10)), 100},
		"a small one on the way":    {slices.Concat(repeat(30, 100), repeat(30, 20), repeat(30, 30), repeat(99, 10)), 100},
	} {
		require.InDelta(t, 1/c.want, 1/pipeline.LoadsOf(c.values...).RecentPeak(1), 1e-12, name)
	}
}

// Noise alone seldom looks like a peak that the load has come down from, and the less the more is counted.
func TestNoiseIsNoPeak(t *testing.T) {
	const windows = 1000
	for _, c := range []struct {
		mean float64
		most int
	}{{10, 100}, {50, 50}, {200, 5}} {
		peaks := 0
		for seed := range uint64(windows) {
			r := newFleets(seed)
			values := r.Read(300, 1, func() float64 { return r.Counts(c.mean) })
			if !math.IsInf(pipeline.LoadsOf(values...).RecentPeak(1), 1) {
				peaks++
			}
		}
		t.Logf("counts of %v: %d of %d windows have a peak", c.mean, peaks, windows)
		require.LessOrEqual(t, peaks, c.most)
	}
}

func TestNoLoadIsBelowNothing(t *testing.T) {
	require.Zero(t, pipeline.LoadsOf(ramp(10, 9, -4)...).Project(1).Level)
}

// A load that is c times as large, with noise that is √c times as large, has come down from a peak c times as high.
func TestPeaksScaleWithTheLoad(t *testing.T) {
	const c = 64.0
	for seed := range uint64(300) {
		r := newFleets(seed)
		mean, step, spacing := r.Between(5, 500), r.Between(-1, 3), pick(r, 1, 1, 5, 15)
		k := 0.0
		values := r.Read(3+r.IntN(150), spacing, func() float64 { k += step; return r.Counts(max(1, mean+k)) })
		small, large := pipeline.LoadsOf(values...), pipeline.LoadsOf(times(c, values)...)
		require.Equal(t, c*small.RecentPeak(spacing), large.RecentPeak(spacing), "seed %d", seed)
	}
}
