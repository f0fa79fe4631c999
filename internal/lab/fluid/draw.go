package fluid

import (
	"math"
	"math/rand/v2"
)

// manyEvents is the number of events, on average, from which a draw of their number is taken from a normal distribution,
// whose skew would be below a sixth.
const manyEvents = 40

// poisson draws the number of events of which there are mean on average.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean >= manyEvents {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	u, p, k := r.Float64(), math.Exp(-mean), 0.0
	for sum := p; u >= sum && p > 0; sum += p {
		k++
		p *= mean / k
	}
	return k
}

// binomial draws how many of n events happen, each with the probability p.
func binomial(r *rand.Rand, n, p float64) float64 {
	switch q := 1 - p; {
	case n <= 0 || p <= 0:
		return 0
	case q <= 0:
		return n
	case p > q:
		return n - binomial(r, n, q)
	case n*p >= manyEvents:
		return min(n, max(0, math.Round(n*p+math.Sqrt(n*p*q)*r.NormFloat64())))
	default:
		return invert(r.Float64(), n, p)
	}
}

// invert returns the least number that a binomial variable exceeds with a probability of at most 1 − u.
func invert(u, n, p float64) float64 {
	odds, k := p/(1-p), 0.0
	at := math.Pow(1-p, n)
	for sum := at; u >= sum && k < n; sum += at {
		k++
		at *= odds * (n - k + 1) / k
	}
	return k
}
