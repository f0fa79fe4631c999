package nodeusage

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// smoothing is how quickly level and trend follow.
type smoothing struct{ levelUp, levelDown, trendUp, trendDown float64 }

// score is the quality of the forecasts of one load. Errors are relative to those of predicting the present use.
type score struct {
	off     float64 // the mean error of the prediction
	bias    float64 // by how much it is too high on average, as a share of the load
	quant   float64 // the mean loss of the upper estimate as a 0.95 quantile
	covered float64 // the share of what came that is below it
}

func scoreOf(t testing.TB, s smoothing, of load, seeds uint64, window, enough, most int) score {
	t.Helper()
	p := predictorWith(t, s)
	var n, off, persists, bias, total, loss, covered float64
	for seed := range seeds {
		for _, m := range moments(of(rand.New(rand.NewPCG(seed, 7)), 3600), window, enough, most) {
			u, ok := p.predict(m.samples, time.Duration(window)*time.Second, m.now)
			require.True(t, ok)
			n++
			off += math.Abs(u.Predicted - m.actual)
			bias += u.Predicted - m.actual
			total += m.actual
			persists += math.Abs(m.newest - m.actual)
			loss += max(0.95*(m.actual-u.Upper), 0.05*(u.Upper-m.actual))
			if m.actual <= u.Upper {
				covered++
			}
		}
	}
	return score{off / persists, bias / total, loss / persists, covered / n}
}

// learned returns what share of the growth to the horizon is predicted, some steps after a load
// without noise began to grow.
func learned(t testing.TB, s smoothing, steps int) float64 {
	t.Helper()
	var samples []pipeline.Sample
	for i := range 60 {
		samples = append(samples, pipeline.Sample{T: epoch + int64(i)*15_000, V: 1 + 0.1*max(0, float64(i-59+steps))})
	}
	u, ok := predictorWith(t, s).predict(samples, 0, samples[59].T)
	require.True(t, ok)
	return (u.Predicted - u.Now) / 0.8
}

func predictorWith(t testing.TB, s smoothing) *predictor {
	t.Helper()
	o := Options{}.withDefaults()
	params := o.params()
	params.LevelUp, params.LevelDown, params.TrendUp, params.TrendDown = s.levelUp, s.levelDown, s.trendUp, s.trendDown
	p, err := newPredictor(params)
	require.NoError(t, err)
	return p
}

var (
	chosen     = smoothing{levelUp, levelDown, trendUp, trendDown}
	ofPipeline = smoothing{0.2, 0.1, 0.2, 0.1}
)

// meanOf is the mean score over all kinds of load, with all of the window known. kinds lists them.
func meanOf(t testing.TB, s smoothing, seeds uint64, window int) (mean score, kinds string) {
	t.Helper()
	share := 1 / float64(len(loads))
	for _, kind := range slices.Sorted(maps.Keys(loads)) {
		x := scoreOf(t, s, loads[kind], seeds, window, 61, 61)
		mean = score{mean.off + share*x.off, mean.bias + share*x.bias, mean.quant + share*x.quant,
			mean.covered + share*x.covered}
		kinds += fmt.Sprintf("\n    %-30s off %.2f  bias %+.3f  upper off %.2f, covers %.3f", kind,
			x.off, x.bias, x.quant, x.covered)
	}
	return mean, kinds
}

// The choice of params.go beside that of the pipeline; BenchmarkSmoothing has more.
func TestSmoothing(t *testing.T) {
	for _, window := range []int{15, 60} {
		mine, _ := meanOf(t, chosen, 4, window)
		theirs, _ := meanOf(t, ofPipeline, 4, window)
		assert.Less(t, mine.off, 0.97*theirs.off)
		assert.Less(t, mine.off, 1.015)
		assert.Greater(t, mine.covered, 0.9)
		assert.Less(t, math.Abs(mine.bias), math.Abs(theirs.bias))
	}
	assert.Greater(t, learned(t, chosen, 20), 0.85)
}

// BenchmarkSmoothing reports the figures in predictor.go. With -v it reports each kind of load.
func BenchmarkSmoothing(b *testing.B) {
	for _, s := range []smoothing{
		chosen, ofPipeline, {0.6, 0.3, 0.05, 0.1}, {0.6, 0.3, 0.2, 0.2}, {0.5, 0.5, 0.05, 0.05}, {0.3, 0.3, 0.05, 0.05},
		{1, 0.3, 0.05, 0.05}, {1, 1, 0, 0},
	} {
		for _, window := range []int{15, 60} {
			b.Run(fmt.Sprintf("choice=%v,%v,%v,%v/window=%d", s.levelUp, s.levelDown, s.trendUp, s.trendDown, window),
				func(b *testing.B) {
					var mean score
					var kinds string
					for b.Loop() {
						mean, kinds = meanOf(b, s, 15, window)
					}
					b.Log(kinds)
					b.ReportMetric(mean.off, "error/persistence")
					b.ReportMetric(mean.bias, "bias")
					b.ReportMetric(mean.covered, "below-upper")
					b.ReportMetric(learned(b, s, 8), "growth-2min")
					b.ReportMetric(learned(b, s, 20), "growth-5min")
				})
		}
	}
}

