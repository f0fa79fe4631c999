package pipeline_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/line"
)

// The level of a load is its mean for as long as it has been level, however long ago it was another one.
func TestLevelGoesBackToTheLastChange(t *testing.T) {
	unknown := math.NaN()
	flat := func(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }
	for name, c := range map[string]struct {
		means []float64
		reach int // of them; not each number is tried
	}{
		"one":                 {[]float64{7}, 1},
		"level":               {flat(240, 7), 240},
		"jumped":              {append(flat(200, 4), flat(3, 16)...), 3},
		"jumped a while ago":  {append(flat(100, 4), flat(40, 16)...), 36},
		"fell to nothing":     {append(flat(30, 4), flat(8, 0)...), 8},
		"newest is not known": {append(flat(20, 7), unknown, unknown), 22},
		"some are not known":  {append(append(flat(20, 7), unknown), flat(20, 7)...), 41},
		"zero":                {flat(30, 0), 30},
		"some after zero":     {append(flat(30, 0), 4), 1},
		"noise":               {append(flat(30, 100), 101), 31},
		"no noise":            {append(flat(30, 100), 110), 2},
	} {
		t.Run(name, func(t *testing.T) {
			sum, known := 0.0, 0
			for i := range c.means {
				c.means[i] += float64(i) * 1e-6 // so that the mean tells how many it is of
				if v := c.means[i]; i >= len(c.means)-c.reach && !math.IsNaN(v) {
					sum += v
					known++
				}
			}
			assert.InDelta(t, sum/float64(known), line.LevelOf(c.means, 0.3), 1e-10)
		})
	}
	for _, nothing := range [][]float64{nil, {unknown, unknown}} {
		assert.True(t, math.IsNaN(line.LevelOf(nothing, 0.3)))
	}
	ramp := make([]float64, 240)
	for i := range ramp {
		ramp[i] = 10 + float64(i)
	}
	assert.InDelta(t, 249, line.LevelOf(ramp, 0.3), 15, "a rise is not level for long")
}

// The noise that tells a change is known soon after a load was not known, and of steps of a minute.
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
				r := newFleets(seed)
				means := make([]float64, c.steps)
				for i := range means {
					means[i] = 50 + 5*r.NormFloat64()
				}
				if c.gap > 0 {
					means[len(means)-c.gap] = math.NaN()
				}
				for _, level := range pipeline.Levels(means, c.step) {
					off += math.Abs(level - 50)
					n++
				}
			}
			require.Equal(t, 80, n)
			assert.Less(t, off/float64(n), c.most)
		})
	}
}

// A load that is level between jumps is known better than by any mean of its own: long ones are wrong after a jump, short ones are noise.
// A regression over such means alone has 0.90 of the error of the best of them.
func TestALevelLoadIsKnownByALongMean(t *testing.T) {
	p := learningParams()
	spans := []int64{15, 60, 300}
	ours, means := 0.0, make([]float64, len(spans))
	for seed := uint64(5); seed < 8; seed++ {
		load := noisy(seed, bursts(seed, 1500))
		mean := func(from, to int64) (mean float64) {
			for k := from; k < to; k++ {
				mean += load(k) / float64(to-from)
			}
			return mean
		}
		past := pipeline.NewPast(&p)
		follow(past, p, 0, ofDay, load)
		for s := ofDay; s < ofDay+4*3600; s += 15 {
			follow(past, p, s-15, s, load)
			came := mean(s+30, s+50)
			ours += math.Abs(foretell(t, p, past, s, load).Total - came)
			for i, n := range spans {
				means[i] += math.Abs(mean(s-n, s) - came)
			}
		}
	}
	assert.Less(t, ours, 0.87*slices.Min(means), "errors: %v, of means %v", ours, means)
}

// Instances that are not asked for any longer stay for a look more, as an HPA keeps them, unless looks are farther apart.
func TestOrderedInstancesAreHeldForALook(t *testing.T) {
	goodEnough := [][2]float64{{2, 3}, {6, 7}, {2, 3}, {2, 3}, {3, 4}, {4, 5}, {1, 2}, {1, 2}}
	assert.Equal(t, []float64{2, 6, 6, 3, 3, 4, 4, 2}, pipeline.Ordered(5_000, goodEnough...))
	assert.Equal(t, []float64{2, 6, 3, 3, 3, 4, 2, 2}, pipeline.Ordered(60_000, goodEnough...))
}

// What was asked for is not held through times of which nothing is known or learned.
func TestNothingIsHeldThroughGaps(t *testing.T) {
	p := learningParams()
	load := noisy(1, func(int64) float64 { return 5 })
	gaps := map[string]func(past *pipeline.Past, from, to int64){
		"not known": func(past *pipeline.Past, from, to int64) {
			follow(past, p, from, to, func(int64) float64 { return math.NaN() })
		},
		"not learned": func(past *pipeline.Past, from, to int64) {
			var m pipeline.Memory
			for s := from; s < to; s++ {
				past.AddUnless((midnight+s)*1000, load(s), &m, &p, func(int64) bool { return true })
			}
		},
	}
	for name, gap := range gaps {
		t.Run(name, func(t *testing.T) {
			past := pipeline.NewPast(&p)
			follow(past, p, 0, 3600, load)
			assert.Positive(t, slices.Min(past.Asked()[:5]), "%v", past.Asked())
			gap(past, 3600, 3630)
			assert.Zero(t, slices.Max(past.Asked()), "%v", past.Asked())
		})
	}
}

// Between two horizons that are learned a margin lies on the line between theirs.
func TestMarginsBetweenHorizons(t *testing.T) {
	p := learningParams()
	past := pipeline.NewPast(&p)
	follow(past, p, 0, int64(2*time.Hour/time.Second), noisy(3, func(s int64) float64 { return 3 + float64(s%600)/200 }))
	near, far := past.MarginAt(60), past.MarginAt(120)
	require.Greater(t, math.Abs(far-near), 0.1)
	assert.InDelta(t, 0.75*near+0.25*far, past.MarginAt(75), 1e-9)
}
