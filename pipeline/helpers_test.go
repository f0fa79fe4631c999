package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/impute"
	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
	"github.com/foresail/foresail/pipeline/series/seriestest"
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

// stageValues are what the first stages made of each tick, from the first one known to the newest.
type stageValues struct {
	First     int64       // the first tick (ms)
	Imputed   [][]float64 // v̂ by tick and instance in order of ID; meaningless where the instance is not active
	Effective []float64   // Ā and the external demand
	Raw       []float64   // Â
	Delta     []float64   // Δ
	Missed    []float64   // the load without its forecast; 0 at the first tick
	Weight    []float64   // N^w
	Active    []int
	Clipped   []bool // of the adaptive method
}

func stages(t testing.TB, params pipeline.Params, in pipeline.Input) (pipeline.Forecast, stageValues) {
	t.Helper()
	p, err := pipeline.New(params)
	require.NoError(t, err)
	f, err := p.Run(in)
	require.NoError(t, err)
	return f, stagesOf(t, p, in, f)
}

// stagesOf returns the stages of the last run of a pipeline. Stages one and two run again, as a run keeps no values.
func stagesOf(t testing.TB, p *pipeline.Pipeline, in pipeline.Input, f pipeline.Forecast) stageValues {
	t.Helper()
	params, l := p.Params(), p.Loads()
	w := series.Window{Grid: series.NewGrid(in.Now, f.Window.Milliseconds(), params.Interval.Milliseconds())}
	if in.Since != 0 {
		w.Grid = w.From(in.Since)
	}
	require.NoError(t, w.AssignRows(in.Instances))
	new(align.Aligner).Fill(&w, align.Limits{Latest: in.Now + w.Step, Lowest: params.Model.Lowest()})
	new(impute.Imputer).Fill(&w)
	s := stageValues{First: l.Start, Missed: append([]float64{0}, p.OneTickErrors()...)}
	for k, x := range l.Ticks {
		var row []float64
		for i := range w.Rows {
			row = append(row, w.Rows[i].Values[w.First+k])
		}
		s.Imputed = append(s.Imputed, row)
		s.Effective = append(s.Effective, x.Effective)
		s.Raw = append(s.Raw, x.Raw)
		s.Delta = append(s.Delta, x.Delta)
		s.Weight = append(s.Weight, x.Weight)
		s.Active = append(s.Active, x.Active)
		s.Clipped = append(s.Clipped, x.Clipped)
	}
	return s
}

// secondly is a load by the second.
type secondly = seriestest.Secondly

const (
	midnight = seriestest.Midnight
	ofDay    = seriestest.OfDay
)

// These make loads by the second, and by the tick.
var (
	noisy    = seriestest.Noisy
	bursts   = seriestest.Bursts
	daily    = seriestest.Daily
	hourly   = seriestest.Hourly
	floorMod = seriestest.FloorMod

	repeat = seriestest.Repeat
	ramp   = seriestest.Ramp
)

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

// weightAt is w(a) under the parameters (paper, section 6.3).
func weightAt(p pipeline.Params, age time.Duration) float64 {
	o := redistribute.Options{Timeout: p.RedistributionTimeout, Shape: p.RedistributionShape}
	return o.Weight(age)
}
