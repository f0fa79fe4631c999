package redistribute_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// curve is w(a) of the paper's section 6.3, a in units of T_R, for κ = 1.
func curve(a float64) float64 { return (math.Exp(a) - 1) / (math.E - 1) }

// Paper, section 6.3, figure 7: the curve for κ = 1 and T_R = 30 s.
func TestWeightCurve(t *testing.T) {
	o := redistribute.Options{Timeout: 30 * time.Second, Shape: 1}
	weight := func(age time.Duration) float64 { return o.Weight(age) }
	require.Zero(t, weight(0))
	require.Equal(t, 1.0, weight(30*time.Second))
	require.Equal(t, 1.0, weight(time.Hour))
	// (√e − 1)/(e − 1) = 1/(√e + 1)
	require.InDelta(t, 1/(math.Sqrt(math.E)+1), weight(15*time.Second), 1e-15)
	for s := 1; s < 30; s++ {
		age := time.Duration(s) * time.Second
		require.InDelta(t, curve(float64(s)/30), weight(age), 1e-15)
		require.Less(t, weight(age), float64(s)/30, "the curve starts slowly: it is below the straight line")
		require.Greater(t, weight(age+time.Second)-weight(age), weight(age)-weight(age-time.Second), "and accelerates")
	}
	o.Shape = 0
	require.InDelta(t, 0.5, weight(15*time.Second), 1e-15, "a straight line")
	o.Shape = 1e-12
	require.InDelta(t, 0.5, weight(15*time.Second), 1e-9, "next to a straight line")
	o.Shape = -1
	require.InDelta(t, 1-curve(0.5), weight(15*time.Second), 1e-15, "the mirrored curve")
	o.Timeout = 0
	require.Equal(t, 1.0, weight(0), "no redistribution")
}

// Paper, section 6.3: weights are within [0, 1] and grow with age, whatever the shape.
func TestWeightsGrow(t *testing.T) {
	r := seriestest.NewRandom(1)
	for range 2000 {
		o := redistribute.Options{Timeout: 30 * time.Second, Shape: 1}
		o.Shape = seriestest.Pick(r, r.Between(-50, 50), r.Between(-2, 2), r.Between(-1e-6, 1e-6), 0)
		o.Timeout = r.Millis(0, 200_000)
		var ages []time.Duration
		for range 50 {
			ages = append(ages, r.Millis(0, 1+2*o.Timeout.Milliseconds()))
		}
		slices.Sort(ages)
		previous := 0.0
		for _, age := range ages {
			w := o.Weight(age)
			require.True(t, 0 <= w && w <= 1, "κ %v, T_R %s: w(%s) = %v", o.Shape, o.Timeout, age, w)
			require.GreaterOrEqual(t, w, previous-1e-15, "κ %v, T_R %s: at %s", o.Shape, o.Timeout, age)
			previous = w
		}
		require.Equal(t, 1.0, o.Weight(o.Timeout))
	}
}
