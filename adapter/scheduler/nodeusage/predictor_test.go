package nodeusage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// Pods that are placed at once raise what their node uses once: two minutes later nothing else is expected to follow.
func TestJumpIsNoTrend(t *testing.T) {
	const before, after, within = 6.0, 10.0, 8 // GiB, and steps
	for _, test := range []struct {
		known  int     // samples before it
		noise  float64 // standard deviation
		rising int     // steps that it takes
	}{
		{12, 0, 1}, {12, 0, 4}, {20, 0, 1}, {20, 0.05, 1}, {20, 0.05, 4}, {60, 0, 1}, {60, 0, 4},
		{60, 0.05, 1}, {60, 0.05, 4},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 1))
				p := predictorWith(t, chosen)
				var samples []pipeline.Sample
				for i := range test.known + 60 {
					v := before + (after-before)*between(float64(i), float64(test.known-1),
						float64(test.known-1+test.rising))
					samples = append(samples, sample(int64(i)*15, v+test.noise*r.NormFloat64()))
					u, ok := p.predict(samples[max(0, len(samples)-61):], 0, samples[i].T+8000)
					if !ok || i < test.known {
						continue
					}
					assert.GreaterOrEqual(t, u.Upper, samples[i].V, "what is used already may be used on")
					if ago := i - (test.known - 1 + test.rising); ago >= within {
						assert.Less(t, u.Upper, 11.0, "%d steps after it, seed %d", ago, seed)
					}
				}
			}
		})
	}
}

// What goes on rising is expected to go on, by what is rather known than feared.
func TestGrowthIsNoJump(t *testing.T) {
	p := predictorWith(t, chosen)
	samples := every(epoch, append(same(30, 4), climbing(31, 4, 0.1)...)...)
	u, ok := p.predict(samples, 0, epoch)
	require.True(t, ok)
	assert.Equal(t, 7.0, u.Now)
	assert.InDelta(t, 7.8, u.Predicted, 0.1)
	assert.Less(t, u.Upper, 8.5)
}

func TestSteady(t *testing.T) {
	const step = 15 * time.Second
	for name, test := range map[string]struct {
		trend   float64
		samples []pipeline.Sample
		want    float64
	}{
		"of a jump":             {3, every(epoch, append(same(6, 1), same(6, 9)...)...), 0},
		"of a growth":           {3, every(epoch, climbing(12, 1, 2)...), 2},
		"less than the samples": {1, every(epoch, climbing(12, 1, 2)...), 1},
		"of the other sign":     {-1, every(epoch, climbing(12, 1, 2)...), 0},
		"of a fall":             {-3, every(epoch, climbing(12, 99, -2)...), -2},
		"of what was long ago":  {3, every(epoch, append(climbing(30, 1, 2), same(11, 59)...)...), 0},
		"of two samples":        {3, every(epoch, 1, 2), 1},
		"of a sample a minute":  {3, []pipeline.Sample{sample(0, 0), sample(60, 4), sample(120, 8)}, 1},
	} {
		p := predictorWith(t, chosen)
		assert.InDelta(t, test.want, p.steady(test.trend, test.samples, step), 1e-12, name)
	}
}

func TestDeviation(t *testing.T) {
	p := predictorWith(t, chosen)
	r := rand.New(rand.NewPCG(1, 1))
	missed := make([]float64, 1000)
	for i := range missed {
		missed[i] = 2 * r.NormFloat64()
	}
	assert.InDelta(t, 2, p.deviation(missed), 0.1, "of what is distributed normally")
	whole := p.deviation(missed[:60])
	missed[3], missed[4], missed[30] = 1e9, -1e9, 1e9
	assert.Less(t, p.deviation(missed[:60]), 1.5*whole, "whatever a few are")
	assert.Zero(t, p.deviation([]float64{0, 0, 0, 7, 0}))
	assert.InDelta(t, 3, p.deviation([]float64{-3}), 1e-12)
	assert.Zero(t, p.deviation(nil))
}
