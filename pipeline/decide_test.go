package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Paper, section 8.4, figures 18 and 19: with N = 7 and τ = 0.75 both cases come to 0.80 an instance at the horizon; in
// case A most of it is trend, which is discounted, in case B it is load that is there.
func TestAsymmetricRisk(t *testing.T) {
	a := run(t, following(), trending(7, 3.34, 2.26))
	b := run(t, following(), trending(7, 5.23, 0.37))
	for _, f := range []pipeline.Forecast{a, b} {
		require.InDelta(t, 0.80, f.LoadPredicted, 1e-12)
		require.InDelta(t, 8, math.Ceil(f.Total/tau), 0, "a naive scale-up would add the eighth instance in both")
	}
	require.InDelta(t, 0.68, (a.Total-a.Level)/a.Level, 0.005)
	require.InDelta(t, 0.07, (b.Total-b.Level)/b.Level, 0.005)

	require.InDelta(t, 3.34+2.26*2/(2+2.26/3.34), a.PlannedLoad, 1e-12)
	require.InDelta(t, 5.23+0.37*2/(2+0.37/5.23), b.PlannedLoad, 1e-12)
	require.InDelta(t, a.PlannedLoad/tau, a.Required, 1e-12)
	require.InDelta(t, a.PlannedLoad, a.ServedLoad, 1e-12)

	require.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: 7, Action: pipeline.Hold,
		Reason: pipeline.NoNeed}, a.Decision)
	require.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: 8, Action: pipeline.ScaleUp,
		Reason: pipeline.AboveThreshold}, b.Decision)

	p := following()
	p.RiskFactor = 50 // a user to whom too few instances are far worse than too many
	require.Equal(t, 8, run(t, p, trending(7, 3.34, 2.26)).Decision.Desired)
}

// Paper, section 8.4, figure 20: an instance of which less than a tenth is needed is not added, unless there is
// overload already.
func TestTrimSpillover(t *testing.T) {
	for name, c := range map[string]struct {
		level, required, spillover float64
		want                       int
	}{
		"a sliver":                         {5.20, 7.09, 0.1, 7},
		"more than a sliver":               {5.20, 7.11, 0.1, 8},
		"a sliver, overloaded":             {5.26, 7.09, 0.1, 8},
		"a sliver, trimming off":           {5.20, 7.09, 0, 8},
		"a sliver of the ninth":            {5.20, 8.05, 0.1, 8},
		"exactly eight, to rounding":       {5.20, 8 + 1e-10, 0, 8},
		"a little over eight, not trimmed": {5.20, 8 + 1e-8, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			p := following()
			p.Spillover = c.spillover
			f := run(t, p, trending(7, c.level, growthFor(c.required*tau-c.level, c.level, p.RiskFactor)))
			require.InDelta(t, c.required, f.Required, 1e-12)
			require.Equal(t, c.want, f.Decision.Desired)
		})
	}
}

// Paper, section 8.2: γ_0 = tan 10°.
func TestTrendDirection(t *testing.T) {
	gamma := math.Tan(10 * math.Pi / 180)
	require.InDelta(t, 0.176, gamma, 0.001)
	for name, c := range map[string]struct {
		level, trend float64
		want         pipeline.Direction
	}{
		"just steep enough":       {2, 2 * gamma * (1 + 1e-9), pipeline.Rising},
		"just not steep enough":   {2, 2 * gamma * (1 - 1e-9), pipeline.Steady},
		"flat":                    {2, 0, pipeline.Steady},
		"just not falling":        {2, -2 * gamma * (1 - 1e-9), pipeline.Steady},
		"just falling":            {2, -2 * gamma * (1 + 1e-9), pipeline.Falling},
		"the same at any load":    {2000, 2000 * gamma * (1 + 1e-9), pipeline.Rising},
		"no load":                 {0, -1, pipeline.Steady},
		"less than no load":       {-1, 1, pipeline.Steady},
		"hardly any load, rising": {1e-6, 1e-6, pipeline.Rising},
	} {
		t.Run(name, func(t *testing.T) {
			f := run(t, following(), trending(3, c.level, 20*c.trend))
			require.Equal(t, c.want, f.Decision.Direction)
		})
	}
}

