package seriestest

import (
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

// Loads returns the aggregates of ticks, oldest first; none is clipped.
func Loads(values ...float64) []series.Load {
	loads := make([]series.Load, len(values))
	for i, v := range values {
		loads[i].Effective = v
	}
	return loads
}

// Repeat returns n times the same value.
func Repeat(n int, value float64) []float64 { return slices.Repeat([]float64{value}, n) }

// Ramp returns n values from start on, each a step above the previous one.
func Ramp(n int, start, step float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = start + float64(i)*step
	}
	return values
}

// Times returns the values, each multiplied by c.
func Times(c float64, values []float64) []float64 {
	scaled := slices.Clone(values)
	for i := range scaled {
		scaled[i] *= c
	}
	return scaled
}
