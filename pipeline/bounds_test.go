package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Whatever the load does, what an actuator scales on is within the bounds of a run, and so are its
// decision and the farther one.
func TestBoundsOfARunHold(t *testing.T) {
	outside := 0
	forFleets(t, 300, func(r fleets, params pipeline.Params, in pipeline.Input, without pipeline.Forecast) {
		p, err := pipeline.New(params)
		require.NoError(t, err)
		fewest, far := r.IntN(12)+1, r.IntN(12)+1
		b := pipeline.Bounds{Min: fewest, Max: fewest + r.IntN(5), NodeMin: far,
			NodeMax: far + r.IntN(5), Lateness: params.Lateness}
		in.Bounds, in.NodeStartupTime = &b, time.Minute
		given := b
		f, err := p.Run(in)
		require.NoError(t, err)
		assert.Equal(t, given, b, "it is the caller's")

		tau := params.Threshold
		assert.GreaterOrEqual(t, f.ServedLoad, tau*float64(b.Min))
		assert.LessOrEqual(t, f.ServedLoad, tau*float64(b.Max))
		assert.GreaterOrEqual(t, f.Decision.Desired, b.Min)
		assert.LessOrEqual(t, f.Decision.Desired, b.Max)
		if f.NodeForecast.Horizon > 0 { // it is known
			assert.GreaterOrEqual(t, f.NodeForecast.Desired, b.NodeMin)
			assert.LessOrEqual(t, f.NodeForecast.Desired, b.NodeMax)
		}
		assert.Equal(t, without.Total, f.Total, "they are no forecast")
		if d := without.Decision.Desired; d < b.Min || d > b.Max {
			outside++
		}
		in.Bounds, in.NodeStartupTime = nil, 0
		again, err := p.Run(in)
		require.NoError(t, err)
		assert.Equal(t, without, again, "they are of one run")
	})
	assert.Greater(t, outside, 100)
}

// Bounds that nothing reaches change nothing.
func TestWideBoundsChangeNothing(t *testing.T) {
	forFleets(t, 200, func(_ fleets, params pipeline.Params, in pipeline.Input, without pipeline.Forecast) {
		if without.ServedLoad < params.Threshold*float64(params.Min) ||
			without.ServedLoad > params.Threshold*float64(params.Max) ||
			without.Decision.Desired < params.Min || without.Decision.Desired > params.Max {
			return
		}
		in.Bounds = &pipeline.Bounds{Min: params.Min, Max: params.Max, NodeMin: params.Min,
			NodeMax: params.Max, Lateness: params.Lateness}
		assert.Equal(t, without, run(t, params, in))
	})
}

func TestAMinimumForATargetAtZeroWakesIt(t *testing.T) {
	p := learningParams()
	p.Whole, p.Min = true, 0
	in := at(600_000)
	in.Total = everySecond(300_000, make([]float64, 301)...)
	require.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Reason: pipeline.Idle, Action: pipeline.Hold},
		run(t, p, in).Decision)
	in.Bounds = &pipeline.Bounds{Min: 3, Max: 9}
	f := run(t, p, in)
	assert.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: 3, Reason: pipeline.BelowMinimum,
		Action: pipeline.ScaleUp}, f.Decision)
	assert.InDelta(t, 3*tau, f.ServedLoad, 1e-12)
	in.Bounds = &pipeline.Bounds{Min: 0, Max: 9}
	assert.Zero(t, run(t, p, in).ServedLoad)
}

// A margin is learned for the lateness of Params. With another one for a while it is late for less
// of the time at once, and for more with a larger one; the learned state does not change.
func TestTheLatenessOfARunCountsAtOnce(t *testing.T) {
	p := learningParams()
	p.Threshold, p.ScaleDownMargin = 0.05, 0 // so that neither whole instances nor those that stay leave anything
	const seed = 5
	mean := func(int64) float64 { return 40 }
	load := noisy(seed, mean)
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, ofDay/2, load)
	late, looks := map[float64]float64{}, 0.0
	for s := ofDay / 2; s < ofDay; s += 60 {
		follow(past, p, s-60, s, load)
		rate := 0.0
		for k := s + 31; k < s+51; k++ {
			rate += load(k) / 20
		}
		looks++
		for _, lateness := range []float64{0.01, 0.001, 0.1} {
			f := foretellWith(t, p, past, s, load, lateness)
			require.True(t, f.MarginLearned)
			if lateness == p.Lateness {
				require.Equal(t, foretell(t, p, past, s, load).PlannedLoad, f.PlannedLoad)
			}
			if rate > f.PlannedLoad {
				late[lateness] += 1
			}
		}
	}
	for lateness := range late {
		late[lateness] /= looks
	}
	t.Logf("late %v", late)
	assert.LessOrEqual(t, late[0.001], 0.004)
	assert.Greater(t, late[0.1], 0.03)
	assert.Less(t, late[0.1], 0.2)
}

func foretellWith(t *testing.T, p pipeline.Params, past *pipeline.Learned, s int64, load secondly,
	lateness float64) pipeline.Forecast {
	in := inputOf(past, s, load)
	in.Bounds = &pipeline.Bounds{Min: p.Min, Max: math.MaxInt32, Lateness: lateness}
	return run(t, p, in)
}
