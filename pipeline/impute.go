package pipeline

import "math"

// window holds v̂: a value for every (tick, instance), tick-major, over the ticks [first, last] of the grid at which
// a forecast can be made. Before imputation NaN marks what is not known; outside [from[i], to[i]) instance i is not
// active and its elements mean nothing.
type window struct {
	grid
	instances   []*Instance // sorted by ID
	from, to    []int       // the ticks at which each instance is active
	values      []float64   // n rows of len(instances)
	first, last int         // the first and the newest tick at which any instance is known
	newcomer    []bool      // the instances that had another to take load over from when they started
	byStart     []int       // scratch of markNewcomers
}

func (w *window) row(k int) []float64 {
	n := len(w.instances)
	return w.values[k*n : (k+1)*n]
}

func (w *window) active(i, k int) bool { return w.from[i] <= k && k < w.to[i] }

// impute fills the unknown values of the window in one forward pass (paper, section 5.3): what the instances that
// have fallen silent carried before is kept and shared equally among all that are active and not known, newcomers
// included. What known and departed instances carried before is not theirs to inherit.
func (w *window) impute() {
	var previousTotal float64
	for k := w.first; k <= w.last; k++ {
		row := w.row(k)
		known, accounted, unknown := 0.0, 0.0, 0
		for i, v := range row {
			activeNow := w.active(i, k)
			isKnown := activeNow && !math.IsNaN(v)
			switch {
			case isKnown:
				known += v
			case activeNow:
				unknown++
			}
			if k > w.first && w.active(i, k-1) && (isKnown || !activeNow) {
				accounted += w.row(k - 1)[i]
			}
		}
		previousTotal = known + w.share(k, unknown, previousTotal-accounted)
	}
}

// share gives each of the unknown instances at tick k an equal part of what is left of the previous total and
// returns what it has given.
func (w *window) share(k, unknown int, rest float64) float64 {
	if unknown == 0 {
		return 0
	}
	rest = max(rest, 0)
	row := w.row(k)
	for i, v := range row {
		if w.active(i, k) && math.IsNaN(v) {
			row[i] = rest / float64(unknown)
		}
	}
	return rest
}
