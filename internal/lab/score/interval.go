package score

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// confidence is the share of intervals that hold the true mean.
const confidence = 0.95

// Interval is a mean, and how far the true one may be from it.
type Interval struct {
	Mean float64
	Half float64 // half the width of the 95% interval; NaN where one value alone is known
}

// IntervalOf returns the mean of values, one for each seed, with its interval by Student's t.
// Without values, or where one is not known (NaN), the mean is not known either.
func IntervalOf(values []float64) Interval {
	n := float64(len(values))
	if n == 0 {
		return Interval{Mean: math.NaN(), Half: math.NaN()}
	}
	if n == 1 {
		return Interval{Mean: values[0], Half: math.NaN()}
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + confidence) / 2)
	return Interval{Mean: mean, Half: t * deviation / math.Sqrt(n)}
}

// Difference returns the interval of how much more a is than b, seed by seed. They must be as long
// as each other and of the same seeds in the same order.
func Difference(a, b []float64) Interval {
	if len(a) != len(b) {
		panic(fmt.Sprintf("score: %d and %d values make no pairs", len(a), len(b)))
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	return IntervalOf(differences)
}

// Ratio returns the interval of how many times b a is, seed by seed, on the terms of [Difference].
// It is not known where b is 0.
func Ratio(a, b []float64) Interval {
	if len(a) != len(b) {
		panic(fmt.Sprintf("score: %d and %d values make no pairs", len(a), len(b)))
	}
	ratios := make([]float64, len(a))
	for i := range a {
		if ratios[i] = a[i] / b[i]; b[i] == 0 {
			ratios[i] = math.NaN()
		}
	}
	return IntervalOf(ratios)
}

// Clear reports whether the interval excludes 0.
func (i Interval) Clear() bool { return math.Abs(i.Mean) > i.Half }
