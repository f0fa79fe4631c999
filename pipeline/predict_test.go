package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// history runs one instance's series at each of its ticks from the second on, and returns a forecast of each.
func history(t *testing.T, params pipeline.Params, values ...float64) []pipeline.Forecast {
	t.Helper()
	params.Window = time.Duration(len(values)+1) * time.Second
	a := pipeline.Instance{ID: "a", Samples: everySecond(1000, values...)}
	var forecasts []pipeline.Forecast
	for i := 1; i < len(values); i++ {
		forecasts = append(forecasts, run(t, params, at(int64(i+1)*1000, a)))
	}
	return forecasts
}

// Paper, section 7.2: two steps up by hand, with the defaults α↑ = β↑ = 0.2.
func TestHoltUp(t *testing.T) {
	f := history(t, defaults(), 1, 2, 2)
	require.InDelta(t, 1.2, f[0].Level, 1e-12)    // 0.2·2 + 0.8·1
	require.InDelta(t, 0.04, f[0].Trend, 1e-12)   // 0.2·0.2
	require.InDelta(t, 1.392, f[1].Level, 1e-12)  // 0.2·2 + 0.8·1.24
	require.InDelta(t, 0.0704, f[1].Trend, 1e-12) // 0.2·0.192 + 0.8·0.04
	require.InDelta(t, 0, history(t, defaults(), 1, 1)[0].Trend, 1e-15)
}

// What ticks were above their forecasts, by hand for the same steps up.
func TestMissed(t *testing.T) {
	missed := func(p pipeline.Params, now int64, instances ...pipeline.Instance) []float64 {
		var m pipeline.Memory
		made, err := pipeline.New(p)
		require.NoError(t, err)
		_, err = made.RunIn(&m, at(now, instances...))
		require.NoError(t, err)
		return m.OneTickErrors()
	}
	of := func(values ...float64) pipeline.Instance {
		return pipeline.Instance{ID: "a", Samples: everySecond(0, values...)}
	}
	require.InDeltaSlice(t, []float64{1, 0.76}, missed(defaults(), 2000, of(1, 2, 2)), 1e-12) // 2 − 1, 2 − (1.2 + 0.04)
	require.InDeltaSlice(t, []float64{-0.5}, missed(defaults(), 1000, of(1, 0.5)), 1e-12)

	one := pipeline.Instance{ID: "a", Samples: []pipeline.Sample{{T: 500, V: 1}, {T: 1500, V: 7}}}
	require.Empty(t, missed(defaults(), 1600, one), "one tick has no forecast to be held against")

	p := defaults() // a newcomer that grows into its weight is not missed
	p.Window = time.Minute
	young := pipeline.Instance{ID: "b", Start: 10_000, Samples: everySecond(10_000, repeat(51, 0.6)...)}
	require.InDeltaSlice(t, make([]float64, 59), missed(p, 60_000, of(repeat(61, 0.8)...), young), 1e-12)

	made, err := pipeline.New(defaults())
	require.NoError(t, err)
	_, err = made.Run(at(2000, of(1, 2, 2)))
	require.NoError(t, err)
	require.NotEmpty(t, made.OneTickErrors())
	_, err = made.Run(at(2000))
	require.ErrorIs(t, err, pipeline.ErrNoData)
	require.Empty(t, made.OneTickErrors(), "nothing is left of the run before")
}

// Paper, sections 7.5 and 7.6: a step down by hand, with α↓ = β↓ = 0.1, dampened by the gap to the input.
func TestHoltDown(t *testing.T) {
	f := history(t, defaults(), 1, 0.5)
	require.InDelta(t, 0.95, f[0].Level, 1e-12)                          // 0.1·0.5 + 0.9·1
	require.InDelta(t, -0.005*0.45/(0.45+0.005+1e-9), f[0].Trend, 1e-15) // 0.1·(−0.05), gap 0.45
	require.Greater(t, history(t, defaults(), 1, 1.5)[0].Trend, -f[0].Trend, "up is followed faster than down")
}

