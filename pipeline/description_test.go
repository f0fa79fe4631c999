package pipeline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// The level of a load is its mean for as long as it has been level, however long ago it was another one.
func TestLevelGoesBackToTheLastChange(t *testing.T) {
	unknown := math.NaN()
	flat := func(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }
	for name, c := range map[string]struct {
		means []float64
		want  float64
	}{
		"one":                    {[]float64{7}, 7},
		"level":                  {flat(240, 7), 7},
		"even":                   {slices.Repeat([]float64{6, 8}, 120), 7},
		"jumped":                 {append(flat(200, 4), flat(3, 16)...), 16},
		"jumped a while ago":     {append(flat(100, 4), slices.Repeat([]float64{15, 17}, 20)...), 16},
		"newest is not known":    {append(flat(20, 7), unknown, unknown), 7},
		"some are not known":     {append(append(flat(20, 7), unknown), flat(20, 7)...), 7},
		"none is known":          {[]float64{unknown, unknown}, unknown},
		"nothing":                {nil, unknown},
		"zero":                   {flat(30, 0), 0},
		"zero after some":        {append(flat(30, 4), flat(8, 0)...), 0},
		"some after zero":        {append(flat(30, 0), 4), 4},
		"what fits is no change": {append(flat(30, 100), 104), (30*100 + 104) / 31.},
	} {
		t.Run(name, func(t *testing.T) {
			got := pipeline.LevelOf(c.means, 0.3)
			if math.IsNaN(c.want) {
				assert.True(t, math.IsNaN(got), got)
				return
			}
			assert.InDelta(t, c.want, got, 0.1*c.want)
		})
	}
	ramp := make([]float64, 240)
	for i := range ramp {
		ramp[i] = 10 + float64(i)
	}
	assert.InDelta(t, 249, pipeline.LevelOf(ramp, 0.3), 15, "a rise is not level for long")
}

// A load that is level between jumps is known better than by any mean of its own: long ones are wrong after a jump, short ones are noise.
func TestALevelLoadIsKnownByALongMean(t *testing.T) {
	p := learningParams()
	rate := bursts(5, 1500)
	load := noisy(5, rate)
	past := pipeline.NewPast(&p)
	follow(past, p, 0, ofDay, load)
	spans := []int64{15, 60, 300}
	ours, means := 0.0, make([]float64, len(spans))
	for s := ofDay; s < ofDay+4*3600; s += 15 {
		follow(past, p, s-15, s, load)
		came := 0.0
		for k := s + 30; k <= s+50; k++ {
			came += load(k) / 21
		}
		ours += math.Abs(foretell(t, p, past, s, load).Total - came)
		for i, n := range spans {
			mean := 0.0
			for k := s - n; k < s; k++ {
				mean += load(k) / float64(n)
			}
			means[i] += math.Abs(mean - came)
		}
	}
	assert.Less(t, ours, 0.95*slices.Min(means), "means of 15, 60 and 300 s: %v", means)
}

// Instances that are not asked for any longer stay for a look more, as an HPA keeps them for half a minute.
func TestOrderedInstancesAreHeldForALook(t *testing.T) {
	assert.Equal(t, []float64{2, 6, 6, 3, 3, 4, 4, 2}, pipeline.Ordered(
		[2]float64{2, 3}, [2]float64{6, 7}, [2]float64{2, 3}, [2]float64{2, 3}, [2]float64{3, 4}, [2]float64{4, 5}, [2]float64{1, 2}, [2]float64{1, 2}))
}
