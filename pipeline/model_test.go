package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

var (
	linear    = pipeline.Model{Kind: pipeline.Linear}
	overhead  = pipeline.Model{Kind: pipeline.Overhead, Baseline: 0.2}
	quadratic = pipeline.Model{Kind: pipeline.Quadratic}
)

// Paper, sections 11.1 and 11.2: A, P and N of the three models.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		model                            pipeline.Model
		aggregate, perInstance, required float64 // of {0.5, 0.9}; of that over 2 instances; of that at 0.7
	}{
		{pipeline.Model{}, 1.4, 0.7, 2},
		{linear, 1.4, 0.7, 2},
		{overhead, 1.0, 0.7, 2},                           // 0.3 + 0.7; 1.0/2 + 0.2; 1.0/(0.7 − 0.2)
		{quadratic, 1.06, 0.728010988928052, 1.06 / 0.49}, // 0.25 + 0.81; √0.53
	} {
		t.Run(string(c.model.Kind), func(t *testing.T) {
			aggregate := c.model.Load(0.5) + c.model.Load(0.9)
			require.InDelta(t, c.aggregate, aggregate, 1e-12)
			require.InDelta(t, c.perInstance, c.model.PerInstance(aggregate, 2), 1e-12)
			require.InDelta(t, c.required, c.model.Required(aggregate, 0.7), 1e-12)
			for _, n := range []float64{0.3, 1, 7} { // as many as are required read the threshold
				s := n * c.model.Load(0.7)
				require.InDelta(t, n, c.model.Required(s, 0.7), 1e-12)
				require.InDelta(t, 0.7, c.model.PerInstance(s, n), 1e-12)
			}
		})
	}
	require.Zero(t, quadratic.PerInstance(-1, 2), "a level that dips below the range reads as its bottom")
	require.InDelta(t, 0.1, overhead.PerInstance(-0.2, 2), 1e-12)
}

// Paper, section 11.2: for load with a baseline and for quadratic cost the default model asks for too few instances.
func TestModelsInTheForecast(t *testing.T) {
	in := at(1000,
		pipeline.Instance{ID: "a", Samples: everySecond(0, 0.9, 0.9)},
		pipeline.Instance{ID: "b", Samples: everySecond(0, 0.9, 0.9)})
	desired := map[pipeline.ModelKind]int{}
	for _, m := range []pipeline.Model{linear, overhead, quadratic} {
		p := defaults()
		p.Model, p.Threshold = m, 0.7
		f := run(t, p, in)
		require.InDelta(t, 0.9, f.LoadNow, 1e-12, m.Kind)
		require.InDelta(t, 0.9, f.LoadPredicted, 1e-12, m.Kind)
		require.Equal(t, pipeline.ScaleUp, f.Decision.Action, m.Kind)
		desired[m.Kind] = f.Decision.Desired
	}
	require.Equal(t, 3, desired[pipeline.Linear])    // 1.8/0.7 = 2.57
	require.Equal(t, 3, desired[pipeline.Overhead])  // 1.4/0.5 = 2.8
	require.Equal(t, 4, desired[pipeline.Quadratic]) // 1.62/0.49 = 3.31
}
