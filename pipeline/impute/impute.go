// Package impute is stage two of the pipeline (paper, section 5): it fills in the values, in units of the metric, of
// instances that are active at a tick of the window and not known there.
package impute

import "github.com/foresail/foresail/pipeline/series"

// Imputer fills the unknown values of a window. It keeps memory between calls, and nothing else; the zero value is
// ready.
type Imputer struct {
	silent []int // instances that are active and not known, by tick
}

// Fill fills the unknown values in one forward pass (paper, section 5.3): the load that the instances which have fallen
// silent carried before is kept and shared equally among all that are active and not known, newcomers included. The
// loads of known and of departed instances are not inherited. A tick at which every active instance is known, as at
// most ticks, needs nothing.
func (p *Imputer) Fill(w *series.Window) {
	p.countSilent(w)
	total := 0.0 // at the previous tick
	for k := w.First; k <= w.Last; k++ {
		if p.silent[k] == 0 {
			continue
		}
		if k > w.First && p.silent[k-1] == 0 {
			total, _ = sums(w, k-1)
		}
		known, accounted := sums(w, k)
		rest := max(0, total-accounted)
		share(w, k, rest/float64(p.silent[k]))
		total = known + rest
	}
}

// countSilent counts for each tick the instances that are active and not known.
func (p *Imputer) countSilent(w *series.Window) {
	p.silent = series.Zeroed(p.silent, w.N)
	for i := range w.Rows {
		before, after := unknown(&w.Rows[i])
		for k := before.From; k < before.To; k++ {
			p.silent[k]++
		}
		for k := after.From; k < after.To; k++ {
			p.silent[k]++
		}
	}
}

// unknown returns the ticks at which an instance is active and not known: before and after those at which it is known.
func unknown(r *series.Row) (before, after series.Ticks) {
	if r.Known.Empty() {
		return r.Active, series.Ticks{}
	}
	return series.Ticks{From: r.Active.From, To: r.Known.From}, series.Ticks{From: r.Known.To, To: r.Active.To}
}

// sums returns the sum of the known values at tick k, and the sum at the previous tick of the instances that are known
// at k or have left.
func sums(w *series.Window, k int) (known, accounted float64) {
	for i := range w.Rows {
		r := &w.Rows[i]
		isKnown := r.Known.Contain(k)
		if isKnown {
			known += r.Values[k]
		}
		if k > w.First && r.Active.Contain(k-1) && (isKnown || !r.Active.Contain(k)) {
			accounted += r.Values[k-1]
		}
	}
	return known, accounted
}

// share sets the value of each instance that is active and not known at tick k.
func share(w *series.Window, k int, value float64) {
	for i := range w.Rows {
		if r := &w.Rows[i]; r.Active.Contain(k) && !r.Known.Contain(k) {
			r.Values[k] = value
		}
	}
}
