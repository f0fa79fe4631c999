package line_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// fit returns the line through as many of the newest values as agree on one, of readings that are spacing ticks apart.
func fit(spacing int, values ...float64) line.Line {
	return line.Fit(seriestest.Loads(values...), line.NewSampling(spacing, 0), make([]float64, len(values)))
}

func noise(spacing int, values ...float64) float64 {
	return line.Noise(seriestest.Loads(values...), spacing, make([]float64, len(values)))
}

// naiveThrough is the line of least squares by the normal equations, with the errors of level and
// slope that follow from the same error of every value.
func naiveThrough(values []float64, sigma float64) line.Line {
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
	return line.Line{
		Level: at0 + slope*(n-1), Slope: slope,
		LevelError: noise * math.Sqrt(levelShare), SlopeError: noise * math.Sqrt(slopeShare), Ticks: len(values),
	}
}

func TestLineOfLeastSquares(t *testing.T) {
	for seed := range uint64(500) {
		r := seriestest.NewRandom(seed)
		values := seriestest.Ramp(2+r.IntN(120), r.Between(1, 100), r.Between(-1, 2))
		for i := range values {
			values[i] = max(0, values[i]+r.Between(-5, 5))
		}
		sigma := seriestest.Pick(r, 0, r.Between(0, 3))
		got, want := line.Through(seriestest.Loads(values...), sigma), naiveThrough(values, sigma)
		require.Equal(t, want.Ticks, got.Ticks)
		require.InDeltaSlice(t, []float64{want.Level, want.Slope, want.LevelError, want.SlopeError},
			[]float64{got.Level, got.Slope, got.LevelError, got.SlopeError}, 1e-9, "seed %d", seed)
	}
}

