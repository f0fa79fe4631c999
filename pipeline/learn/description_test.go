package learn

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// The noise that a change must exceed is known soon after a gap, and for steps of a minute.
func TestLevelsOfGapsAndRareReadings(t *testing.T) {
	for name, c := range map[string]struct {
		steps, gap int // so many steps ago
		step       float64
		most       float64 // of the mean deviation; that of a single step is 4
	}{
		"no gap":          {steps: 240, step: 5, most: 1},
		"a gap just now":  {steps: 240, gap: 4, step: 5, most: 1},
		"minutes":         {steps: 20, step: 60, most: 2},
		"minutes and gap": {steps: 20, gap: 3, step: 60, most: 2},
	} {
		t.Run(name, func(t *testing.T) {
			off, n := 0.0, 0
			for seed := range uint64(40) {
				r := seriestest.NewRandom(seed)
				means := make([]float64, c.steps)
				for i := range means {
					means[i] = 50 + 5*r.NormFloat64()
				}
				if c.gap > 0 {
					means[len(means)-c.gap] = math.NaN()
				}
				for _, level := range levelsOf(means, c.step) {
					off += math.Abs(level - 50)
					n++
				}
			}
			require.Equal(t, 80, n)
			assert.Less(t, off/float64(n), c.most)
		})
	}
}

// Instances that are not asked for any longer stay for a look more, as an HPA keeps them, unless
// looks are farther apart.
func TestOrderedInstancesAreHeldForALook(t *testing.T) {
	goodEnough := [][2]float64{{2, 3}, {6, 7}, {2, 3}, {2, 3}, {3, 4}, {4, 5}, {1, 2}, {1, 2}}
	assert.Equal(t, []float64{2, 6, 6, 3, 3, 4, 4, 2}, ordered(5_000, goodEnough...))
	assert.Equal(t, []float64{2, 6, 3, 3, 3, 4, 2, 2}, ordered(60_000, goodEnough...))
}

// The requested count is not held through times that are unknown or not learned.
func TestNothingIsHeldThroughGaps(t *testing.T) {
	p := learningParams()
	load := noisy(1, func(int64) float64 { return 5 })
	gaps := map[string]func(past *Learned, from, to int64){
		"not known": func(past *Learned, from, to int64) {
			follow(past, p, from, to, func(int64) float64 { return math.NaN() })
		},
		"not learned": func(past *Learned, from, to int64) {
			for s := from; s < to; s++ {
				past.addUnless((midnight+s)*1000, load(s), p, func(int64) bool { return true })
			}
		},
	}
	for name, gap := range gaps {
		t.Run(name, func(t *testing.T) {
			past := NewLearned(p)
			follow(past, p, 0, 3600, load)
			assert.Positive(t, slices.Min(past.asked()[:5]), "%v", past.asked())
			gap(past, 3600, 3630)
			assert.Zero(t, slices.Max(past.asked()), "%v", past.asked())
		})
	}
}

// Between two horizons that are learned a margin lies on the line between theirs.
func TestMarginsBetweenHorizons(t *testing.T) {
	p := learningParams()
	past := NewLearned(p)
	follow(past, p, 0, int64(2*time.Hour/time.Second), noisy(3, func(s int64) float64 { return 3 + float64(s%600)/200 }))
	near, far := past.marginAt(60), past.marginAt(120)
	require.Greater(t, math.Abs(far-near), 0.1)
	assert.InDelta(t, 0.75*near+0.25*far, past.marginAt(75), 1e-9)
}