// Paper, section 8.3, and this project's additional rules: which way to scale, and when not to.
func TestScalingDirection(t *testing.T) {
	const rose = 1000 - 30_000
	for name, c := range map[string]struct {
		n             int
		level, growth float64
		target        int
		rose          int64
		want          pipeline.Decision
	}{
		"fits": {4, 2.5, 0, 4, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 4, Action: pipeline.Hold, Reason: pipeline.NoNeed}},
		"far more than fits": {4, 6, 0, 4, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 8, Action: pipeline.ScaleUp,
				Reason: pipeline.AboveThreshold}},
		"overloaded, falling too slowly": {4, 4, -0.5, 4, pipeline.Never, // 3.5/4 > τ
			pipeline.Decision{Direction: pipeline.Steady, Desired: 5, Action: pipeline.ScaleUp,
				Reason: pipeline.AboveThreshold}},
		"overloaded, falling fast enough": {4, 4, -2, 4, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 4, Action: pipeline.Hold, Reason: pipeline.StillOverloaded}},
		"rising steeply, but enough for it": {7, 0.5, 2.5, 7, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Rising, Desired: 7, Action: pipeline.Hold, Reason: pipeline.TrendRising}},
		"rising steeply, and not enough": {4, 2, 8, 4, pipeline.Never, // 2 + 8·2/(2+4) = 4.67
			pipeline.Decision{Direction: pipeline.Rising, Desired: 7, Action: pipeline.ScaleUp,
				Reason: pipeline.AboveThreshold}},
		"idle": {7, 1, 0, 7, pipeline.Never, // 1·1.3/0.75 = 1.73
			pipeline.Decision{Direction: pipeline.Steady, Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}},
		"falling steeply": {7, 2, -10, 7, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Falling, Desired: 4, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}},
		"asked for and not there": {4, 1, 0, 7, rose,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 7, Action: pipeline.Hold, Reason: pipeline.ScaleUpPending}},
		"asked for long ago": {4, 1, 0, 7, 1000 - 60_000,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}},
		"asked for just not long ago": {4, 1, 0, 7, 1001 - 60_000,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 7, Action: pipeline.Hold, Reason: pipeline.ScaleUpPending}},
		"requested at an unknown time": {4, 1, 0, 7, pipeline.Never,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}},
		"asked for and there": {7, 1, 0, 7, rose,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 2, Action: pipeline.ScaleDown, Reason: pipeline.Headroom}},
		"the requested count is enough": {4, 3.5, 0, 7, rose, // P_now is over the threshold
			pipeline.Decision{Direction: pipeline.Steady, Desired: 7, Action: pipeline.Hold, Reason: pipeline.StillOverloaded}},
		"the requested count is not enough": {4, 5.6, 0, 7, rose,
			pipeline.Decision{Direction: pipeline.Steady, Desired: 8, Action: pipeline.ScaleUp,
				Reason: pipeline.AboveThreshold}},
	} {
		t.Run(name, func(t *testing.T) {
			in := trending(c.n, c.level, c.growth)
			in.Target, in.TargetRose = c.target, c.rose
			require.Equal(t, c.want, run(t, following(), in).Decision)
		})
	}
}

// Exactly at the threshold nothing is to be gained either way.
func TestAtTheThreshold(t *testing.T) {
	p := following()
	p.Threshold, p.ScaleDownMargin = 0.5, 0
	in := at(1000, pipeline.Instance{ID: "a", Samples: everySecond(0, 0.5, 0.5)},
		pipeline.Instance{ID: "b", Samples: everySecond(0, 0.5, 0.5)})
	f := run(t, p, in)
	require.Equal(t, 0.5, f.LoadPredicted)
	require.Equal(t, pipeline.Decision{Direction: pipeline.Steady, Desired: 2, Action: pipeline.Hold,
		Reason: pipeline.NoNeed}, f.Decision)

	in.Target = 3 // P_H is below, P_now is not
	require.Equal(t, pipeline.StillOverloaded, run(t, p, in).Decision.Reason)
}

// Paper, section 8.5: after scaling down, the load per instance is below τ by the margin μ.
func TestScaleDown(t *testing.T) {
	for level := 0.05; level < 7*tau/1.3; level += 0.05 {
		f := run(t, following(), trending(7, level, 0))
		n := f.Decision.Desired
		require.Less(t, level/float64(n)*1.3, tau+1e-9, "level %v, %d instances", level, n)
		if n > 1 {
			require.GreaterOrEqual(t, level/float64(n-1)*1.3, tau-1e-9, "level %v: %d instances would do", level, n-1)
		}
	}
	// ⌊N(2.1, 0.75/1.3)⌋ + 1 = ⌊3.64⌋ + 1
	require.Equal(t, 4, run(t, following(), trending(7, 2.1, 0)).Decision.Desired)

	// N(A, τ/(1+μ)) is 3 here, and 4 then, whatever the rounding: 3 would leave no room.
	require.Equal(t, 4, run(t, following(), trending(7, 3*tau/1.3, 0)).Decision.Desired)
	require.Equal(t, 4, run(t, following(), trending(7, 3*tau/1.3*(1-1e-12), 0)).Decision.Desired)

	p := following()
	p.Model, p.Threshold = overhead, 0.75
	// (2.4 − 7·0.2)/(0.75/1.3 − 0.2) = 1/0.3769 = 2.65
	require.Equal(t, 3, run(t, p, trending(7, 2.4, 0)).Decision.Desired)
}

