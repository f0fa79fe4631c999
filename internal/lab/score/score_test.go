package score_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/score"
)

func TestNeedIsTheFewestPodsThatHoldTheThreshold(t *testing.T) {
	need := score.Need{Threshold: 0.7, Min: 4, Max: 20}
	for offered, want := range map[float64]int{0: 4, 2.8: 4, 2.81: 5, 0.7 * 14: 14, 6.4: 10, 14: 20, 100: 20,
		math.Inf(1): 20} {
		assert.Equal(t, want, need.Pods(offered), "%v", offered)
	}
}

func TestFiguresOfPods(t *testing.T) {
	r := &lab.Record{
		From: 60_000,
		Seconds: []lab.Second{
			{Offered: 2.8, Pods: 4, Ready: 4},            // just right
			{Offered: 3.5, Pods: 6, Ready: 4, Target: 5}, // one short, and five pods would do
			{Offered: 4.2, Pods: 6, Ready: 4, Target: 5}, // saturated, and five pods would be too few
			{Offered: 1, Pods: 7, Ready: 7},              // three spare
			{Offered: 0, Pods: 4, Ready: 0},              // none is ready, none is needed but for the minimum
			{Offered: 0.1, Pods: 4, Ready: 0},            // none is ready under load
		},
		Changes: []lab.Change{
			{T: 60_000, From: 4, To: 6},
			{T: 360_000, From: 6, To: 5}, // five minutes later
			{T: 660_001, From: 5, To: 6}, // later than that
			{T: 660_002, From: 6, To: 7}, // the same direction
		},
	}
	got := score.OfPods(r, score.Need{Threshold: 0.7, Min: 4, Max: 5})
	assert.Equal(t, 31.0, got.Seconds)
	assert.Equal(t, 4.0, got.UnderSeconds)
	assert.Equal(t, 1.0, got.OverSeconds)
	assert.InDelta(t, (1+1+4+4)/6.0, got.Short(), 1e-12)
	assert.InDelta(t, 3/6.0, got.Spare(), 1e-12)
	assert.InDelta(t, 3/60.0, got.AboveThresholdMinutes, 1e-12)
	assert.InDelta(t, 1/60.0, got.AtMaximumMinutes, 1e-12)
	assert.InDelta(t, 2/60.0, got.TooFewMinutes(), 1e-12)
	assert.InDelta(t, 2/60.0, got.SaturatedMinutes, 1e-12)
	assert.Equal(t, 4.0, got.Actions)
	assert.Equal(t, 1.0, got.Reversals)
}

// Values from tables of Student's t: 12.706, 4.303 and 2.093 for 1, 2 and 19 degrees of freedom.
func TestIntervalsAreStudents(t *testing.T) {
	i := score.IntervalOf([]float64{1, 3})
	assert.InDelta(t, 2, i.Mean, 1e-12)
	assert.InDelta(t, 12.706, i.Half, 5e-4) // the deviation is √2, of a mean of two 1
	i = score.IntervalOf([]float64{1, 2, 3})
	assert.InDelta(t, 4.303/math.Sqrt(3), i.Half, 5e-4)
	assert.InDelta(t, 2, i.Mean, 1e-12)
	assert.False(t, i.Clear())

	var twenty []float64
	for range 10 {
		twenty = append(twenty, 9, 11)
	}
	i = score.IntervalOf(twenty)
	assert.InDelta(t, 10, i.Mean, 1e-12)
	assert.InDelta(t, 2.0930*math.Sqrt(20.0/19/20), i.Half, 5e-5)
	assert.True(t, i.Clear())

	assert.Equal(t, score.Interval{Mean: 5}, score.IntervalOf([]float64{5, 5, 5}))
}

func TestUnknownValuesAreNaN(t *testing.T) {
	assert.True(t, math.IsNaN(score.IntervalOf(nil).Mean))
	assert.True(t, math.IsNaN(score.IntervalOf([]float64{1, math.NaN()}).Mean))
	one := score.IntervalOf([]float64{7})
	assert.Equal(t, 7.0, one.Mean)
	assert.True(t, math.IsNaN(one.Half))
	assert.False(t, one.Clear())
}

// The same multiple with each seed leaves no doubt about it, however much the seeds differ.
func TestRatiosArePaired(t *testing.T) {
	r := score.Ratio([]float64{2, 20, 200}, []float64{1, 10, 100})
	assert.InDelta(t, 2, r.Mean, 1e-12)
	assert.InDelta(t, 0, r.Half, 1e-12)
	assert.True(t, math.IsNaN(score.Ratio([]float64{1, 2}, []float64{1, 0}).Mean), "not known")
	assert.Panics(t, func() { score.Ratio([]float64{1}, nil) })
}

// What differs from seed to seed in the same way for both does not widen the interval of their difference.
func TestDifferencesArePaired(t *testing.T) {
	d := score.Difference([]float64{1, 12, 103}, []float64{0, 10, 100})
	assert.InDelta(t, 2, d.Mean, 1e-12)
	assert.InDelta(t, 4.303/math.Sqrt(3), d.Half, 5e-4)
	assert.Panics(t, func() { score.Difference([]float64{1}, nil) })
}
