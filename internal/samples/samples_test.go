package samples

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// TestSeriesAgainstAMap compares a series with a map of the same samples after random additions and trims.
func TestSeriesAgainstAMap(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for range 200 {
		var s Series
		want := map[int64]float64{}
		for range 300 {
			x := pipeline.Sample{T: r.Int64N(200), V: r.Float64()}
			s.Add(x)
			want[x.T] = x.V
		}
		require.Len(t, s, len(want), "seed %d", seed)
		for i, x := range s {
			assert.InDelta(t, want[x.T], x.V, 0, "seed %d", seed)
			assert.True(t, i == 0 || s[i-1].T < x.T, "seed %d: not in order", seed)
			assert.Equal(t, i, s.From(x.T), "seed %d", seed)
		}
		at := r.Int64N(200)
		kept := slices.Clone(s[max(0, s.From(at)-1):])
		after := s.CountSince(at)
		assert.Len(t, s.Before(at), len(s)-after, "seed %d", seed)
		s.Trim(at)
		assert.Equal(t, after, s.CountSince(at), "seed %d: samples in the window are lost", seed)
		assert.LessOrEqual(t, len(s), len(kept)+minTrim, "seed %d: too many are kept", seed)
		assert.Equal(t, kept, s[len(s)-len(kept):], "seed %d", seed)
	}
}

func TestSeriesOfNothing(t *testing.T) {
	var s Series
	s.Trim(5)
	assert.Zero(t, s.From(5))
	assert.Zero(t, s.CountSince(5))
}

func TestMedian(t *testing.T) {
	assert.InDelta(t, 2, Median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, Median([]float64{4, 1, 3, 2}), 0)
	assert.InDelta(t, math.MaxFloat64, Median([]float64{math.MaxFloat64, math.MaxFloat64}), 0, "the sum would overflow")
}
