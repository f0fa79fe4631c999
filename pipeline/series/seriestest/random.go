// Package seriestest makes loads for tests of the pipeline and its stages.
package seriestest

import (
	"math/rand/v2"
	"time"
)

// Random draws from one seed, so that a test can be repeated.
type Random struct{ *rand.Rand }

// NewRandom returns the draws of a seed.
func NewRandom(seed uint64) Random { return Random{rand.New(rand.NewPCG(seed, 2026))} }

// Chance returns true with probability p.
func (r Random) Chance(p float64) bool { return r.Float64() < p }

// Between returns a number from low to high.
func (r Random) Between(low, high float64) float64 { return low + (high-low)*r.Float64() }

// Span returns an integer from low to high, both included.
func (r Random) Span(low, high int64) int64 { return low + r.Int64N(high-low+1) }

// Millis returns a duration from low to high milliseconds.
func (r Random) Millis(low, high int64) time.Duration {
	return time.Duration(r.Span(low, high)) * time.Millisecond
}

// Counts draws from a Poisson distribution, by the time between events.
func (r Random) Counts(mean float64) float64 {
	n, t := 0, r.ExpFloat64()
	for ; t < mean; t += r.ExpFloat64() {
		n++
	}
	return float64(n)
}

// Read returns n ticks of a load that is read every spacing ticks, with straight lines in between.
func (r Random) Read(n, spacing int, draw func() float64) []float64 {
	values, last, next := make([]float64, n), 0.0, draw()
	for k := range values {
		if k%spacing == 0 {
			last, next = next, draw()
		}
		part := float64(k%spacing) / float64(spacing)
		values[k] = last*(1-part) + next*part
	}
	return values
}

// Pick returns one of the values.
func Pick[T any](r interface{ IntN(n int) int }, of ...T) T { return of[r.IntN(len(of))] }