// Paper, sections 8.4 and 8.5, safety bounds; where two bounds cross, the lower one holds.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		level, growth           float64
		target, low, high, step int
		want                    int
		reason                  pipeline.Reason
	}{
		"one step up":                       {8, 0, 4, 1, 20, 4, 8, pipeline.AboveThreshold},
		"without a step limit":              {8, 0, 4, 1, 20, 0, 11, pipeline.AboveThreshold},
		"to the maximum":                    {8, 0, 4, 1, 6, 4, 6, pipeline.AboveThreshold},
		"at the maximum":                    {8, 0, 6, 1, 6, 4, 6, pipeline.AtMaximum},
		"above the maximum, more needed":    {8, 0, 8, 1, 6, 4, 8, pipeline.AtMaximum},
		"at the maximum, damped it does":    {3, 2, 6, 1, 6, 4, 6, pipeline.NoNeed}, // 5/6 > τ, but 3+2·2/2.67 = 4.5 = 6·τ
		"above the maximum, fewer do":       {2, 0, 8, 1, 6, 4, 4, pipeline.Headroom},
		"up never reduces":                  {1, 4, 7, 1, 20, 4, 7, pipeline.TrendRising},
		"to the minimum":                    {0.1, 0, 7, 3, 20, 4, 3, pipeline.Headroom},
		"at the minimum":                    {0.1, 0, 3, 3, 20, 4, 3, pipeline.NoNeed},
		"below the minimum":                 {0.1, 0, 2, 3, 20, 4, 3, pipeline.BelowMinimum},
		"far below the minimum":             {0.1, 0, 2, 9, 20, 4, 9, pipeline.BelowMinimum},
		"down never adds":                   {2, 0, 3, 1, 20, 4, 3, pipeline.NoNeed},
		"no load at all":                    {0, 0, 3, 1, 20, 4, 1, pipeline.Headroom},
		"a target of nothing counts as one": {0.1, 0, -1, 1, 20, 4, 1, pipeline.NoNeed},
	} {
		t.Run(name, func(t *testing.T) {
			p := following()
			p.Min, p.Max, p.MaxStep = c.low, c.high, c.step
			in := trending(4, c.level, c.growth)
			in.Target = c.target
			d := run(t, p, in).Decision
			require.Equal(t, c.want, d.Desired)
			require.Equal(t, c.reason, d.Reason)
		})
	}
}

// P_now follows from the weights of the instances that carry the load, P_H from the target.
func TestLoadPerInstance(t *testing.T) {
	in := at(1000,
		pipeline.Instance{ID: "a", Start: -100_000, Samples: everySecond(0, 0.9, 0.9)},
		pipeline.Instance{ID: "b", Start: -14_000, Samples: everySecond(0, 0, 0)})
	in.Target = 6
	f := run(t, following(), in)
	half := 1 + 1/(math.Sqrt(math.E)+1)
	require.InDelta(t, half, f.Weight, 1e-12)
	require.InDelta(t, 0.9/half, f.LoadNow, 1e-12)
	require.InDelta(t, 0.9/6, f.LoadPredicted, 1e-12)
	require.Equal(t, 6, f.Target)

	in.Target = 0
	require.Equal(t, 2, run(t, following(), in).Target, "by default those active")
}

// Paper, section 1.4: of several metrics the one that wants most decides.
func TestLargest(t *testing.T) {
	require.Equal(t, -1, pipeline.Largest(nil))
	var decisions []pipeline.Decision
	for _, level := range []float64{2.1, 5.6, 1, 5.6} {
		decisions = append(decisions, run(t, following(), trending(7, level, 0)).Decision)
	}
	require.Equal(t, []int{4, 8, 2, 8},
		[]int{decisions[0].Desired, decisions[1].Desired, decisions[2].Desired, decisions[3].Desired})
	require.Equal(t, 1, pipeline.Largest(decisions), "the first of equals")
	require.Equal(t, 0, pipeline.Largest(decisions[2:3]))
}

// A minute is long for a pod and nothing for a machine.
func TestPendingExpiryOff(t *testing.T) {
	p := following()
	p.PendingExpiry = 0
	in := trending(4, 1, 0)
	in.Target, in.TargetRose = 7, in.Now
	require.Equal(t, pipeline.ScaleDown, run(t, p, in).Decision.Action)
	in.TargetRose = in.Now + 5000 // by another clock
	require.Equal(t, pipeline.ScaleDown, run(t, p, in).Decision.Action)
	p.PendingExpiry = time.Second
	require.Equal(t, pipeline.ScaleUpPending, run(t, p, in).Decision.Reason)
}
