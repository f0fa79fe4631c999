package pipeline

// impute fills the unknown values of the window in one forward pass (paper, section 5.3): what the instances that
// have fallen silent carried before is kept and shared equally among all that are active and not known, newcomers
// included. What known and departed instances carried before is not theirs to inherit. At a tick at which every
// active instance is known, as at most ticks, there is nothing to do.
func (w *window) impute() {
	w.countSilent()
	total := 0.0 // at the tick before
	for k := w.first; k <= w.last; k++ {
		if w.silent[k] == 0 {
			continue
		}
		if k > w.first && w.silent[k-1] == 0 {
			total, _ = w.sums(k - 1)
		}
		known, accounted := w.sums(k)
		rest := max(0, total-accounted)
		w.share(k, rest)
		total = known + rest
	}
}

// countSilent counts for each tick the instances that are active and not known.
func (w *window) countSilent() {
	w.silent = zeroed(w.silent, w.n)
	for i := range w.series {
		before, after := w.series[i].unknown()
		for k := before.from; k < before.to; k++ {
			w.silent[k]++
		}
		for k := after.from; k < after.to; k++ {
			w.silent[k]++
		}
	}
}

// unknown returns the ticks at which the instance is active and not known: before and after those at which it is known.
func (s *series) unknown() (before, after ticks) {
	if s.known.empty() {
		return s.active, ticks{}
	}
	return ticks{s.active.from, s.known.from}, ticks{s.known.to, s.active.to}
}

// sums returns what is known at tick k, and what was carried at the tick before by those that are known at k or have left.
func (w *window) sums(k int) (known, accounted float64) {
	for i := range w.series {
		s := &w.series[i]
		isKnown := s.known.contain(k)
		if isKnown {
			known += s.values[k]
		}
		if k > w.first && s.active.contain(k-1) && (isKnown || !s.active.contain(k)) {
			accounted += s.values[k-1]
		}
	}
	return known, accounted
}

// share gives each instance that is active and not known at tick k an equal part of rest.
func (w *window) share(k int, rest float64) {
	part := rest / float64(w.silent[k])
	for i := range w.series {
		if s := &w.series[i]; s.active.contain(k) && !s.known.contain(k) {
			s.values[k] = part
		}
	}
}
