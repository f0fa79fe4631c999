package predict_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// loads are the aggregates of ticks, oldest first, as the adaptive method reads them.
type loads []series.Load

func loadsOf(values ...float64) loads { return seriestest.Loads(values...) }

// Clip marks the loads from one tick up to, and without, another as clipped.
func (l loads) Clip(from, to int) loads {
	for k := from; k < to; k++ {
		l[k].Clipped = true
	}
	return l
}

// Project returns the projection of readings that are spacing ticks apart.
func (l loads) Project(spacing int) *predict.Projection {
	o := predict.LineFit{}.Project(l, spacing, 0, make([]float64, len(l)))
	return &o
}

// RecentPeak returns the highest load that the loads have come down from.
func (l loads) RecentPeak(spacing int) float64 {
	newest := line.NewSampling(spacing, 0).Newest(l)
	return predict.RecentPeak(l, line.Noise(newest, spacing, make([]float64, len(l))))
}

// A trend goes on for a quarter longer than the line it was read from, and no longer.
func TestTrendsEnd(t *testing.T) {
	for _, n := range []int{10, 20, 36, 64} {
		values := append(seriestest.Repeat(150-n, 100), seriestest.Ramp(n, 104, 4)...)
		l := line.Fit(seriestest.Loads(values...), line.NewSampling(1, 0), make([]float64, len(values)))
		o := loadsOf(values...).Project(1)
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
	falling := loadsOf(seriestest.Ramp(90, 1000, -10)...).Project(1)
	require.InDelta(t, 110-400, falling.Level+40*falling.Slope, 1)
	require.Zero(t, falling.Total(40), "load does not fall below nothing")
}

// From the third tick after a jump on, the level is the load after the jump, without a trend. Until then it could be
// the start of a steep rise, so it is extended for a moment, by at most about twice the jump.
func TestAdaptiveFollowsAJump(t *testing.T) {
	for since := 1; since <= 20; since++ {
		o := loadsOf(append(seriestest.Repeat(200, 10), seriestest.Repeat(since, 20)...)...).Project(1)
		assert.GreaterOrEqual(t, o.Total(40), 20-1e-9, "%d ticks after", since)
		assert.LessOrEqual(t, o.Total(40), 42.0, "%d ticks after", since)
		if since >= 3 {
			assert.InDelta(t, 20, o.Level, 0.1, "%d ticks after", since)
			assert.InDelta(t, 20, o.Total(40), 0.1, "%d ticks after", since)
		}
	}
}

// While a fleet is clipped its load is taken to go on rising as it did, and to be at least 15% more than what shows.
func TestClippedRiseGoesOn(t *testing.T) {
	for _, since := range []int{5, 10, 20, 30, 60} {
		values := append(seriestest.Repeat(100, 10), seriestest.Ramp(60, 10.5, 0.5)...) // up to 40
		values = append(values, seriestest.Repeat(since, 40)...)
		n := len(values)
		o := loadsOf(values...).Clip(160, n).Project(1)
		require.Equal(t, float64(since), o.Hidden)
		require.InDelta(t, 0.5, o.Slope, 0.02)
		require.InDelta(t, 40, o.Level, 0.2)
		require.InDelta(t, 46, o.Min, 1e-9)
		require.Zero(t, o.Noise)
		for _, ticks := range []float64{0, 10, 40} {
			want := max(46, 40+0.5*min(float64(since)+ticks, 75))
			require.InDelta(t, want, o.Total(ticks), 4, "clipped for %d, %v ahead", since, ticks)
		}
	}
	flat := append(seriestest.Repeat(100, 20), seriestest.Repeat(20, 24)...)
	require.InDelta(t, 1.15*24, loadsOf(flat...).Clip(100, 120).Project(1).Total(40), 1e-9, "without a rise before")
	falling := append(seriestest.Ramp(100, 60, -0.5), seriestest.Repeat(20, 24)...)
	o := loadsOf(falling...).Clip(100, 120).Project(1)
	require.Zero(t, o.Slope, "what fell before it was clipped does not go on falling")
	require.InDelta(t, 1.15*24, o.Total(40), 1e-9)
	more := append(seriestest.Repeat(100, 20), append(seriestest.Repeat(20, 24), seriestest.Repeat(20, 36)...)...)
	require.InDelta(t, 1.15*36, loadsOf(more...).Clip(100, 140).Project(1).Total(0), 1e-9,
		"a fleet that has grown shows more")
}

// A whole window that is clipped shows a bound, and no trend.
func TestClippedThroughout(t *testing.T) {
	require.Equal(t, 8.0, loadsOf(seriestest.Repeat(4, 8)...).Clip(0, 4).Project(1).Total(40), "a few ticks may be noise")
	for _, n := range []int{5, 20, 300} {
		o := loadsOf(seriestest.Repeat(n, 8)...).Clip(0, n).Project(1)
		require.Equal(t, 8.0, o.Level)
		require.Zero(t, o.Slope)
		for _, ticks := range []float64{0, 40, 1000} {
			require.InDelta(t, 9.2, o.Total(ticks), 1e-9)
		}
	}
}

// Ticks that are clipped only as noise has it are as any others.
func TestNoiseExplainsShortClippedRuns(t *testing.T) {
	noisy := func(seed uint64, n int) []float64 {
		r, values := seriestest.NewRandom(seed), seriestest.Repeat(n, 50)
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
		want := loadsOf(values...).Project(1)
		got := loadsOf(values...).Clip(100, 103).Clip(150, 153).Clip(197, 200).Project(1)
		require.Equal(t, want, got, "seed %d", seed)
	}
	for name, c := range map[string]struct {
		values   []float64
		from, to int
		ignored  bool
	}{
		"a few ticks after too few to tell": {append(seriestest.Repeat(9, 5), seriestest.Repeat(4, 9)...), 9, 13, true},
		"more ticks after too few to tell":  {append(seriestest.Repeat(9, 5), seriestest.Repeat(5, 9)...), 9, 14, false},
		"a few ticks far above a quiet load": {append(seriestest.Repeat(100, 5), seriestest.Repeat(3, 9)...), 100, 103,
			false},
		"far above a noisy load":           {append(noisy(1, 100), seriestest.Repeat(3, 90)...), 100, 103, false},
		"above a noisy load, for long":     {append(noisy(1, 100), seriestest.Repeat(40, 56)...), 100, 140, false},
		"no more than the load before":     {append(noisy(1, 100), seriestest.Repeat(3, 40)...), 100, 103, false},
		"two thirds of the ticks of a run": {append(seriestest.Repeat(9, 5), 9, 9, 1, 9, 9), 9, 14, false},
	} {
		o := loadsOf(c.values...).Clip(c.from, c.to).Project(1)
		if c.ignored {
			assert.Zero(t, o.Min, name)
			assert.Zero(t, o.Hidden, name)
		} else {
			assert.InDelta(t, 1.15*c.values[len(c.values)-1], o.Min, 1e-9, name)
			assert.Equal(t, float64(c.to-c.from), o.Hidden, name)
		}
	}
}

// Only readings since the fleet was clipped last count, and single ticks between clipped ones do not end a run.
func TestReadableSinceClipped(t *testing.T) {
	values := slices.Concat(seriestest.Repeat(100, 10), seriestest.Repeat(30, 40), seriestest.Repeat(12, 22))
	o := loadsOf(values...).Clip(100, 130).Project(1)
	require.InDelta(t, 22, o.Level, 1e-9)
	require.Zero(t, o.Slope)
	require.Zero(t, o.Hidden)
	require.Equal(t, 1.25*12, o.Lasts)

	o = loadsOf(values[:131]...).Clip(100, 112).Clip(113, 130).Project(1)
	require.Equal(t, 22.0, o.Level, "all that can be read is the last tick")
	o = loadsOf(values[:130]...).Clip(100, 112).Clip(113, 130).Project(1)
	require.Equal(t, 30.0, o.Hidden)
	o = loadsOf(values[:130]...).Clip(100, 112).Clip(114, 130).Project(1)
	require.Equal(t, 16.0, o.Hidden, "two ticks end it")
}

// A load that comes back up is not taken to pass what it came down from, until it does.
func TestRecentPeakCapsARise(t *testing.T) {
	down := slices.Concat(seriestest.Repeat(60, 100), seriestest.Ramp(40, 98, -2), seriestest.Repeat(30, 20))
	for _, rise := range []int{28, 30, 35} {
		o := loadsOf(append(slices.Clone(down), seriestest.Ramp(rise, 22, 2)...)...).Project(1)
		require.InDelta(t, 100, o.Max, 1e-9)
		require.Greater(t, o.Level+o.Slope*min(40, o.Lasts), 105.0, "risen for %d", rise)
		require.InDelta(t, 100, o.Total(40), 1e-9, "risen for %d", rise)
		require.Less(t, o.Total(0), 100.0)
	}
	passed := loadsOf(append(slices.Clone(down), seriestest.Ramp(70, 22, 2)...)...).Project(1)
	require.InDelta(t, 100, passed.Max, 1e-9)
	require.InDelta(t, 160, passed.Level, 2)
	require.InDelta(t, 240, passed.Total(40), 5)
}

// A fleet that is clipped may have passed the peak unseen, once it shows as much; until then it is bounded by the peak,
// but never by less than it shows.
func TestRecentPeakDoesNotHideLoad(t *testing.T) {
	hump := slices.Concat(seriestest.Repeat(60, 20), seriestest.Repeat(40, 43), seriestest.Repeat(80, 20),
		seriestest.Ramp(10, 22, 1.5))
	clipped := func(shown float64) *predict.Projection {
		values := append(slices.Clone(hump), seriestest.Repeat(10, shown)...)
		return loadsOf(values...).Clip(len(hump), len(values)).Project(1)
	}
	passed := clipped(60)
	require.True(t, math.IsInf(passed.Max, 1))
	require.GreaterOrEqual(t, passed.Total(40), 1.15*60-1e-9)
	below := clipped(41)
	require.InDelta(t, 1.15*41, below.Max, 1e-9)
	require.InDelta(t, 1.15*41, below.Total(40), 1e-9)
	far := clipped(36)
	require.InDelta(t, 43, far.Total(40), 1e-9)
	before := loadsOf(slices.Concat(seriestest.Repeat(60, 20), seriestest.Repeat(40, 40),
		seriestest.Repeat(80, 20))...).Clip(60, 100)
	require.InDelta(t, 1.15*40, before.RecentPeak(1), 1e-9, "a peak that was clipped was higher than it shows")
}

// Noise of readings that are far apart is no trend either.
func TestNoiseOfCoarseReadingsIsNoTrend(t *testing.T) {
	for _, spacing := range []int{1, 5, 15, 30} {
		r, trends := seriestest.NewRandom(uint64(spacing)), 0
		const windows = 300
		for range windows {
			readings := seriestest.Repeat(300/spacing+1, 50)
			for i := range readings {
				readings[i] += 5 * r.NormFloat64()
			}
			values := make([]float64, 300)
			for k := range values {
				a, b := readings[k/spacing], readings[k/spacing+1]
				values[k] = a + (b-a)*float64(k%spacing)/float64(spacing)
			}
			o := loadsOf(values...).Project(spacing)
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
		"nothing":           {nil, inf},
		"too little":        {seriestest.Repeat(4, 9), inf},
		"no load":           {seriestest.Repeat(90, 0), inf},
		"constant":          {seriestest.Repeat(90, 9), inf},
		"rising":            {seriestest.Ramp(90, 9, 1), inf},
		"down by a quarter": {append(seriestest.Repeat(50, 100), seriestest.Repeat(20, 75)...), inf},
		"down by a third":   {append(seriestest.Repeat(50, 100), seriestest.Repeat(20, 67)...), 100},
		"a single tick": {slices.Concat(seriestest.Repeat(50, 50), []float64{100}, seriestest.Repeat(49, 50)),
			inf},
		"five ticks": {slices.Concat(seriestest.Repeat(50, 50), seriestest.Repeat(5, 100),
			seriestest.Repeat(45, 50)), 100},
		"up again after it": {slices.Concat(seriestest.Repeat(50, 100), seriestest.Repeat(50, 20),
			seriestest.Repeat(99, 200)), 100},
		"the higher of two": {slices.Concat(seriestest.Repeat(30, 100), seriestest.Repeat(30, 20),
			seriestest.Repeat(30, 80), seriestest.Repeat(99, 10)), 100},
		"the higher of two, second": {slices.Concat(seriestest.Repeat(30, 80), seriestest.Repeat(30, 20),
			seriestest.Repeat(30, 100), seriestest.Repeat(99, 10)), 100},
		"a small one on the way": {slices.Concat(seriestest.Repeat(30, 100), seriestest.Repeat(30, 20),
			seriestest.Repeat(30, 30), seriestest.Repeat(99, 10)), 100},
	} {
		require.InDelta(t, 1/c.want, 1/loadsOf(c.values...).RecentPeak(1), 1e-12, name)
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
			r := seriestest.NewRandom(seed)
			values := r.Read(300, 1, func() float64 { return r.Counts(c.mean) })
			if !math.IsInf(loadsOf(values...).RecentPeak(1), 1) {
				peaks++
			}
		}
		t.Logf("counts of %v: %d of %d windows have a peak", c.mean, peaks, windows)
		require.LessOrEqual(t, peaks, c.most)
	}
}

func TestNoLoadIsBelowNothing(t *testing.T) {
	require.Zero(t, loadsOf(seriestest.Ramp(10, 9, -4)...).Project(1).Level)
}

// A load that is c times as large, with noise that is √c times as large, has come down from a peak c times as high.
func TestPeaksScaleWithTheLoad(t *testing.T) {
	const c = 64.0
	for seed := range uint64(300) {
		r := seriestest.NewRandom(seed)
		mean, step, spacing := r.Between(5, 500), r.Between(-1, 3), seriestest.Pick(r, 1, 1, 5, 15)
		k := 0.0
		values := r.Read(3+r.IntN(150), spacing, func() float64 { k += step; return r.Counts(max(1, mean+k)) })
		small, large := loadsOf(values...), loadsOf(seriestest.Times(c, values)...)
		require.Equal(t, c*small.RecentPeak(spacing), large.RecentPeak(spacing), "seed %d", seed)
	}
}
