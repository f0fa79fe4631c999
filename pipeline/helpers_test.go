package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// tau is the threshold of the examples in the paper's section 8.4.
const tau = 0.75

// defaults are the default parameters, with room to scale.
func defaults() pipeline.Params {
	p := pipeline.HoltParams()
	p.Threshold, p.Max = tau, 20
	return p
}

// following are parameters under which the level is the newest aggregate and the trend its last change less Δ, and the
// horizon is 20 s after now.
func following() pipeline.Params {
	p := defaults()
	p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = 1, 1, 1, 1
	p.HorizonMin, p.HorizonMax, p.ReactionDelay = 20*time.Second, 20*time.Second, 0
	return p
}

// everySecond returns one sample a second, the first at start.
func everySecond(start int64, values ...float64) []pipeline.Sample {
	var samples []pipeline.Sample
	for i, v := range values {
		samples = append(samples, pipeline.Sample{T: start + int64(i)*1000, V: v})
	}
	return samples
}

// at returns an input of the instances, with nothing pending.
func at(now int64, instances ...pipeline.Instance) pipeline.Input {
	return pipeline.Input{Now: now, Instances: instances, TargetRose: pipeline.Never}
}

func run(t testing.TB, params pipeline.Params, in pipeline.Input) pipeline.Forecast {
	t.Helper()
	return runs(t, params)(in)
}

// runs returns a function that makes forecasts with one pipeline.
func runs(t testing.TB, params pipeline.Params) func(pipeline.Input) pipeline.Forecast {
	t.Helper()
	p, err := pipeline.New(params)
	require.NoError(t, err)
	return func(in pipeline.Input) pipeline.Forecast {
		t.Helper()
		f, err := p.Run(in)
		require.NoError(t, err)
		return f
	}
}

func stages(t testing.TB, params pipeline.Params, in pipeline.Input) (pipeline.Forecast, pipeline.Stages) {
	t.Helper()
	p, err := pipeline.New(params)
	require.NoError(t, err)
	f, err := p.Run(in)
	require.NoError(t, err)
	return f, p.Stages()
}

// near compares sums that are equal but for rounding.
func near(t *testing.T, want, got []float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-12, "%s at tick %d: want %v, got %v", what, i+1, want, got)
	}
}

// trending returns an input of n equal instances, now at the newest tick, at which, under the parameters of following,
// the level is level and the trend adds growth to it by the horizon.
func trending(n int, level, growth float64) pipeline.Input {
	before := level - growth/20
	in := at(1000)
	for i := range n {
		in.Instances = append(in.Instances, pipeline.Instance{
			ID: string(rune('a' + i)), Samples: everySecond(0, before/float64(n), level/float64(n)),
		})
	}
	return in
}

// growthFor is the ΔA whose damped part is x, at the level and the risk factor k: the reverse of ΔA·k/(k+ρ).
func growthFor(x, level, k float64) float64 { return x * k / (k - x/level) }

// curve is w(a) of the paper's section 6.3, a in units of T_R, for κ = 1.
func curve(a float64) float64 { return (math.Exp(a) - 1) / (math.E - 1) }
