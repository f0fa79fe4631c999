package pipeline_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Instances are counted for one of the loads of the forecast and a margin. Holt has no margin.
func TestNeedIsABasisAndAMargin(t *testing.T) {
	bases := map[pipeline.Basis]int{}
	check := func(_ fleets, params pipeline.Params, _ pipeline.Input, f pipeline.Forecast) {
		n := f.Need
		bases[n.Basis]++
		require.Equal(t, params.Model.Load(params.Threshold), n.PerInstance)
		require.GreaterOrEqual(t, n.Margin, 0.0)
		basis := n.Load - n.Margin
		within := 1e-9 * max(1, math.Abs(n.Load))
		switch n.Basis {
		case pipeline.FromForecast:
			require.InDelta(t, f.Total, basis, within)
		case pipeline.FromPresent:
			require.InDelta(t, f.Level, basis, within)
		case pipeline.FromTrend, pipeline.FromRecent:
			require.Greater(t, basis, f.Total)
		case pipeline.FromDamped:
			require.Equal(t, f.PlannedLoad, n.Load)
			require.Equal(t, pipeline.Holt, params.Method)
		}
		if params.Method != pipeline.Adaptive {
			require.Zero(t, n.Margin)
			return
		}
		require.Equal(t, f.PlannedLoad, n.Load)
		require.LessOrEqual(t, n.Min, n.Max)
	}
	forFleetsBy(t, pipeline.Holt, 500, check)
	forFleetsBy(t, pipeline.Adaptive, 500, check)
	for _, basis := range []pipeline.Basis{pipeline.FromForecast, pipeline.FromPresent, pipeline.FromDamped} {
		require.Greater(t, bases[basis], 20, basis)
	}
}
