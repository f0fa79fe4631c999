package pipeline

// total returns one aggregate for each tick of [w.first, w.last] for the adaptive method: the sum of all instances. An
// instance that has started less than T_R ago beside others counts for no more than the average of the established ones, so that
// what it does only to warm up is no load; what it takes over from others is in the sum already. A tick is clipped if
// at least half of the established instances read the maximum of the metric.
//
// For T_R after an instance has started or ended, the total stays where it was before, unless it falls by more than may be moving
// to other instances: what one carried shows at the others only once they have been read. Otherwise every pod of a rolling update would
// look like a fall and a steep rise.
func (w *window) total(p *Params) []load {
	w.markNewcomers()
	w.loads, w.raw = zeroed(w.loads, w.n+1), zeroed(w.raw, w.n)
	w.settled = zeroed(w.settled, w.n+1)
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
	established := 0
	for k := w.first; k <= w.last; k++ {
		l, s := &w.loads[k], &w.settled[k]
		established += s.count
		s.count, l.active, l.effective = established, established, w.raw[k]
	}
	for i := range w.series {
		w.addNew(&w.series[i], p)
		w.addEnded(&w.series[i], p)
	}
	held := 0.0
	for k := w.first; k <= w.last; k++ {
		l, s := &w.loads[k], w.settled[k]
		if s.begins {
			held = mean(w.loads[max(w.first, k-heldTicks):k])
		}
		l.effective = max(0, l.effective) // idle instances may be below the baseline of the Overhead model
		l.effective = max(l.effective, min(held, l.effective+s.moving))
		l.raw, l.weight = l.effective, float64(l.active)
		l.clipped = s.clipped > 0 && 2*s.clipped >= s.count
	}
	return w.loads[w.first : w.last+1]
}

const heldTicks = 5 // the load at a start or an end is the mean of so many ticks before it

func mean(loads []load) float64 {
	sum := 0.0
	for _, l := range loads {
		sum += l.effective
	}
	return sum / max(1, float64(len(loads)))
}

// clippedTicks is for how many ticks in a row an instance must read as much as it can: a single one is noise.
const clippedTicks = 3

// settled is what the established instances of a tick are, and what moves between all of them.
type settled struct {
	count, clipped int     // how many, and how many of these are clipped
	moving         float64 // what instances may carry beyond what is read
	begins         bool    // something begins to move
}

func (w *window) addEstablished(s *series, p *Params) {
	at := s.active.and(w.span())
	at.from = max(at.from, s.growing.to)
	if at.empty() {
		return
	}
	if p.Saturation.Enabled {
		countClipped(s.values[at.from:at.to], p.Saturation.Max*(1-p.Saturation.Zone), w.settled[at.from:at.to])
	}
	w.addRaw(at, p.Model.loads(s.values, at, w.scratch))
	w.settled[at.from].count++ // a change; total adds them up
	w.settled[at.to].count--
}

// countClipped counts the ticks at which an instance is clipped: those of at least clippedTicks at top or above.
func countClipped(values []float64, top float64, settled []settled) {
	for k := clippedTicks - 1; k < len(values); k += clippedTicks { // as many in a row have one of these among them
		if values[k] < top {
			continue
		}
		from := k
		for from > 0 && values[from-1] >= top {
			from--
		}
		for k < len(values) && values[k] >= top {
			k++
		}
		if k-from >= clippedTicks {
			for j := from; j < k; j++ {
				settled[j].clipped++
			}
		}
	}
}

func (w *window) addNew(s *series, p *Params) {
	if !s.growing.empty() {
		w.settled[s.growing.from].begins = true
	}
	for k := s.growing.from; k < s.growing.to; k++ {
		g := p.Model.Load(s.values[k])
		if e := &w.settled[k]; e.count > 0 {
			share := w.raw[k] / float64(e.count)
			e.moving += max(0, share-g)
			g = min(g, share)
		}
		w.loads[k].effective += g
		w.loads[k].active++
	}
}

// addEnded counts what an instance carried at its end as moving to others for T_R.
func (w *window) addEnded(s *series, p *Params) {
	end := s.active.to
	if s.active.empty() || end <= w.first || end > w.last {
		return
	}
	g := p.Model.Load(s.values[end-1])
	moved := ticks{end, w.index(w.tick(end) + p.RedistributionTimeout.Milliseconds())}.and(w.span())
	w.settled[end].begins = true
	for k := moved.from; k < moved.to; k++ {
		w.settled[k].moving += g
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
