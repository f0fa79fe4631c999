package samples

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// TestPackedAgainstASeries does the same to both, with samples in any order.
func TestPackedAgainstASeries(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	for range 300 {
		var s Series
		var p Packed
		begin := r.Int64N(1 << 41)
		for range 200 {
			x := pipeline.Sample{T: begin + r.Int64N(300)*r.Int64N(1000),
				V: r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))}
			s.Add(x)
			p.Add(x)
			if r.IntN(10) == 0 {
				at := begin + r.Int64N(300_000)
				s.Trim(at)
				p.Trim(at)
			}
			require.Equal(t, s, Series(p.AppendTo(nil)), "seed %d", seed)
			require.Equal(t, len(s), p.Len(), "seed %d", seed)
			for _, x := range s {
				require.GreaterOrEqual(t, p.Highest(), x.V, "seed %d", seed)
			}
			at := begin + r.Int64N(300_000)
			require.Equal(t, s.CountSince(at), p.CountSince(at), "seed %d", seed)
		}
	}
}

func TestPackedOfNothing(t *testing.T) {
	var p Packed
	p.Trim(5)
	assert.Zero(t, p.Len())
	assert.Zero(t, p.CountSince(5))
	assert.Empty(t, p.AppendTo(nil))
}

func TestPackedSamplesFarApart(t *testing.T) {
	var p Packed
	p.Add(pipeline.Sample{T: 10_000_000_000, V: 1})
	p.Add(pipeline.Sample{T: 10_000_000_000 - furthestApart, V: 2})
	p.Add(pipeline.Sample{T: 10_000_000_000 - 2*furthestApart - 1, V: 3})
	assert.Equal(t, []pipeline.Sample{{T: 10_000_000_000 - furthestApart, V: 2}, {T: 10_000_000_000, V: 1}},
		p.AppendTo(nil))
	p.Add(pipeline.Sample{T: 10_000_000_000 + furthestApart, V: 4})
	assert.Equal(t, 3, p.Len())
	p.Add(pipeline.Sample{T: 10_000_000_001 + 2*furthestApart, V: 5})
	assert.Equal(t, []pipeline.Sample{{T: 10_000_000_001 + 2*furthestApart, V: 5}}, p.AppendTo(nil))
}

// TestPackedIsSmaller is what it is for: a window of five minutes at a sample a second.
func TestPackedIsSmaller(t *testing.T) {
	var s Series
	var p Packed
	for k := range int64(1000) {
		x := pipeline.Sample{T: k * 1000, V: float64(k)}
		s.Add(x)
		p.Add(x)
		s.Trim((k - 300) * 1000)
		p.Trim((k - 300) * 1000)
	}
	assert.Less(t, 12*cap(p.samples), 16*cap(s)*3/4)
	assert.LessOrEqual(t, cap(p.samples)*8, 9*(300+minTrim+2))
}

func TestDropOldestKeepsTheNewest(t *testing.T) {
	for _, n := range []int{0, 1, 3, 9, 10, 50} {
		var p Packed
		for k := range int64(10) {
			p.Add(pipeline.Sample{T: 1000 + k*k, V: float64(k)})
		}
		all := p.AppendTo(nil)
		p.DropOldest(n)
		assert.Equal(t, all[min(n, 9):], p.AppendTo(nil), n)
		p.Add(pipeline.Sample{T: 1000, V: -1})
		assert.Equal(t, int64(1000), p.AppendTo(nil)[0].T, n)
	}
	var empty Packed
	empty.DropOldest(3)
	assert.Zero(t, empty.Len())
}
