package score_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/lab/score"
)

func TestResampledHoldsTheSumOfOtherBlocks(t *testing.T) {
	// The sum of 100 blocks that are 0 or 2 is 100, and differs by 10 in the standard deviation.
	r := rand.New(rand.NewPCG(7, 7))
	held := 0
	for range 60 {
		blocks := make([]float64, 100)
		for i := range blocks {
			blocks[i] = 2 * float64(r.IntN(2))
		}
		s := score.Resampled(blocks, 1)
		assert.InDelta(t, 2*1.96*10, s.High-s.Low, 6)
		if s.Low <= 100 && 100 <= s.High {
			held++
		}
	}
	assert.InDelta(t, 57, held, 3, "95%% of intervals hold the true sum")
}

func TestResampledNeedsBlocks(t *testing.T) {
	assert.False(t, score.Resampled([]float64{1, 1, 1, 1, 1}, 1).Clear(), "five blocks tell nothing")
	assert.Equal(t, score.Span{Low: 6, High: 6}, score.Resampled([]float64{1, 1, 1, 1, 1, 1}, 1))
	assert.True(t, score.Span{Low: -2, High: -1}.Clear())
	assert.False(t, score.Span{Low: -2, High: 1}.Clear())
	assert.False(t, score.Span{}.Clear())
	some := []float64{1, 2, 3, 4, 5, 60}
	assert.Equal(t, score.Resampled(some, 5), score.Resampled(some, 5))
	varied := make([]float64, 50)
	for i := range varied {
		varied[i] = math.Sqrt(float64(i))
	}
	assert.NotEqual(t, score.Resampled(varied, 5), score.Resampled(varied, 6))
}
