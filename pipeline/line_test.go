package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// ramp is n values from start on, each a step above the one before.
func ramp(n int, start, step float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = start + float64(i)*step
	}
	return values
}

// times returns the values, each multiplied by c.
func times(c float64, values []float64) []float64 {
	scaled := slices.Clone(values)
	for i := range scaled {
		scaled[i] *= c
	}
	return scaled
}

// counts draws from a Poisson distribution, by the time between events.
func (r fleets) counts(mean float64) float64 {
	n, t := 0, r.ExpFloat64()
	for ; t < mean; t += r.ExpFloat64() {
		n++
	}
	return float64(n)
}

// read is n ticks of a load that is read every spacing ticks, with straight lines in between.
func (r fleets) read(n, spacing int, draw func() float64) []float64 {
	values, last, next := make([]float64, n), 0.0, draw()
	for k := range values {
		if k%spacing == 0 {
			last, next = next, draw()
		}
		part := float64(k%spacing) / float64(spacing)
		values[k] = last*(1-part) + next*part
	}
	return values
}

// naiveThrough is the line of least squares by the normal equations, with the errors of level and slope that follow from the
// same error of every value.
func naiveThrough(values []float64, sigma float64) pipeline.Line {
	n, sx, sy, sxx, sxy := float64(len(values)), 0.0, 0.0, 0.0, 0.0
	for i, y := range values {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	at0 := (sy - slope*sx) / n
	noise := sigma * math.Sqrt(sy/n)
	levelShare, slopeShare := 0.0, 0.0 // the sums of squares of what each value weighs in level and slope
	for i := range values {
		x := float64(i)
		inSlope := (n*x - sx) / (n*sxx - sx*sx)
		inLevel := (1-inSlope*sx)/n + inSlope*(n-1)
		levelShare, slopeShare = levelShare+inLevel*inLevel, slopeShare+inSlope*inSlope
	}
	return pipeline.Line{
		Level: at0 + slope*(n-1), Slope: slope,
		LevelError: noise * math.Sqrt(levelShare), SlopeError: noise * math.Sqrt(slopeShare), Ticks: len(values),
	}
}

func TestLineOfLeastSquares(t *testing.T) {
	for seed := range uint64(500) {
		r := newFleets(seed)
		values := ramp(2+r.IntN(120), r.between(1, 100), r.between(-1, 2))
		for i := range values {
			values[i] = max(0, values[i]+r.between(-5, 5))
		}
		sigma := pick(r, 0, r.between(0, 3))
		got, want := pipeline.LoadsOf(values...).Through(sigma), naiveThrough(values, sigma)
		require.Equal(t, want.Ticks, got.Ticks)
		require.InDeltaSlice(t, []float64{want.Level, want.Slope, want.LevelError, want.SlopeError},
			[]float64{got.Level, got.Slope, got.LevelError, got.SlopeError}, 1e-9, "seed %d", seed)
	}
	assert.Zero(t, pipeline.LoadsOf(ramp(10, 9, -4)...).Project(1).Level, "no load is below nothing")
}

// What is one line is fitted as one, up to 90 ticks of it; noise is never taken to be less than a hundredth.
func TestFitGrowsOnALine(t *testing.T) {
	for _, slope := range []float64{0, 0.001, 0.1, 1, 30, -0.05} {
		for _, n := range []int{3, 4, 10, 89, 90, 91, 300} {
			values := ramp(n, 20, slope)
			l := pipeline.LoadsOf(values...).Fit(1)
			require.Equal(t, min(n, 90), l.Ticks, "slope %v over %d", slope, n)
			require.InDelta(t, values[n-1], l.Level, 1e-9)
			require.InDelta(t, slope, l.Slope, 1e-9)
			require.Positive(t, l.SlopeError)
		}
	}
}

// The line goes back to a kink and hardly farther: lines are tried in steps of a third.
func TestFitStopsAtAKink(t *testing.T) {
	for _, since := range []int{10, 20, 30, 45, 60} {
		for name, slope := range map[string]float64{"up": 2, "down": -18 / float64(since)} {
			t.Run(fmt.Sprint(name, since), func(t *testing.T) {
				values := append(repeat(120-since, 40), ramp(since, 40+slope, slope)...)
				l := pipeline.LoadsOf(values...).Fit(1)
				assert.InDelta(t, since, l.Ticks, float64(since)/5+1)
				assert.InDelta(t, slope, l.Slope, math.Abs(slope)/50)
				assert.InDelta(t, values[119], l.Level, 0.4) // a hundredth of where it was
			})
		}
	}
}

func TestFitStopsAtAJump(t *testing.T) {
	for _, since := range []int{3, 4, 5, 8, 10, 15, 20} {
		for name, to := range map[string]float64{"up": 15, "far up": 100, "down": 5, "to nothing": 0} {
			t.Run(fmt.Sprint(name, since), func(t *testing.T) {
				l := pipeline.LoadsOf(append(repeat(120-since, 10), repeat(since, to)...)...).Fit(1)
				assert.LessOrEqual(t, l.Ticks, since)
				assert.GreaterOrEqual(t, l.Ticks, since*2/3)
				assert.InDelta(t, to, l.Level, 1e-9)
				assert.InDelta(t, 0, l.Slope, 1e-9)
			})
		}
	}
}

func TestFitOfTooFew(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   pipeline.Line
	}{
		{nil, pipeline.Line{}},
		{[]float64{7}, pipeline.Line{Level: 7, Ticks: 1}},
		{[]float64{7, 9}, pipeline.Line{Level: 9, Slope: 2, Ticks: 2}},
		{[]float64{9, 7}, pipeline.Line{Level: 7, Slope: -2, Ticks: 2}},
		{[]float64{0, 0, 0}, pipeline.Line{Ticks: 3}},
		{repeat(90, 0), pipeline.Line{Ticks: 90}},
	} {
		require.Equal(t, c.want, pipeline.LoadsOf(c.values...).Fit(1), "%v", c.values)
	}
}

