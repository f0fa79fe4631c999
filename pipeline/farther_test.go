package pipeline_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// farther returns an input that asks for the farther forecast as well.
func farther(in pipeline.Input, nodes time.Duration) pipeline.Input {
	in.NodeStartupTime = nodes
	return in
}

// TestFartherChangesNothingElse compares every number of a run with those of one that makes no
// farther forecast, to the bit.
func TestFartherChangesNothingElse(t *testing.T) {
	for _, w := range workloads() {
		w.in.NodeStartupTime = 0
		p, err := pipeline.New(w.params)
		require.NoError(t, err, w.name)
		without, err := p.Run(w.in)
		require.NoError(t, err, w.name)
		loads, missed := slices.Clone(p.Loads().Ticks), len(p.OneTickErrors())
		with, err := p.Run(farther(w.in, 3*time.Minute))
		require.NoError(t, err, w.name)
		assert.Zero(t, without.NodeForecast, w.name)
		assert.NotZero(t, with.NodeForecast, w.name)
		assert.Equal(t, loads, p.Loads().Ticks, w.name)
		assert.Len(t, p.OneTickErrors(), missed, w.name)
		with.NodeForecast = pipeline.NodeForecast{}
		assert.Equal(t, without, with, w.name)
	}
}

func TestFartherAllocatesNothing(t *testing.T) {
	for _, w := range workloads() {
		p, err := pipeline.New(w.params)
		require.NoError(t, err)
		in := farther(w.in, 3*time.Minute)
		count := func(in pipeline.Input) float64 {
			return testing.AllocsPerRun(5, func() {
				if _, err := p.Run(in); err != nil {
					t.Fatal(err)
				}
			})
		}
		assert.Equal(t, count(farther(in, 0)), count(in), w.name)
	}
}

// TestFartherIsALaterForecast compares it with the forecast of a pipeline whose horizon reaches as far.
func TestFartherIsALaterForecast(t *testing.T) {
	const nodes = 2 * time.Minute
	for _, w := range workloads() {
		if w.params.Method == pipeline.Adaptive {
			continue // it takes a longer line for a longer horizon only if the trend has lasted so long
		}
		later := w.params
		later.ReactionDelay += nodes
		want, got := run(t, later, w.in), run(t, w.params, farther(w.in, nodes)).NodeForecast
		assert.Equal(t, want.Horizon, got.Horizon, w.name)
		assert.Equal(t, want.Total, got.Total, w.name)
	}
}

// TestFartherSeesARamp has a load rise by a twentieth of a pod a second for as long as the window.
// Two and a half minutes on, it is 7.5 pods more.
func TestFartherSeesARamp(t *testing.T) {
	params := adaptive()
	params.Max = 100
	const perSecond = 0.05 * tau
	load := func(second int) float64 { return 8*tau + perSecond*float64(second) }
	for seed := range uint64(20) {
		in := newFleets(seed).noisyFleet(20, 0.005, load)
		in.Target = 20
		f := run(t, params, farther(in, 2*time.Minute))
		at := (f.Horizon + 2*time.Minute).Seconds()
		assert.Equal(t, f.Horizon+2*time.Minute, f.NodeForecast.Horizon)
		assert.InEpsilon(t, load(360)+perSecond*at, f.NodeForecast.Total, 0.05, "seed %d", seed)
		assert.InDelta(t, (load(360)+perSecond*at)/tau, f.NodeForecast.Desired, 2, "seed %d", seed)
		assert.Greater(t, f.NodeForecast.Desired, f.Decision.Desired+4, "seed %d", seed)
		assert.LessOrEqual(t, f.NodeForecast.WindowNeeded, f.Window)
	}
}

// A steady load does not need more later, and a trend that has lasted for half a minute is not extended for minutes.
func TestNodeForecastDoesNotInventARise(t *testing.T) {
	params := adaptive()
	params.Max = 100
	for seed := range uint64(50) {
		in := newFleets(seed).noisyFleet(10, 0.05, func(int) float64 { return 6 * tau })
		in.Target = 8
		f := run(t, params, farther(in, 5*time.Minute))
		assert.LessOrEqual(t, f.NodeForecast.Desired, 8, "seed %d", seed)

		young := newFleets(seed).noisyFleet(10, 0.005, func(k int) float64 { return 6*tau + 0.05*tau*float64(max(0, k-330)) })
		young.Target = 8
		f = run(t, params, farther(young, 10*time.Minute))
		assert.LessOrEqual(t, f.NodeForecast.Desired, 12, "seed %d: 30 s of a rise may go on for 38 s more", seed)
		assert.Greater(t, f.NodeForecast.WindowNeeded, f.Window, "it says that the window is too short for this")
	}
}

func TestFartherHasBounds(t *testing.T) {
	params := adaptive()
	params.Max = 9
	rising := newFleets(1).noisyFleet(8, 0.005, func(k int) float64 { return tau * (4 + 0.02*float64(k)) })
	rising.Target = 8
	assert.Equal(t, 9, run(t, params, farther(rising, 3*time.Minute)).NodeForecast.Desired)
	falling := newFleets(1).noisyFleet(8, 0.005, func(k int) float64 { return tau * max(0, 8-0.02*float64(k)) })
	falling.Target, params.Min = 8, 3
	assert.GreaterOrEqual(t, run(t, params, farther(falling, 5*time.Minute)).NodeForecast.Desired, 3)

	whole := params
	whole.Whole, whole.Min, whole.Activation = true, 0, 1
	calm := at(360_000)
	for k := range 361 {
		calm.Total = append(calm.Total, pipeline.Sample{T: int64(k) * 1000, V: 0.2})
	}
	assert.Zero(t, run(t, whole, farther(calm, time.Minute)).NodeForecast.Desired, "idle")
	whole.Activation = 0
	assert.Equal(t, 1, run(t, whole, farther(calm, time.Minute)).NodeForecast.Desired)
}
