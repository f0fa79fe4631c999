package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// scaleUp is the scenario of the paper's figures 4 to 6, t1 at 1000: three instances carry 0.9 each when a fourth is
// added. It takes 3.40 − 2.70 = 0.70 at once, while the others shed load only gradually: their sum goes
// 2.70, 2.46, 2.25, 2.10. In the end all four carry 2.72/4 = 0.68.
func scaleUp() []pipeline.Instance {
	stable := everySecond(1000, 2.70/3, 2.70/3, 2.46/3, 2.25/3, 2.10/3, 0.68)
	return []pipeline.Instance{
		{ID: "A", Samples: stable}, {ID: "B", Samples: stable}, {ID: "C", Samples: stable},
		{ID: "D", Start: 1000, Samples: everySecond(2000, 0.70, 0.695, 0.69, 0.685, 0.68)},
	}
}

// figureParams are those of figure 6: κ = 1, T_R = 5 Δt.
func figureParams() pipeline.Params {
	p := defaults()
	p.RedistributionTimeout = 5 * time.Second
	return p
}

// Paper, section 6.1, figure 4: the raw sum rises from 2.70 to 3.40 although the load has not.
func TestFigure4RawSum(t *testing.T) {
	_, s := stages(t, figureParams(), at(6000, scaleUp()...))
	require.InDelta(t, 2.70, s.Raw[0], 1e-12)
	require.InDelta(t, 3.40, s.Raw[1], 1e-12)
	for k := 2; k < 6; k++ {
		require.Less(t, s.Raw[k], s.Raw[k-1], "settling")
	}
	require.InDelta(t, 2.72, s.Raw[5], 1e-12)
}

// Paper, section 6.1, figure 5: without the new instance the sum falls, 2.70, 2.46, 2.25, 2.10, and jumps to 2.72 when
// it is let in. Figure 6: included by weight, it stays between 2.70 and 2.79.
func TestFigures5And6GradualInclusion(t *testing.T) {
	_, excluded := stages(t, figureParams(), at(5000, scaleUp()[:3]...))
	near(t, []float64{2.70, 2.70, 2.46, 2.25, 2.10}, excluded.Effective, "without D")
	_, included := stages(t, figureParams(), at(6000, scaleUp()...))
	require.InDelta(t, 0.62, included.Raw[5]-excluded.Effective[4], 1e-12, "the jump on inclusion")

	for k, effective := range included.Effective {
		rounded := math.Round(effective*100) / 100
		require.True(t, 2.70 <= rounded && rounded <= 2.79, "t%d: %v", k+1, effective)
	}
	top := 2.70 + curve(1.0/5)*0.70 // D's weighted share at t2 is all there is to see of the spike
	near(t, []float64{2.70, top, top, top, 2.10 + 0.685, 2.72}, included.Effective, "effective")
	near(t, []float64{3, 3 + curve(0.2), 3 + curve(0.4), 3 + curve(0.6), 3 + curve(0.8), 4}, included.Weight,
		"N^w, which absorption does not touch")
}

// Paper, section 6.5, figure 8: D is added at t2; at t4 the stable instances drop from 0.88 to 0.70
// at once. The load is 2.70 until then and held there; when it really falls, at t5 and t6, that
// shows at once.
func TestFigure8DropAbsorption(t *testing.T) {
	stable := everySecond(1000, 0.90, 0.89, 0.88, 0.70, 0.62, 0.55)
	_, s := stages(t, figureParams(), at(6000,
		pipeline.Instance{ID: "A", Samples: stable}, pipeline.Instance{ID: "B", Samples: stable},
		pipeline.Instance{ID: "C", Samples: stable},
		pipeline.Instance{ID: "D", Start: 2000, Samples: everySecond(2000, 0.03, 0.06, 0.60, 0.60, 0.54)}))
	near(t, []float64{2.70, 2.70, 2.70, 2.70, 2.46, 2.19}, s.Effective, "effective")
	require.Greater(t, s.Effective[3]-3*0.70, curve(2.0/5)*0.60, "D counts for more than its weighted share")
	near(t, make([]float64, 6), s.Delta, "delta: none while the drop is absorbed")
}