func TestTrust(t *testing.T) {
	for _, c := range []struct{ slope, slopeError, want float64 }{
		{1, 0, 1},
		{0, 0, 1}, // of nothing
		{0, 1, 0},
		{1, 1, 0},
		{4, 1, 0}, // noise explains all of four standard errors
		{-4, 1, 0},
		{5, 1, 1 - 16.0/25},
		{-5, 1, 1 - 16.0/25},
		{8, 1, 0.75},
		{1e6, 1, 1 - 16e-12},
	} {
		require.InDelta(t, c.want, pipeline.Line{Slope: c.slope, SlopeError: c.slopeError}.Trust(), 1e-15, "%+v", c)
	}
	previous := 0.0
	for slope := 0.0; slope < 100; slope += 0.1 {
		trust := pipeline.Line{Slope: slope, SlopeError: 1}.Trust()
		require.True(t, previous <= trust && trust < 1, "slope %v: %v", slope, trust)
		previous = trust
	}
	require.Greater(t, previous, 0.998)
}

// The estimate of noise is the largest of some, so that it is some more than there is where every tick is read. Between
// readings that are farther apart there is less, as straight lines have none.
func TestNoiseIsEstimated(t *testing.T) {
	const windows = 1000
	for _, c := range []struct {
		spacing            int
		few, middle0, most float64 // between which 5%, 50% and 95% are, as shares of what was drawn
		middle1            float64
	}{
		{spacing: 1, few: 0.9, middle0: 1.15, middle1: 1.3, most: 1.9},
		{spacing: 5, few: 0.45, middle0: 0.8, middle1: 0.95, most: 1.55},
		{spacing: 15, few: 0.2, middle0: 0.55, middle1: 0.75, most: 1.4},
	} {
		for name, draw := range map[string]func(r fleets) float64{
			"counts of 20":  func(r fleets) float64 { return r.counts(20) },
			"counts of 200": func(r fleets) float64 { return r.counts(200) },
			"normal":        func(r fleets) float64 { return 100 + 10*r.NormFloat64() },
		} {
			t.Run(fmt.Sprintf("%s/every %d", name, c.spacing), func(t *testing.T) {
				var estimates []float64
				for seed := range uint64(windows) {
					r := newFleets(seed)
					values := r.read(90, c.spacing, func() float64 { return draw(r) })
					estimates = append(estimates, pipeline.LoadsOf(values...).Noise(c.spacing))
				}
				slices.Sort(estimates)
				assert.Greater(t, estimates[windows/20], c.few)
				assert.Greater(t, estimates[windows/2], c.middle0)
				assert.Less(t, estimates[windows/2], c.middle1)
				assert.Less(t, estimates[windows*19/20], c.most)
			})
		}
	}
}

func TestNthOfValues(t *testing.T) {
	for seed := range uint64(300) {
		r := newFleets(seed)
		size := 1 + r.IntN(100)
		shape := pick(r,
			func(int) float64 { return r.Float64() },
			func(int) float64 { return float64(r.IntN(3)) },
			func(k int) float64 { return float64(min(k, size-k)) },
			func(k int) float64 { return float64(max(k, size-k)) },
			func(k int) float64 { return math.Abs(math.Sin(float64(k) / 10)) })
		values := make([]float64, size)
		for k := range values {
			values[k] = shape(k)
		}
		for n, want := range slices.Sorted(slices.Values(values)) {
			require.Equal(t, want, pipeline.Nth(slices.Clone(values), n), "%d of %v", n, values)
		}
	}
}

