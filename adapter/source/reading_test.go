package source

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

func TestRate(t *testing.T) {
	for name, c := range map[string]struct {
		readings, want []pipeline.Sample // times in ms
	}{
		"one reading tells nothing": {[]pipeline.Sample{{T: 1000, V: 5}}, nil},
		"increase per second": {[]pipeline.Sample{{T: 1000, V: 5}, {T: 3000, V: 9}},
			[]pipeline.Sample{{T: 3000, V: 2}}},
		"reset": {[]pipeline.Sample{{T: 1000, V: 5}, {T: 2000, V: 3}},
			[]pipeline.Sample{{T: 2000, V: 3}}},
		"late and twice": {[]pipeline.Sample{{T: 2000, V: 5}, {T: 1000, V: 4}, {T: 2000, V: 5}, {T: 3000, V: 6}},
			[]pipeline.Sample{{T: 3000, V: 1}}},
		"clock set back": {
			[]pipeline.Sample{{T: 100_000, V: 5}, {T: 40_000, V: 6}, {T: 41_000, V: 8}, {T: 42_000, V: 11}},
			[]pipeline.Sample{{T: 41_000, V: 2}, {T: 42_000, V: 3}},
		},
		"clock set forward": {
			[]pipeline.Sample{{T: 100_000, V: 5}, {T: 7_300_000, V: 6}, {T: 7_301_000, V: 8}},
			[]pipeline.Sample{{T: 7_301_000, V: 2}},
		},
	} {
		var r Rate
		var got []pipeline.Sample
		for _, x := range c.readings {
			if s, ok := r.Next(x, 0); ok {
				got = append(got, s)
			}
		}
		assert.Equal(t, c.want, got, name)
	}
}

// answered is a reading of a counter of ten a second, which may have been taken up to late before its time (ms).
type answered struct{ t, late, counted int64 }

// TestRateOfAnswersThatWereLate has scrapes that are answered late, and what the counter shows is of the request or of
// the answer.
func TestRateOfAnswersThatWereLate(t *testing.T) {
	for name, c := range map[string][]answered{
		"the value is of the request": {{1000, 1, 1000}, {4970, 2970, 2000}, {5000, 1, 5000}, {6000, 1, 6000}},
		"the value is of the answer":  {{1000, 1, 1000}, {4970, 2970, 4970}, {5000, 1, 5000}, {6000, 1, 6000}},
		"the first one":               {{3970, 2970, 1000}, {4000, 1, 4000}, {5000, 1, 5000}, {6000, 1, 6000}},
		"all of them, by turns": {{2000, 1000, 1000}, {3000, 1000, 3000}, {4000, 1000, 3000}, {5000, 1000, 5000},
			{6000, 1000, 5000}, {8000, 1000, 8000}},
		"two servers that scrape together": {{1000, 0, 1000}, {1011, 0, 4000}, {11_000, 0, 11_000},
			{11_011, 0, 13_900}, {21_000, 0, 21_000}},
	} {
		t.Run(name, func(t *testing.T) {
			var r Rate
			rates := 0
			for _, x := range c {
				s, ok := r.Next(pipeline.Sample{T: x.t, V: float64(x.counted) / 100}, max(500, 2*x.late))
				if ok {
					rates++
					assert.InDelta(t, 10, s.V, 5, x.t)
				}
			}
			assert.Positive(t, rates)
		})
	}
}

func TestRateOfReadingsOfUnknownSpacing(t *testing.T) {
	var r Rate
	for _, x := range []pipeline.Sample{{T: 1000, V: 10}, {T: 1011, V: 40}} {
		_, ok := r.Next(x, 0)
		assert.False(t, ok)
	}
	s, ok := r.Next(pipeline.Sample{T: 2000, V: 20}, 0)
	assert.True(t, ok)
	assert.InDelta(t, 10, s.V, 1e-9)
}

func TestCounterThatFallsBelowZeroHasANegativeRate(t *testing.T) {
	var r Rate
	r.Next(pipeline.Sample{T: 1000, V: 5}, 0)
	s, ok := r.Next(pipeline.Sample{T: 2000, V: -1}, 0)
	assert.True(t, ok)
	assert.Negative(t, s.V, "for the gate to refuse")
}

func TestRateAfterAReset(t *testing.T) {
	var r Rate
	r.Next(pipeline.Sample{T: 1000, V: 5}, 0)
	r.Reset(2000)
	s, ok := r.Next(pipeline.Sample{T: 3000, V: 7}, 0)
	assert.True(t, ok)
	assert.InDelta(t, 7, s.V, 0)
}

// TestRatesOfInexactTimes has scrapes that take up to a time, the counter of which is read at any moment of it. A rate
// is off by half at most.
func TestRatesOfInexactTimes(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 35))
		interval := []float64{100, 1000, 15_000}[random.IntN(3)]
		var r Rate
		at, rates := 0.0, 0
		for range 200 {
			late := random.Float64() * 5
			if random.IntN(5) == 0 {
				late = random.Float64() * 3000
			}
			at += interval*random.Float64() + late // the answer comes after the request
			read := at - late*random.Float64()
			least := max(interval/2, 2*math.Ceil(late))
			if s, ok := r.Next(pipeline.Sample{T: int64(at), V: 1e6 + read/100}, int64(least)); ok {
				rates++
				assert.InDelta(t, 10, s.V, 5.3, "seed %d", seed)
			}
		}
		assert.Positive(t, rates, "seed %d", seed)
	}
}