// Paper, section 6.6: a rise after the scale-up shows in full where the stable instances see it.
func TestSpikeAfterScaleUp(t *testing.T) {
	rising := everySecond(1000, 0.9, 0.9, 1.0, 1.1, 1.2, 1.3)
	_, s := stages(t, figureParams(), at(6000,
		pipeline.Instance{ID: "A", Samples: rising}, pipeline.Instance{ID: "B", Samples: rising},
		pipeline.Instance{ID: "C", Samples: rising},
		pipeline.Instance{ID: "D", Start: 1000, Samples: everySecond(2000, 0.5, 0.6, 0.7, 0.8, 0.9)}))
	for k := 2; k < 6; k++ {
		require.GreaterOrEqual(t, s.Effective[k]-s.Effective[k-1], 0.3-1e-12, "t%d", k+1)
	}
	require.InDelta(t, 3*1.3+0.9, s.Effective[5], 1e-12)
}

// Paper, section 6.8: Δ is the growth of the weights times the values of the tick before, the last step included.
func TestRedistributionDelta(t *testing.T) {
	flat := func(from int64, v float64) []pipeline.Sample { return everySecond(from, v, v, v, v, v, v, v, v) }
	_, s := stages(t, figureParams(), at(8000,
		pipeline.Instance{ID: "A", Samples: flat(1000, 0.9)},
		pipeline.Instance{ID: "B", Start: 2000, Samples: flat(2000, 0.5)}))
	want := []float64{0, 0} // B is not there at t1, so nothing of it can grow by t2
	for k := range 5 {
		want = append(want, (curve(float64(k+1)/5)-curve(float64(k)/5))*0.5)
	}
	near(t, append(want, 0), s.Delta, "delta")

	// Each instance grows by its own age.
	_, s = stages(t, figureParams(), at(5000,
		pipeline.Instance{ID: "A", Samples: flat(1000, 0.9)},
		pipeline.Instance{ID: "B", Start: 1000, Samples: flat(1000, 0.5)},
		pipeline.Instance{ID: "C", Start: 2500, Samples: flat(2000, 0.4)}))
	near(t, []float64{0, curve(0.2) * 0.5, (curve(0.4) - curve(0.2)) * 0.5,
		(curve(0.6)-curve(0.4))*0.5 + (curve(0.3)-curve(0.1))*0.4, (curve(0.8)-curve(0.6))*0.5 + (curve(0.5)-curve(0.3))*0.4},
		s.Delta, "delta")
}

// Without another instance to take over load from, an instance counts in full from its start.
func TestInstancesWithoutPredecessor(t *testing.T) {
	samples := everySecond(0, 1, 1, 1, 1, 1, 1, 1)
	for name, c := range map[string]struct {
		instances []pipeline.Instance
		weight    float64 // N^w at the tick 4000
	}{
		"alone":              {[]pipeline.Instance{{ID: "a", Start: 3000}}, 1},
		"all start together": {[]pipeline.Instance{{ID: "a", Start: 3000}, {ID: "b", Start: 3000}}, 2},
		"one is already there": {[]pipeline.Instance{{ID: "a", Start: 2999}, {ID: "b", Start: 3000}},
			1 + curve(1.0/30)},
		"the predecessor ends as it starts": {[]pipeline.Instance{{ID: "a", Start: 0, End: 3000},
			{ID: "b", Start: 3000}}, 1},
		"the predecessor ends just after": {[]pipeline.Instance{{ID: "a", Start: 0, End: 3001}, {ID: "b", Start: 3000}},
			curve(1.0 / 30)},
		"one of two predecessors is there": {[]pipeline.Instance{{ID: "a", Start: 0, End: 2000}, {ID: "b", Start: -5},
			{ID: "c", Start: 3000}}, 1 + curve(1.0/30)},
		"a generation of two follows another": {[]pipeline.Instance{{ID: "a", End: 3000}, {ID: "b", End: 3000},
			{ID: "c", Start: 3000}, {ID: "d", Start: 3000}}, 2},
		"a predecessor that never was active": {[]pipeline.Instance{{ID: "a", Start: 1000, End: 1000},
			{ID: "b", Start: 3000}}, 1},
		"the order of IDs is another": {[]pipeline.Instance{{ID: "z", Start: 0}, {ID: "a", Start: 3000},
			{ID: "b", Start: 3000}}, 1 + 2*curve(1.0/30)},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.instances {
				c.instances[i].Samples = samples
			}
			f := run(t, defaults(), at(4000, c.instances...))
			require.InDelta(t, c.weight, f.Weight, 1e-12)
		})
	}
	silent := pipeline.Instance{ID: "a"} // active, though it has never said a word
	f := run(t, defaults(), at(4000, silent, pipeline.Instance{ID: "b", Start: 3000, Samples: samples}))
	require.InDelta(t, 1+curve(1.0/30), f.Weight, 1e-12)
}

