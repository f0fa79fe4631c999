package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// judging runs a pipeline every so many seconds over one instance that carries a load, and judges what it forecasts.
func judging(t *testing.T, p pipeline.Params, every, seconds int, load func(second int) float64,
	change func(second int, in *pipeline.Input)) (*pipeline.Accuracy, []pipeline.Forecast) {
	t.Helper()
	made, err := pipeline.New(p)
	require.NoError(t, err)
	var (
		m         pipeline.Memory
		a         pipeline.Accuracy
		forecasts []pipeline.Forecast
		samples   []pipeline.Sample
	)
	const began = 1_700_000_000
	for s := range seconds {
		samples = append(samples, pipeline.Sample{T: (began + int64(s)) * 1000, V: load(s)})
		if s < 60 || s%every != 0 {
			continue
		}
		in := at((began + int64(s)) * 1000)
		in.Instances = []pipeline.Instance{{ID: "a", Start: (began - 1000) * 1000,
			Samples: samples[max(0, len(samples)-400):]}}
		in.StartupTime = 40 * time.Second
		if change != nil {
			change(s, &in)
		}
		f, err := made.RunIn(&m, in)
		require.NoError(t, err)
		a.Judge(m.Loads(), f.Claim(p.Activation))
		forecasts = append(forecasts, f)
	}
	return &a, forecasts
}

// On a steady rise the present load is as much too low as the load rises until the horizon, and the
// trend is nearly all of that.
func TestARiseIsForecast(t *testing.T) {
	a, forecasts := judging(t, adaptive(), 1, 1800, func(s int) float64 { return 1 + float64(s)/100 }, nil)
	hour := a.LastHour()
	assert.InDelta(t, (forecasts[0].Horizon.Seconds()+7)/100, hour.Naive, 0.01,
		"the middle of a quarter of a minute is 7 s ago")
	assert.Less(t, hour.Ratio(), 0.2)
	assert.Greater(t, hour.Judged, 20*time.Minute)
	assert.Less(t, hour.Judged, a.LastDay().Judged, "what is an hour ago counts less")
	assert.LessOrEqual(t, a.LastDay().Judged, 30*time.Minute)
}

// Late is the share of the time in which the load exceeded the planned load, whatever the forecast was.
func TestLateIsLoadAboveThePlannedOne(t *testing.T) {
	p := adaptive()
	p.NoiseMargin = 0
	jumps := func(s int) float64 { return map[bool]float64{true: 2, false: 1}[s%600 >= 300] }
	a, forecasts := judging(t, p, 1, 7200, jumps, nil)
	horizon := forecasts[0].Horizon.Seconds()
	assert.Greater(t, a.LastDay().Late, horizon/600, "what was forecast before a jump did not know of it")
	assert.Less(t, a.LastDay().Late, (horizon+45)/600, "and soon after it did")
}

// A fleet that is held at its maximum is late only until it is known that the maximum is too
// little: the forecast cannot help it.
func TestAtTheMaximumIsNotLate(t *testing.T) {
	p := adaptive()
	p.Max = 2
	jumps := func(s int) float64 { return map[bool]float64{true: 5, false: 1}[s >= 600] }
	a, forecasts := judging(t, p, 1, 7200, jumps, nil)
	day := a.LastDay()
	assert.Less(t, day.Late, (forecasts[0].Horizon.Seconds()+60)/7000)
	assert.Greater(t, day.AtMaximum, 0.85)
	assert.LessOrEqual(t, day.Late+day.AtMaximum, 1.0)

	p.Max = 20
	a, _ = judging(t, p, 1, 7200, jumps, nil)
	assert.Zero(t, a.LastDay().AtMaximum)
}

// What cannot be read is no error.
func TestWhatCannotBeReadIsNotJudged(t *testing.T) {
	p := adaptive()
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
	clipped := func(s int) float64 { return min(1, 0.5+float64(s%200)/200) }
	a, _ := judging(t, p, 1, 3600, clipped, nil)
	open, _ := judging(t, adaptive(), 1, 3600, clipped, nil)
	assert.Less(t, a.LastHour().Judged, 2*open.LastHour().Judged/3)

	gaps, _ := judging(t, adaptive(), 1, 1800, clipped, func(s int, in *pipeline.Input) {
		if s%200 < 100 {
			in.Since = in.Now - 5000 // only a part has been read before
		}
	})
	assert.Less(t, gaps.LastHour().Judged, 2*open.LastHour().Judged/3)
}

// A clipped load was late if it showed more than the ordered instances carry; otherwise lateness is unknown.
func TestWhatIsClippedMayBeLate(t *testing.T) {
	p := adaptive()
	p.NoiseMargin = 0
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
	jumps := func(s int) float64 { return map[bool]float64{true: 1, false: 0.4}[s%600 >= 300] }
	a, forecasts := judging(t, p, 1, 7200, jumps, nil)
	day, horizon := a.LastDay(), forecasts[0].Horizon.Seconds()
	assert.Less(t, day.Judged, time.Hour, "how much came in the jump is not known")
	late := day.Late * day.LateKnown.Seconds() / 7200
	assert.Greater(t, late, 0.8*horizon/600, "that it was too much is")
	assert.Less(t, late, (horizon+45)/600, "and no more than that is")

	always, forecasts := judging(t, p, 1, 3600, func(int) float64 { return 1 }, nil)
	require.Greater(t, forecasts[0].Holds, 1.0)
	assert.Zero(t, always.LastDay(), "whether more came than was ordered for is not known")
}

// It knows nothing before a horizon has passed, and a rare forecast stands for no more than a minute.
func TestNothingIsKnownAtFirst(t *testing.T) {
	var a pipeline.Accuracy
	assert.Equal(t, pipeline.Score{}, a.LastHour())
	assert.True(t, math.IsNaN(a.LastDay().Ratio()))
	rare, forecasts := judging(t, adaptive(), 300, 3600, func(int) float64 { return 1 }, nil)
	assert.LessOrEqual(t, rare.LastDay().Judged, time.Duration(len(forecasts))*time.Minute)
}
