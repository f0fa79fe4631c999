package pipeline

import "math"

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
	w.countClipped(p)
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

const (
	// clippedTicks is for how many ticks in a row an instance must read as much as it can, at least: a single one is noise.
	clippedTicks = 3
	// clippedEvents is as many of the events that its noise shows it to work on: one that takes long keeps an idle instance busy.
	clippedEvents = 30
	// eventDistance is how many ticks apart readings are that noise is estimated from: farther than an event lasts.
	eventDistance = 15
)

// settled is what the established instances of a tick are, and what moves between all of them.
type settled struct {
	count, clipped int     // how many, and how many of these are clipped
	moving         float64 // what instances may carry beyond what is read
	begins         bool    // something begins to move
}

func (w *window) addEstablished(s *series, p *Params) {
	at := w.established(s)
	if at.empty() {
		return
	}
	w.addRaw(at, p.Model.loads(s.values, at, w.scratch))
	w.settled[at.from].count++ // a change; total adds them up
	w.settled[at.to].count--
}

// established returns the ticks at which an instance is active, and not new.
func (w *window) established(s *series) ticks {
	at := s.active.and(w.span())
	at.from = max(at.from, s.growing.to)
	return at
}

// countClipped counts the established instances that are clipped at each tick.
func (w *window) countClipped(p *Params) {
	if !p.Saturation.Enabled || !w.clippedFor(clippedTicks, p) {
		return
	}
	least := int(min(math.Ceil(clippedEvents*w.event(p.Saturation.Max)), float64(w.n)))
	if least <= clippedTicks {
		return
	}
	for k := range w.settled {
		w.settled[k].clipped = 0
	}
	w.clippedFor(least, p)
}

// clippedFor counts the instances that are clipped for so many ticks in a row, and returns whether there is any.
func (w *window) clippedFor(least int, p *Params) bool {
	top, found := p.Saturation.Max*(1-p.Saturation.Zone), false
	for i := range w.series {
		s := &w.series[i]
		if at := w.established(s); !at.empty() {
			found = countClipped(s.values[at.from:at.to], top, least, w.settled[at.from:at.to]) || found
		}
	}
	return found
}

// event returns for how many ticks one of the events that an instance works on keeps it busy, if their number has the noise of counting:
// then it is the variance of readings over their mean. It is 0 of instances that have hardly worked.
func (w *window) event(top float64) float64 {
	bends, sum, n := 0.0, 0.0, 0
	for i := range w.series {
		s := &w.series[i]
		at := w.established(s)
		for k := at.from + eventDistance; k+eventDistance < at.to; k++ {
			bend := s.values[k-eventDistance] - 2*s.values[k] + s.values[k+eventDistance]
			bends += bend * bend / 6
			sum += s.values[k]
			n++
		}
	}
	if sum <= faint*top*float64(n) {
		return 0
	}
	return bends / (sum * top)
}

// countClipped counts the ticks at which an instance is clipped: those of at least so many in a row at top or above. It returns whether
// there are any.
func countClipped(values []float64, top float64, least int, settled []settled) bool {
	found := false
	for k := least - 1; k < len(values); k += least { // as many in a row have one of these among them
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
		if k-from < least {
			continue
		}
		found = true
		for j := from; j < k; j++ {
			settled[j].clipped++
		}
	}
	return found
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