// Paper, section 6.7: the count is of the weights alone. Where a whole generation is new the aggregate is absorbed in
// full and the count is small: the load per instance reads high, which asks for nothing but keeps scale-down away.
func TestGenerationChange(t *testing.T) {
	p := defaults()
	in := at(5000,
		pipeline.Instance{ID: "a", End: 3500, Samples: everySecond(0, 0.6, 0.6, 0.6, 0.6)},
		pipeline.Instance{ID: "b", End: 3500, Samples: everySecond(0, 0.6, 0.6, 0.6, 0.6)},
		pipeline.Instance{ID: "c", Start: 3000, Samples: everySecond(4000, 0.3, 0.3)},
		pipeline.Instance{ID: "d", Start: 3000, Samples: everySecond(4000, 0.3, 0.3)},
		pipeline.Instance{ID: "e", Start: 3000, Samples: everySecond(4000, 0.3, 0.3)},
		pipeline.Instance{ID: "f", Start: 3000, Samples: everySecond(4000, 0.3, 0.3)})
	f, s := stages(t, p, in)
	near(t, []float64{1.2, 1.2, 1.2, 1.2, 1.2, 1.2}, s.Effective, "effective")
	require.InDelta(t, 4*curve(2.0/30), f.Weight, 1e-12)
	require.InDelta(t, 1.2/f.Weight, f.LoadNow, 1e-12)
	require.InDelta(t, 0.3, f.LoadPredicted, 1e-12)
	require.Equal(t, pipeline.StillOverloaded, f.Decision.Reason)
}

// External demand is added after redistribution: aligned like samples, held after its last, nothing before its first.
func TestExternalDemand(t *testing.T) {
	flat := pipeline.Instance{ID: "a", Samples: everySecond(1000, 1, 1, 1, 1, 1, 1)}
	for name, c := range map[string]struct {
		demand  []pipeline.Sample
		dropped int
		want    []float64 // Ā with the demand, at 1000 to 6000
	}{
		"none": {nil, 0, []float64{1, 1, 1, 1, 1, 1}},
		"held": {[]pipeline.Sample{{T: 2000, V: 1}, {T: 3000, V: 2}}, 0, []float64{1, 2, 3, 3, 3, 3}},
		"interpolated, then held": {[]pipeline.Sample{{T: 1500, V: 1}, {T: 3500, V: 3}}, 0,
			[]float64{1, 2.5, 3.5, 4, 4, 4}},
		"one sample, on a tick":     {[]pipeline.Sample{{T: 3000, V: 2}}, 0, []float64{1, 1, 3, 3, 3, 3}},
		"one sample, between ticks": {[]pipeline.Sample{{T: 3001, V: 2}}, 0, []float64{1, 1, 1, 3, 3, 3}},
		"long before the window": {[]pipeline.Sample{{T: -900_000, V: 2}, {T: -800_000, V: 4}}, 0,
			[]float64{5, 5, 5, 5, 5, 5}},
		"into the window": {[]pipeline.Sample{{T: -1000, V: 0}, {T: 1000, V: 2}}, 0, []float64{3, 3, 3, 3, 3, 3}},
		"until after now": {[]pipeline.Sample{{T: 5000, V: 1}, {T: 7000, V: 3}}, 0, []float64{1, 1, 1, 1, 2, 3}},
		"ahead of now":    {[]pipeline.Sample{{T: 6500, V: 3}}, 0, []float64{1, 1, 1, 1, 1, 1}},
		"refused samples": {[]pipeline.Sample{{T: 2000, V: 1}, {T: 3000, V: math.NaN()}, {T: 8000, V: 9}}, 2,
			[]float64{1, 2, 2, 2, 2, 2}},
		"unsorted, the last one wins": {[]pipeline.Sample{{T: 3000, V: 2}, {T: 2000, V: 7}, {T: 2000, V: 1}}, 0,
			[]float64{1, 2, 3, 3, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			in := at(6000, flat)
			in.Demand = c.demand
			f, s := stages(t, defaults(), in)
			near(t, c.want, s.Effective, "effective")
			near(t, []float64{1, 1, 1, 1, 1, 1}, s.Raw, "raw: not the demand's")
			require.Equal(t, c.dropped, f.Dropped)
		})
	}

	in := at(6000, scaleUp()...)
	in.Demand = everySecond(1000, 5, 5, 5, 1, 1, 1)
	_, s := stages(t, figureParams(), in)
	require.Less(t, s.Effective[3], s.Effective[2]-3.9, "demand that is gone is no drop to absorb")
}
