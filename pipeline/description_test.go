package pipeline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// A load that is level between jumps is known better than by any mean of its own: long ones are
// wrong after a jump, short ones are noise. A regression over such means alone has 0.90 of the
// error of the best of them.
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
		past := pipeline.NewLearned(&p)
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
