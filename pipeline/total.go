package pipeline

// total returns one aggregate for each tick of [w.first, w.last] for the adaptive method: the sum of all instances. An
// instance that has started less than T_R ago counts for no more than the average of those established before, so that
// what it does only to warm up is no load; what it takes over from others is in the sum already. A tick is clipped if
// at least half of the established instances read the maximum of the metric.
func (w *window) total(p *Params) []load {
	w.markNewcomers()
	w.loads = zeroed(w.loads, w.n+1)
	w.settled = zeroed(w.settled, w.n)
	w.scratch = resize(w.scratch, w.n)
	span := w.span()
	for i := range w.series {
		s := &w.series[i]
		s.growing = ticks{}
		if s.newcomer {
			s.growing = s.active.and(span).and(ticks{0, w.index(s.Start + p.RedistributionTimeout.Milliseconds())})
		}
		w.addEstablished(s, p)
	}
	for i := range w.series {
		w.addNew(&w.series[i], p)
	}
	for k := w.first; k <= w.last; k++ {
		l, s := &w.loads[k], w.settled[k]
		l.effective = max(0, l.effective) // idle instances may be below the baseline of the Overhead model
		l.raw, l.weight = l.effective, float64(l.active)
		l.clipped = s.clipped > 0 && 2*s.clipped >= s.count
	}
	return w.loads[w.first : w.last+1]
}

// clippedTicks is for how many ticks in a row an instance must read as much as it can: a single one is noise.
const clippedTicks = 3

// settled counts the established instances of a tick, and those of them that are clipped, with their sum.
type settled struct {
	count, clipped int
	sum            float64
}

func (w *window) addEstablished(s *series, p *Params) {
	at := s.active.and(w.span())
	at.from = max(at.from, s.growing.to)
	if at.empty() {
		return
	}
	g := p.Model.loads(s.values, at, w.scratch)[at.from:at.to]
	loads, settled := w.loads[at.from:at.to], w.settled[at.from:at.to]
	for k, v := range g {
		loads[k].effective += v
		loads[k].active++
		settled[k].count++
		settled[k].sum += v
	}
	if p.Saturation.Enabled {
		countClipped(s.values[at.from:at.to], p.Saturation.Max*(1-p.Saturation.Zone), settled)
	}
}

// countClipped counts the ticks at which an instance is clipped: those of at least clippedTicks at top or above.
func countClipped(values []float64, top float64, settled []settled) {
	run := 0
	for k, v := range values {
		if v < top {
			run = 0
			continue
		}
		if run++; run == clippedTicks {
			for j := k - clippedTicks + 1; j < k; j++ {
				settled[j].clipped++
			}
		}
		if run >= clippedTicks {
			settled[k].clipped++
		}
	}
}

func (w *window) addNew(s *series, p *Params) {
	for k := s.growing.from; k < s.growing.to; k++ {
		g := p.Model.Load(s.values[k])
		if e := w.settled[k]; e.count > 0 {
			g = min(g, e.sum/float64(e.count))
		}
		w.loads[k].effective += g
		w.loads[k].active++
	}
}

// spacing is how many ticks apart readings are, by the instance that is read least often.
func (w *window) spacing() int {
	widest := int64(1)
	for i := range w.series {
		widest = max(widest, w.series[i].spacing)
	}
	return int(min(widest, int64(w.n)))
}

// spacing is how many ticks apart samples in order of time are on average; 0 of too few.
func (g grid) spacing(samples []Sample) int64 {
	n := int64(len(samples))
	if n <= 2 {
		return 0
	}
	return ((samples[n-1].T-samples[0].T)/(n-1) + g.step/2) / g.step
}