// What comes is below the upper estimate in about 95 of 100 cases, where there is noise, or noise
// and a trend; in fewer where the trend has just turned, or little has been read yet (fewest).
func TestUpperCovers(t *testing.T) {
	growing := func(t float64) float64 { return 3 + t/1200 }
	falling := func(t float64) float64 { return 6 - t/1200 }
	for name, test := range map[string]struct {
		load   load
		window int // s
		most   int // samples that are known
		least  float64
	}{
		"noise":                           {noisy(5, 0.10, func(float64) float64 { return 4 }), 15, 61, 0.93},
		"noise, means over a minute":      {noisy(5, 0.10, func(float64) float64 { return 4 }), 60, 61, 0.93},
		"growth":                          {noisy(5, 0.10, growing), 15, 61, 0.93},
		"growth, means over a minute":     {noisy(5, 0.10, growing), 60, 61, 0.88},
		"fall":                            {noisy(5, 0.10, falling), 15, 61, 0.93},
		"slow noise":                      {loads["flat, slow noise of 10%"], 15, 61, 0.93},
		"pods that come and go":           {loads["pods of 0.5, for 20 min"], 15, 61, 0.93},
		"noise, since a minute":           {noisy(5, 0.10, func(float64) float64 { return 4 }), 15, fewest + 1, 0.93},
		"slow noise, since a minute":      {loads["flat, slow noise of 10%"], 15, fewest + 1, 0.85},
		"pods that come, since a minute":  {loads["pods of 0.5, for 20 min"], 15, fewest + 1, 0.85},
		"growth that begins and ends":     {loads["1 to 6 cores within 10 min"], 15, 61, 0.80},
		"pods that come, means over 60 s": {loads["pods of 0.5, for 20 min"], 60, 61, 0.88},
	} {
		t.Run(name, func(t *testing.T) {
			x := scoreOf(t, chosen, test.load, 15, test.window, test.most, test.most)
			t.Logf("%.3f of what came was below, the prediction was off by %+.3f on average", x.covered, x.bias)
			assert.Greater(t, x.covered, test.least)
		})
	}
}

// Where samples are further apart than steps, lines between them are no trends, and no forecasts that have come true.
func TestSamplesFurtherApartThanSteps(t *testing.T) {
	const apart = 60
	for _, interval := range []time.Duration{time.Second, 15 * time.Second, time.Minute} {
		o := Options{Interval: interval}.withDefaults()
		p, err := newPredictor(o.params())
		require.NoError(t, err)
		var n, off, persists, covered float64
		for seed := range uint64(15) {
			u := noisy(10, 0.12, func(float64) float64 { return 4 })(rand.New(rand.NewPCG(seed, 7)), 7200)
			for _, m := range moments(u, apart, 4*16, 4*16) {
				m.samples = slices.Clone(m.samples)
				for i := range 16 { // each fourth, the newest included
					m.samples[i] = m.samples[4*i+3]
				}
				use, ok := p.predict(m.samples[:16], apart*time.Second, m.now)
				require.True(t, ok)
				n++
				off += math.Abs(use.Predicted - m.actual)
				persists += math.Abs(m.newest - m.actual)
				if m.actual <= use.Upper {
					covered++
				}
			}
		}
		t.Logf("%s: off by %.2f of persistence, %.3f below the upper estimate", interval, off/persists, covered/n)
		assert.Less(t, off/persists, 1.1)
		assert.Greater(t, covered/n, 0.8)
	}
}

// The closed form is the sum of the book, and a step ahead is off as a step is.
func TestSpread(t *testing.T) {
	for _, h := range []int{1, 2, 3, 8, 60} {
		for _, s := range []smoothing{{levelUp: 0.6, trendUp: 0.1}, {levelUp: 1, trendUp: 1}, {levelUp: 0.2}} {
			squares := 1.0
			for j := 1; j < h; j++ {
				c := s.levelUp + s.levelUp*s.trendUp*float64(j)
				squares += c * c
			}
			assert.InDelta(t, math.Sqrt(squares), spread(s.levelUp, s.trendUp, float64(h)), 1e-9, "%d %v", h, s)
		}
	}
	assert.Equal(t, 1.0, spread(0.6, 0.1, 0.2))
}
