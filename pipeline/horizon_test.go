package pipeline_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

func adaptiveDefaults() pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Max = tau, 20
	return p
}

func TestHorizonAndWindowFollowTheStartupTime(t *testing.T) {
	const s = time.Second
	holt, adaptive := defaults(), adaptiveDefaults()
	fixed := adaptive
	fixed.WindowFollowsHorizon = false
	fixed.Window = 90 * s
	for name, c := range map[string]struct {
		params                       pipeline.Params
		startup                      time.Duration
		horizon, needed, window, min time.Duration
		limit                        pipeline.HorizonLimit
	}{
		"Adaptive, assumed":   {adaptive, 0, 40 * s, 40 * s, 300 * s, 32 * s, pipeline.Unlimited},
		"Adaptive, 3 minutes": {adaptive, 180 * s, 195 * s, 195 * s, 300 * s, 156 * s, pipeline.Unlimited},
		"Adaptive, 5 minutes": {adaptive, 300 * s, 315 * s, 315 * s, 472500 * time.Millisecond,
			252 * s, pipeline.Unlimited},
		"Adaptive, 20 minutes": {adaptive, 1200 * s, 1215 * s, 1215 * s, 1822500 * time.Millisecond,
			972 * s, pipeline.Unlimited},
		"Adaptive, half an hour": {adaptive, 1800 * s, 1215 * s, 1815 * s, 1822500 * time.Millisecond,
			972 * s, pipeline.LimitedByMax},
		"Adaptive, the window fits": {fixed, 97500 * time.Millisecond, 112500 * time.Millisecond, 112500 * time.Millisecond,
			90 * s, 90 * s, pipeline.Unlimited},
		"Adaptive, a short window": {fixed, 180 * s, 195 * s, 195 * s, 90 * s, 156 * s, pipeline.LimitedByWindow},
		"Adaptive, both":           {fixed, 1800 * s, 1215 * s, 1815 * s, 90 * s, 972 * s, pipeline.LimitedByMax},
		"Holt, assumed":            {holt, 0, 45 * s, 45 * s, 90 * s, 0, pipeline.Unlimited},
		"Holt, 3 minutes":          {holt, 180 * s, 55 * s, 231 * s, 90 * s, 0, pipeline.LimitedByMax},
	} {
		t.Run(name, func(t *testing.T) {
			in := at(600_000, pipeline.Instance{ID: "a", Samples: everySecond(590_000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)})
			in.StartupTime = c.startup
			f := run(t, c.params, in)
			assert.Equal(t, c.horizon, f.Horizon, "horizon")
			assert.Equal(t, c.needed, f.HorizonNeeded, "horizon needed")
			assert.Equal(t, c.window, f.Window, "window")
			assert.Equal(t, c.min, f.WindowNeeded, "window needed")
			assert.Equal(t, c.limit, f.HorizonLimit)
			assert.Equal(t, c.window, c.params.WindowFor(c.startup))
		})
	}
}

func TestWindowThatFollowsTheHorizonKeepsTheGridBounded(t *testing.T) {
	p := adaptiveDefaults()
	p.Interval = 5 * time.Millisecond
	require.Equal(t, 100_000*p.Interval, p.WindowFor(time.Hour))
}

// A load rises steadily for eight minutes and pods take three minutes to start: the forecast made
// now is compared with the load there is when pods asked for now are ready. Horizon.max of 40 s was
// the default before.
func TestLongStartupOnARamp(t *testing.T) {
	const startup, reaction = 180, 15
	errorOf := func(p pipeline.Params, seed uint64) float64 {
		r := rand.New(rand.NewPCG(seed, 11))
		load := func(t int) float64 { return 4 + 0.02*float64(min(max(t-600, 0), 480)) }
		var samples []pipeline.Sample
		for s := range 1300 {
			samples = append(samples, pipeline.Sample{T: int64(s) * 1000, V: load(s) * (1 + 0.03*r.NormFloat64())})
		}
		sum, n := 0.0, 0
		for now := 660; now+startup+reaction < 1080; now += 15 {
			in := at(int64(now)*1000, pipeline.Instance{ID: "a", Samples: samples[:now+1]})
			in.StartupTime = startup * time.Second
			f := run(t, p, in)
			actual := load(now + startup + reaction)
			sum += math.Abs(f.Total-actual) / actual
			n++
		}
		return sum / float64(n)
	}
	before := adaptiveDefaults()
	before.HorizonMax, before.WindowFollowsHorizon = 40*time.Second, false
	for seed := range uint64(5) {
		was, is := errorOf(before, seed), errorOf(adaptiveDefaults(), seed)
		t.Logf("seed %d: mean error %.1f%% with horizon.max 40s, %.1f%% with the default", seed, 100*was, 100*is)
		assert.Greater(t, was, 0.2)
		assert.Less(t, is, 0.12)
	}
}
