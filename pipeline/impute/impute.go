// Package impute is stage two of the pipeline (paper, section 5): it estimates the values, in units of the metric, of
// instances that are active at a tick but have no value there.
package impute

import "github.com/foresail/foresail/pipeline/series"

// Imputer fills in the unknown values of a window. It reuses memory between calls but keeps no other state; the
// zero value is ready to use.
type Imputer struct {
	unknown []int // by tick: the number of instances that are active but not known
}

// Fill fills in the unknown values in one forward pass (paper, section 5.3). Instances that are no longer read
// are assumed to carry the same total load as before. That load is shared equally among all instances that are
// active but not known, including new ones. Loads of known instances, and of instances that ended, are not
// inherited. Ticks at which every active instance is known, as most are, need no imputation.
func (p *Imputer) Fill(w *series.Window) {
	p.countUnknown(w)
	total := 0.0 // at the previous tick
	for k := w.First; k <= w.Last; k++ {
		if p.unknown[k] == 0 {
			continue
		}
		if k > w.First && p.unknown[k-1] == 0 {
			total, _ = sums(w, k-1)
		}
		known, accounted := sums(w, k)
		rest := max(0, total-accounted)
		setUnknown(w, k, rest/float64(p.unknown[k]))
		total = known + rest
	}
}

// countUnknown counts for each tick the instances that are active but not known.
func (p *Imputer) countUnknown(w *series.Window) {
	p.unknown = series.ResizeZeroed(p.unknown, w.N)
	for i := range w.Rows {
		before, after := unknownTicks(&w.Rows[i])
		for k := before.From; k < before.To; k++ {
			p.unknown[k]++
		}
		for k := after.From; k < after.To; k++ {
			p.unknown[k]++
		}
	}
}

// unknownTicks returns the ticks at which an instance is active but not known: those before and after its known
// ones.
func unknownTicks(r *series.Row) (before, after series.Ticks) {
	if r.Known.Empty() {
		return r.Active, series.Ticks{}
	}
	return series.Ticks{From: r.Active.From, To: r.Known.From}, series.Ticks{From: r.Known.To, To: r.Active.To}
}

// sums returns the sum of the known values at tick k, and the sum at the previous tick of the instances that
// are known at k or have ended.
func sums(w *series.Window, k int) (known, accounted float64) {
	for i := range w.Rows {
		r := &w.Rows[i]
		isKnown := r.Known.Contains(k)
		if isKnown {
			known += r.Values[k]
		}
		if k > w.First && r.Active.Contains(k-1) && (isKnown || !r.Active.Contains(k)) {
			accounted += r.Values[k-1]
		}
	}
	return known, accounted
}

// setUnknown sets the value of each instance that is active but not known at tick k.
func setUnknown(w *series.Window, k int, value float64) {
	for i := range w.Rows {
		if r := &w.Rows[i]; r.Active.Contains(k) && !r.Known.Contains(k) {
			r.Values[k] = value
		}
	}
}