// Paper, section 7.6, figures 11 and 12: after a drop the undamped level undershoots and recovers with a positive
// trend; the dampened one lands from above, and its trend never turns up.
func TestTrendDampening(t *testing.T) {
	p := defaults()
	ramp := []float64{3}
	for v := 3.0; v > 1; v -= 0.1 {
		ramp = append(ramp, v)
	}
	for name, drop := range map[string][]float64{
		"a step": append(repeat(5, 3), repeat(80, 1)...),
		"a ramp": append(ramp, repeat(80, 1)...),
	} {
		t.Run(name, func(t *testing.T) {
			level, trend := drop[0], 0.0
			undershoot, recovery := 0.0, 0.0
			for _, in := range drop[1:] { // Holt's method without dampening
				forecast := level + trend
				alpha, beta := p.LevelDown, p.TrendDown
				if in > forecast {
					alpha, beta = p.LevelUp, p.TrendUp
				}
				next := alpha*in + (1-alpha)*forecast
				level, trend = next, beta*(next-level)+(1-beta)*trend
				undershoot, recovery = max(undershoot, 1-level), max(recovery, trend)
			}
			require.Greater(t, undershoot, 0.1)
			require.Greater(t, recovery, 0.01)

			forecasts := history(t, p, drop...)
			for k, f := range forecasts {
				require.GreaterOrEqual(t, f.Level, 1-1e-9, "tick %d", k)
				require.LessOrEqual(t, f.Trend, 1e-12, "tick %d", k)
			}
			last := forecasts[len(forecasts)-1]
			require.InDelta(t, 1, last.Level, 0.01)
			require.InDelta(t, 0, last.Trend, 0.001)
		})
	}
}

// Paper, section 7.7: the weights of new instances may move the aggregate as they will, the trend does not see it.
func TestDeltaCompensation(t *testing.T) {
	p := defaults()
	p.Window = time.Minute
	old := pipeline.Instance{ID: "a", Samples: everySecond(0, repeat(61, 0.8)...)}
	young := pipeline.Instance{ID: "b", Start: 10_000, Samples: everySecond(10_000, repeat(51, 0.6)...)}
	for now := int64(11_000); now <= 60_000; now += 1000 {
		f, s := stages(t, p, at(now, old, young))
		require.InDelta(t, 0, f.Trend, 1e-12, "at %d", now)
		effective := s.Effective[len(s.Effective)-1]
		require.InDelta(t, effective, f.Level, 1e-12, "at %d", now)
		require.InDelta(t, 0.8+0.6*weightAt(p, time.Duration(now-10_000)*time.Millisecond), effective, 1e-12)
	}
}

// Paper, section 7.8, figures 13 and 14: while the metric is clipped at 1 the trend it had is kept, and the level is
// capped at the maximum of the metric; then the trend corrects itself.
func TestSaturation(t *testing.T) {
	var series []float64
	for v := 0.5; v < 1; v += 0.03 {
		series = append(series, v)
	}
	clipped := len(series)
	series = append(series, repeat(10, 1)...)
	released := len(series)
	series = append(series, repeat(20, 0.6)...)

	p := defaults()
	without := history(t, p, series...)
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
	with := history(t, p, series...)

	require.Equal(t, without[:clipped-2], with[:clipped-2], "until the metric is clipped nothing differs")
	for k := clipped - 1; k < released-1; k++ { // with[k] is of tick k + 1
		require.GreaterOrEqual(t, with[k].Trend, with[k-1].Trend, "tick %d", k+1)
		require.LessOrEqual(t, with[k].Level, 1.0, "tick %d", k+1)
	}
	end := released - 2
	require.Less(t, without[end].Trend, with[end].Trend/2, "without, it has decayed")
	require.Greater(t, with[end].Total, 1.3, "with, growth is predicted on")
	require.Less(t, with[end+5].Trend, with[end].Trend/2, "and corrected within a few ticks")

	p.Saturation.Enabled = false
	require.Equal(t, without, history(t, p, series...), "a bound that is off does nothing")
}

