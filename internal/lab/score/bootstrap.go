package score

import (
	"math"
	"slices"

	"github.com/foresail/foresail/internal/lab"
)

const (
	// FewestBlocks are needed for an interval: of fewer nothing can be told of how much they differ.
	FewestBlocks = 6
	draws        = 2000
)

// Span is where a sum lies with the confidence of intervals, 95%; NaN if that is not known.
type Span struct{ Low, High float64 }

// Clear reports whether the span excludes 0.
func (s Span) Clear() bool { return s.Low > 0 || s.High < 0 }

// Resampled returns how far the sum of some blocks would vary if the time had been made up of other
// blocks such as these: by a bootstrap, which draws as many of them at random, again and again. Of
// the same seed and number of blocks it draws the same ones, so that sums of differences are of
// pairs.
func Resampled(blocks []float64, seed uint64) Span {
	n := len(blocks)
	if n < FewestBlocks {
		return Span{math.NaN(), math.NaN()}
	}
	r := lab.Random(seed, "blocks that are drawn")
	sums := make([]float64, draws)
	for i := range sums {
		for range n {
			sums[i] += blocks[r.IntN(n)]
		}
	}
	slices.Sort(sums)
	tail := int(math.Round((1 - confidence) / 2 * draws))
	return Span{sums[tail], sums[draws-1-tail]}
}