func TestNoiseOfQuietLoads(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"nothing", repeat(90, 0), 0},
		{"less than nothing", repeat(90, -3), 0},
		{"one tick", []float64{4}, 0.02},
		{"two ticks", []float64{1, 4}, 0.02},
		{"constant", repeat(90, 4), 0.02}, // a hundredth of 4 is 0.02·√4
		{"a line", ramp(90, 0.5, 0.5), 0.01 * math.Sqrt(45)},
		{"one jump, not long ago", append(repeat(75, 1), repeat(15, 4)...), 0.02},
		{"one tick off", append(append(repeat(40, 4), 3), repeat(49, 4)...), 0.02},
	} {
		require.InDelta(t, c.want, pipeline.LoadsOf(c.values...).Noise(1), 1e-12, c.name)
	}
}

// Noise that has become more within twenty ticks counts as what it is now.
func TestNoiseOfLate(t *testing.T) {
	for seed := range uint64(100) {
		r := newFleets(seed)
		values := repeat(90, 100)
		for k := 70; k < 90; k++ {
			values[k] += 20 * r.NormFloat64()
		}
		require.Greater(t, pipeline.LoadsOf(values...).Noise(1), 0.3, "seed %d", seed)
		require.InDelta(t, 0.1, pipeline.LoadsOf(values[:70]...).Noise(1), 1e-12)
	}
}

func TestDeviation(t *testing.T) {
	require.Zero(t, pipeline.LoadsOf(1, 9, 1, 9).Deviation(), "too few")
	require.InDelta(t, 0, pipeline.LoadsOf(ramp(60, 5, 0.3)...).Deviation(), 1e-9, "a trend is no noise")
	values := append(repeat(100, 1e6), ramp(60, 5, 0.3)...)
	require.InDelta(t, 0, pipeline.LoadsOf(values...).Deviation(), 1e-9, "no more than a minute of ticks counts")
	for seed := range uint64(100) {
		r := newFleets(seed)
		values := ramp(60, 500, 2)
		for k := range values {
			values[k] += 30 * r.NormFloat64()
		}
		require.InDelta(t, 30, pipeline.LoadsOf(values...).Deviation(), 13, "seed %d", seed) // 4.7 standard errors of 30/√(2·58)
	}
}

// Loads that are c times as large, with noise that is √c times as large, make a line c times as high and as steep that is
// trusted as much. For a c of which the root is a power of two that is so to the bit.
func TestLinesScaleWithTheLoad(t *testing.T) {
	const c = 64.0
	for seed := range uint64(300) {
		r := newFleets(seed)
		mean, step, spacing := r.between(5, 500), r.between(-1, 3), pick(r, 1, 1, 5, 15)
		k := 0.0
		values := r.read(3+r.IntN(150), spacing, func() float64 { k += step; return r.counts(max(1, mean+k)) })
		small, large := pipeline.LoadsOf(values...), pipeline.LoadsOf(times(c, values)...)

		require.Equal(t, 8*small.Noise(spacing), large.Noise(spacing), "seed %d", seed)
		require.Equal(t, c*small.Deviation(), large.Deviation(), "seed %d", seed)
		want := small.Fit(spacing)
		trust := want.Trust()
		want.Level, want.Slope, want.LevelError, want.SlopeError = c*want.Level, c*want.Slope, c*want.LevelError, c*want.SlopeError
		got := large.Fit(spacing)
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, trust, got.Trust())
		require.Equal(t, c*small.RecentPeak(spacing), large.RecentPeak(spacing), "seed %d", seed)
	}
}

// A load without a trend is hardly ever taken to have one where every tick is read. With fewer readings in the window it
// happens, as noise and trend look alike.
func TestNoiseIsNoTrend(t *testing.T) {
	const windows = 1000
	for _, c := range []struct{ spacing, most int }{{1, 2}, {5, 200}, {15, 500}} {
		trusted := 0
		for seed := range uint64(windows) {
			r := newFleets(seed)
			values := r.read(90, c.spacing, func() float64 { return r.counts(50) })
			if pipeline.LoadsOf(values...).Fit(c.spacing).Trust() > 0 {
				trusted++
			}
		}
		t.Logf("read every %d ticks: %d of %d have a trend", c.spacing, trusted, windows)
		require.LessOrEqual(t, trusted, c.most, "read every %d ticks", c.spacing)
	}
}