// The saturation zone begins at n·g(v_max(1−σ_z)), for all active instances together and in units of the model.
func TestSaturationZone(t *testing.T) {
	for name, c := range map[string]struct {
		model pipeline.Model
		below float64 // of one of two instances, the other at 1
	}{
		"linear":    {linear, 0.90},
		"overhead":  {overhead, 0.90},
		"quadratic": {quadratic, math.Sqrt(2*0.95*0.95 - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			p := following()
			p.Model = c.model
			p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.05}
			last := func(v float64) pipeline.Forecast { // falling on the last tick after a rise
				return run(t, p, at(2000,
					pipeline.Instance{ID: "a", Samples: everySecond(0, 1, 1, 1)},
					pipeline.Instance{ID: "b", Samples: everySecond(0, 0.3, 0.97, v)}))
			}
			rise := c.model.Load(0.97) - c.model.Load(0.3)
			require.InDelta(t, rise, last(c.below+1e-6).Trend, 1e-9, "in the zone the trend is kept")
			require.Negative(t, last(c.below-1e-6).Trend, "below it is not")
		})
	}
	p := following()
	p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.05}
	f := run(t, p, at(1000,
		pipeline.Instance{ID: "a", Samples: everySecond(0, 0.9, 1.2)},
		pipeline.Instance{ID: "b", Samples: everySecond(0, 0.9, 1.1)}))
	require.Equal(t, 2.0, f.Level, "no more than n·g(v_max)")
}

// Paper, section 7.9: H = clamp(η·T_I, H_min, H_max), and what is known to come later than that.
func TestHorizon(t *testing.T) {
	const s = time.Second
	in := at(1000, pipeline.Instance{ID: "a", Samples: everySecond(0, 0.5, 0.5)})
	for _, c := range []struct {
		initial, measured, delay, want time.Duration
	}{
		{25 * s, 0, 0, 30 * s},         // 1.2·25
		{25 * s, 0, 15 * s, 45 * s},    // D is not bounded by H_max
		{25 * s, 20 * s, 0, 24 * s},    // what was measured counts
		{1 * s, 0, 0, 10 * s},          // H_min
		{0, 0, 0, 10 * s},              // H_min
		{60 * s, 0, 15 * s, 55 * s},    // H_max + D
		{60 * s, 5 * s, 1 * s, 11 * s}, // H_min + D
		{12345 * time.Millisecond, 0, 0, 14814 * time.Millisecond},
	} {
		p := defaults()
		p.StartupTime, p.ReactionDelay = c.initial, c.delay
		in.StartupTime = c.measured
		require.InDelta(t, float64(c.want), float64(run(t, p, in).Horizon), 1e3, "%+v", c)
	}
	p := defaults()
	p.HorizonMax, p.HorizonMin, p.ReactionDelay = math.MaxInt64, math.MaxInt64, math.MaxInt64
	require.Positive(t, run(t, p, in).Horizon, "as far as a duration reaches")
}

// Paper, section 7.10, counted from now: the age of the newest data is part of the way to go.
func TestExtrapolation(t *testing.T) {
	in := trending(4, 3, 0.6) // 0.03 a second for 20 s
	f := run(t, following(), in)
	require.InDelta(t, 3, f.Level, 1e-12)
	require.InDelta(t, 0.03, f.Trend, 1e-12)
	require.InDelta(t, 3.6, f.Total, 1e-12)

	in.Now = 6500
	f = run(t, following(), in)
	require.Equal(t, int64(1000), f.Tick)
	require.InDelta(t, 3+0.03*25.5, f.Total, 1e-12)

	p := following()
	p.Interval = 500 * time.Millisecond // ticks half as long see half the change each
	in.Now = 1000
	f = run(t, p, in)
	require.InDelta(t, 0.015, f.Trend, 1e-12)
	require.InDelta(t, 3.6, f.Total, 1e-12)

	f = run(t, following(), trending(4, 1, -2))
	require.Zero(t, f.Total, "load does not fall below nothing")
	require.Zero(t, f.PlannedLoad)
}
