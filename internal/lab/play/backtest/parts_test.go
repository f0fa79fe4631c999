package backtest_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

func TestPartsAreThoseOfTheWhole(t *testing.T) {
	o := options(t)
	o.Trace, o.Scalers, o.Targets, o.Advise = traceOf(t, 120,
		func(minute int) float64 { return 300 - 200*math.Cos(2*math.Pi*float64(minute)/40) }), []string{"keda", "foresail-total"}, nil, false
	o.Seeds = []uint64{1, 2}
	parts := []backtest.Part{{To: time.Hour}, {From: time.Hour, To: 2 * time.Hour}}
	figures, err := backtest.PlayParts(t.Context(), o, parts)
	require.NoError(t, err)
	require.Len(t, figures, 2)
	whole, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	for i, of := range figures {
		require.Len(t, of, 2)
		assert.InDelta(t, whole.Summary[i].PodHours(), of[0].PodHours()+of[1].PodHours(), 0.5)
		assert.InDelta(t, 1, of[1].Hours(), 1e-9)
	}
	again, err := backtest.PlayParts(t.Context(), o, parts[1:])
	require.NoError(t, err)
	assert.Equal(t, figures[0][1], again[0][0], "each part is played in a world of its own")
}

// What is not known is not learned: a load in a gap makes no difference to what is forecast after it.
func TestGapsAreNotLearned(t *testing.T) {
	var points []workload.Point
	at := began
	for i := range 3 * 60 {
		if i == 100 {
			at = at.Add(2 * time.Hour)
		}
		points = append(points, workload.Point{At: at, Rate: 300 - 200*math.Cos(2*math.Pi*float64(i)/40)})
		at = at.Add(time.Minute)
	}
	play := func(widest time.Duration) score.Pods {
		trace, err := workload.NewRecording("shop", points, widest)
		require.NoError(t, err)
		o := options(t)
		o.Trace, o.Scalers = trace, []string{"foresail-total"}
		figures, err := backtest.PlayParts(t.Context(), o,
			[]backtest.Part{{From: 4 * time.Hour, To: 4*time.Hour + 50*time.Minute}})
		require.NoError(t, err)
		return figures[0][0]
	}
	assert.NotEqual(t, play(time.Minute), play(24*time.Hour), "the second one learns the line through the gap")
}
