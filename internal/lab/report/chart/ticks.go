package chart

import (
	"math"
	"strconv"
)

// maxTicks is how many ticks an axis has at most.
const maxTicks = 6

// Linear returns an axis from 0 to a round number that is at least the largest value.
func Linear(label string, largest float64) Axis {
	return axis(label, largest, []float64{1, 2, 5})
}

// Fitting returns an axis from 0, or, where that would press all values into its upper half, from a
// round number below the least of them.
func Fitting(label string, least, largest float64) Axis {
	if least > largest/2 && !math.IsInf(largest, 0) {
		return Between(label, least, largest)
	}
	return Linear(label, largest)
}

// Seconds returns an axis of time from 0 to a number of seconds.
func Seconds(label string, end float64) Axis {
	a := axis(label, end, []float64{1, 1.5, 3, 6})
	a.Max = end
	for len(a.Ticks) > 1 && a.Ticks[len(a.Ticks)-1].At > end {
		a.Ticks = a.Ticks[:len(a.Ticks)-1]
	}
	return a
}

// axis has the smallest step of the given leading figures that leaves few enough ticks.
func axis(label string, largest float64, figures []float64) Axis {
	if !(largest > 0) || math.IsInf(largest, 0) {
		largest = 1
	}
	power := math.Pow(10, math.Floor(math.Log10(largest/maxTicks)))
	for {
		for _, f := range figures {
			step := f * power
			if steps := math.Ceil(largest/step - 1e-9); steps <= maxTicks {
				return ticked(label, step, 0, int(steps))
			}
		}
		power *= 10
	}
}

// ticked is an axis from one number of steps to another.
func ticked(label string, step float64, first, last int) Axis {
	a := Axis{Label: label, Min: step * float64(first), Max: step * float64(last)}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	for i := first; i <= last; i++ {
		at := step * float64(i)
		a.Ticks = append(a.Ticks, Tick{at, strconv.FormatFloat(at, 'f', decimals, 64)})
	}
	return a
}

// Milliseconds returns a logarithmic axis of ms, from one power of ten to another.
func Milliseconds(label string, from, to int) Axis {
	a := Axis{Label: label, Min: math.Pow10(from), Max: math.Pow10(to), Log: true}
	for power := from; power <= to; power++ {
		ms := math.Pow10(power)
		text := strconv.FormatFloat(ms, 'f', -1, 64) + " ms"
		if ms >= 1000 {
			text = strconv.FormatFloat(ms/1000, 'f', -1, 64) + " s"
		}
		a.Ticks = append(a.Ticks, Tick{ms, text})
	}
	return a
}

// Between returns an axis that holds all from one value to another, with round ends.
func Between(label string, low, high float64) Axis {
	if !(high > low) {
		low, high = low-1, high+1
	}
	power := math.Pow(10, math.Floor(math.Log10((high-low)/maxTicks)))
	for {
		for _, f := range []float64{1, 2, 5} {
			step := f * power
			first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
			if last-first <= maxTicks {
				return ticked(label, step, int(first), int(last))
			}
		}
		power *= 10
	}
}