// What is one line is fitted as one, up to 90 ticks of it; noise is never taken to be less than a hundredth.
func TestFitGrowsOnALine(t *testing.T) {
	for _, slope := range []float64{0, 0.001, 0.1, 1, 30, -0.05} {
		for _, n := range []int{3, 4, 10, 89, 90, 91, 300} {
			values := seriestest.Ramp(n, 20, slope)
			l := fit(1, values...)
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
				values := append(seriestest.Repeat(120-since, 40), seriestest.Ramp(since, 40+slope, slope)...)
				l := fit(1, values...)
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
				l := fit(1, append(seriestest.Repeat(120-since, 10), seriestest.Repeat(since, to)...)...)
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
		want   line.Line
	}{
		{nil, line.Line{}},
		{[]float64{7}, line.Line{Level: 7, Ticks: 1}},
		{[]float64{7, 9}, line.Line{Level: 9, Slope: 2, Ticks: 2}},
		{[]float64{9, 7}, line.Line{Level: 7, Slope: -2, Ticks: 2}},
		{[]float64{0, 0, 0}, line.Line{Ticks: 3}},
		{seriestest.Repeat(90, 0), line.Line{Ticks: 90}},
	} {
		require.Equal(t, c.want, fit(1, c.values...), "%v", c.values)
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
		require.InDelta(t, c.want, line.Line{Slope: c.slope, SlopeError: c.slopeError}.Trust(), 1e-15, "%+v", c)
	}
	previous := 0.0
	for slope := 0.0; slope < 100; slope += 0.1 {
		trust := line.Line{Slope: slope, SlopeError: 1}.Trust()
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
		few, middle0, most float64 // between which 5%, 50% and 95% are, as shares of the drawn value
		middle1            float64
	}{
		{spacing: 1, few: 0.9, middle0: 1.15, middle1: 1.3, most: 1.9},
		{spacing: 5, few: 0.45, middle0: 0.8, middle1: 0.95, most: 1.55},
		{spacing: 15, few: 0.2, middle0: 0.55, middle1: 0.75, most: 1.4},
	} {
		for name, draw := range map[string]func(r seriestest.Random) float64{
			"counts of 20":  func(r seriestest.Random) float64 { return r.Counts(20) },
			"counts of 200": func(r seriestest.Random) float64 { return r.Counts(200) },
			"normal":        func(r seriestest.Random) float64 { return 100 + 10*r.NormFloat64() },
		} {
			t.Run(fmt.Sprintf("%s/every %d", name, c.spacing), func(t *testing.T) {
				var estimates []float64
				for seed := range uint64(windows) {
					r := seriestest.NewRandom(seed)
					values := r.Read(90, c.spacing, func() float64 { return draw(r) })
					estimates = append(estimates, noise(c.spacing, values...))
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
		r := seriestest.NewRandom(seed)
		size := 1 + r.IntN(100)
		shape := seriestest.Pick(r,
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
			require.Equal(t, want, line.Nth(slices.Clone(values), n), "%d of %v", n, values)
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
		{"nothing", seriestest.Repeat(90, 0), 0},
		{"less than nothing", seriestest.Repeat(90, -3), 0},
		{"one tick", []float64{4}, 0.02},
		{"two ticks", []float64{1, 4}, 0.02},
		{"constant", seriestest.Repeat(90, 4), 0.02}, // a hundredth of 4 is 0.02·√4
		{"a line", seriestest.Ramp(90, 0.5, 0.5), 0.01 * math.Sqrt(45)},
		{"one jump, not long ago", append(seriestest.Repeat(75, 1), seriestest.Repeat(15, 4)...), 0.02},
		{"one tick off", append(append(seriestest.Repeat(40, 4), 3), seriestest.Repeat(49, 4)...), 0.02},
	} {
		require.InDelta(t, c.want, noise(1, c.values...), 1e-12, c.name)
	}
}

// Noise that has become more within twenty ticks counts as what it is now.
func TestNoiseOfLate(t *testing.T) {
	for seed := range uint64(100) {
		r := seriestest.NewRandom(seed)
		values := seriestest.Repeat(90, 100)
		for k := 70; k < 90; k++ {
			values[k] += 20 * r.NormFloat64()
		}
		require.Greater(t, noise(1, values...), 0.3, "seed %d", seed)
		require.InDelta(t, 0.1, noise(1, values[:70]...), 1e-12)
	}
}

func TestDeviation(t *testing.T) {
	require.Zero(t, line.Deviation(seriestest.Loads(1, 9, 1, 9)), "too few")
	require.InDelta(t, 0, line.Deviation(seriestest.Loads(seriestest.Ramp(60, 5, 0.3)...)), 1e-9, "a trend is no noise")
	values := append(seriestest.Repeat(100, 1e6), seriestest.Ramp(60, 5, 0.3)...)
	require.InDelta(t, 0, line.Deviation(seriestest.Loads(values...)), 1e-9, "no more than a minute of ticks counts")
	for seed := range uint64(100) {
		r := seriestest.NewRandom(seed)
		values := seriestest.Ramp(60, 500, 2)
		for k := range values {
			values[k] += 30 * r.NormFloat64()
		}
		// 4.7 standard errors of 30/√(2·58)
		require.InDelta(t, 30, line.Deviation(seriestest.Loads(values...)), 13, "seed %d", seed)
	}
}

// Loads that are c times as large, with noise that is √c times as large, make a line c times as
// high and as steep that is trusted as much. For a c of which the root is a power of two that is so
// to the bit.
func TestLinesScaleWithTheLoad(t *testing.T) {
	const c = 64.0
	for seed := range uint64(300) {
		r := seriestest.NewRandom(seed)
		mean, step, spacing := r.Between(5, 500), r.Between(-1, 3), seriestest.Pick(r, 1, 1, 5, 15)
		k := 0.0
		values := r.Read(3+r.IntN(150), spacing, func() float64 { k += step; return r.Counts(max(1, mean+k)) })
		large := seriestest.Times(c, values)

		require.Equal(t, 8*noise(spacing, values...), noise(spacing, large...), "seed %d", seed)
		require.Equal(t, c*line.Deviation(seriestest.Loads(values...)),
			line.Deviation(seriestest.Loads(large...)), "seed %d", seed)
		want := fit(spacing, values...)
		trust := want.Trust()
		want.Level, want.Slope, want.LevelError, want.SlopeError = c*want.Level, c*want.Slope,
			c*want.LevelError, c*want.SlopeError
		got := fit(spacing, large...)
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, trust, got.Trust())
	}
}

// A load without a trend is hardly ever taken to have one where every tick is read. With fewer
// readings in the window it happens, as noise and trend look alike.
func TestNoiseIsNoTrend(t *testing.T) {
	const windows = 1000
	for _, c := range []struct{ spacing, most int }{{1, 2}, {5, 200}, {15, 500}} {
		trusted := 0
		for seed := range uint64(windows) {
			r := seriestest.NewRandom(seed)
			values := r.Read(90, c.spacing, func() float64 { return r.Counts(50) })
			if fit(c.spacing, values...).Trust() > 0 {
				trusted++
			}
		}
		t.Logf("read every %d ticks: %d of %d have a trend", c.spacing, trusted, windows)
		require.LessOrEqual(t, trusted, c.most, "read every %d ticks", c.spacing)
	}
}

// The level of a load is its mean for as long as it has been level, however long ago it was another one.
func TestLevelGoesBackToTheLastChange(t *testing.T) {
	unknown := math.NaN()
	flat := func(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }
	for name, c := range map[string]struct {
		means []float64
		reach int // of them; not each number is tried
	}{
		"one":                 {[]float64{7}, 1},
		"level":               {flat(240, 7), 240},
		"jumped":              {append(flat(200, 4), flat(3, 16)...), 3},
		"jumped a while ago":  {append(flat(100, 4), flat(40, 16)...), 36},
		"fell to nothing":     {append(flat(30, 4), flat(8, 0)...), 8},
		"newest is not known": {append(flat(20, 7), unknown, unknown), 22},
		"some are not known":  {append(append(flat(20, 7), unknown), flat(20, 7)...), 41},
		"zero":                {flat(30, 0), 30},
		"some after zero":     {append(flat(30, 0), 4), 1},
		"noise":               {append(flat(30, 100), 101), 31},
		"no noise":            {append(flat(30, 100), 110), 2},
	} {
		t.Run(name, func(t *testing.T) {
			sum, known := 0.0, 0
			for i := range c.means {
				c.means[i] += float64(i) * 1e-6 // so that the mean shows how many it is of
				if v := c.means[i]; i >= len(c.means)-c.reach && !math.IsNaN(v) {
					sum += v
					known++
				}
			}
			assert.InDelta(t, sum/float64(known), line.LevelOf(c.means, 0.3), 1e-10)
		})
	}
	for _, nothing := range [][]float64{nil, {unknown, unknown}} {
		assert.True(t, math.IsNaN(line.LevelOf(nothing, 0.3)))
	}
	ramp := make([]float64, 240)
	for i := range ramp {
		ramp[i] = 10 + float64(i)
	}
	assert.InDelta(t, 249, line.LevelOf(ramp, 0.3), 15, "a rise is not level for long")
}
