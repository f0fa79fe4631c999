package redistribute

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// Total is the redistribution of the adaptive method. It reuses memory between calls but keeps no other state;
// the zero value is ready to use.
type Total struct {
	sums
	settled []settled // by tick, plus one
}

// Sum returns one load for each tick of [First, Last]: the sum of all instances.
//
// An instance that started less than T_R ago next to others counts for at most the average of the established
// ones, so that warming up is not load. The load that it takes over from others is in the sum already. A tick
// is clipped if at least half of the established instances read the maximum of the metric.
//
// For T_R after an instance has started or ended, the total stays where it was, unless it falls by more than
// the load that may be moving: load that one instance carried shows at the others only once they have been
// read. Otherwise every pod of a rolling update would look like a fall followed by a steep rise.
func (t *Total) Sum(w *series.Window, o *Options) []series.Load {
	t.begin(w)
	t.settled = series.ResizeZeroed(t.settled, w.N+1)
	for i := range t.members {
		m := &t.members[i]
		if m.newcomer {
			grown := w.Index(m.Start + o.Timeout.Milliseconds())
			m.growing = m.Active.Intersect(w.Span()).Intersect(series.Ticks{From: 0, To: grown})
		}
		t.addEstablished(m, o)
	}
	established := 0
	for k := w.First; k <= w.Last; k++ {
		l, s := &t.loads[k], &t.settled[k]
		established += s.count
		s.count, l.Active, l.Effective = established, established, t.raw[k]
	}
	for i := range t.members {
		t.addNew(&t.members[i], o)
		t.addEnded(&t.members[i], o)
	}
	t.countClipped(o)
	t.holdDuringHandover()
	return t.result()
}

// holdDuringHandover keeps the loads where they were while load moves between instances.
func (t *Total) holdDuringHandover() {
	held, first := 0.0, t.window.First
	for k := first; k <= t.window.Last; k++ {
		l, s := &t.loads[k], t.settled[k]
		if s.begins {
			held = series.Mean(t.loads[max(first, k-heldTicks):k])
		}
		l.Effective = max(0, l.Effective) // idle instances may read less than the baseline of the Overhead model
		l.Effective = max(l.Effective, min(held, l.Effective+s.moving))
		l.Raw, l.Weight = l.Effective, float64(l.Active)
		l.Clipped = s.clipped > 0 && 2*s.clipped >= s.count
	}
}

const (
	// heldTicks is the number of ticks before a start or an end over which the held load is averaged.
	heldTicks = 5
	// clippedTicks is the minimum number of consecutive ticks at which a clipped instance reads the maximum:
	// one is noise.
	clippedTicks = 3
	// clippedEvents is the same in events, whose length follows from the noise: one long event keeps an idle
	// instance busy.
	clippedEvents = 30
	// eventDistance is the number of ticks between readings from which noise is estimated; it is longer than an
	// event.
	eventDistance = 15
	// faint is the share of the maximum below which the mean reading is not used to estimate noise.
	faint = 0.05
)

// settled describes the established instances at a tick, and the load that moves between all instances.
type settled struct {
	count, clipped int     // number of established instances, and of clipped ones among them
	moving         float64 // load that instances may carry in addition to their readings
	begins         bool    // load begins to move at this tick
}

// addEstablished adds the ticks at which an instance is established.
func (t *Total) addEstablished(m *member, o *Options) {
	at := t.established(m)
	if at.Empty() {
		return
	}
	t.addRaw(at, o.Model.Loads(m.Values, at, t.scratch))
	t.settled[at.From].count++ // a difference; Sum adds them up
	t.settled[at.To].count--
}

// established returns the ticks at which an instance is active and no longer new.
func (t *Total) established(m *member) series.Ticks {
	at := m.Active.Intersect(t.window.Span())
	at.From = max(at.From, m.growing.To)
	return at
}

// countClipped counts the clipped established instances at each tick.
func (t *Total) countClipped(o *Options) {
	if !o.Saturation.Enabled || !t.clippedFor(clippedTicks, o) {
		return
	}
	minTicks := int(min(math.Ceil(clippedEvents*t.event(o.Saturation.Max)), float64(t.window.N)))
	if minTicks <= clippedTicks {
		return
	}
	for k := range t.settled {
		t.settled[k].clipped = 0
	}
	t.clippedFor(minTicks, o)
}

// clippedFor counts the instances that are clipped for at least minTicks consecutive ticks, and reports whether
// there are any.
func (t *Total) clippedFor(minTicks int, o *Options) bool {
	top, found := o.Saturation.Max*(1-o.Saturation.Zone), false
	for i := range t.members {
		m := &t.members[i]
		if at := t.established(m); !at.Empty() {
			found = countClipped(m.Values[at.From:at.To], top, minTicks, t.settled[at.From:at.To]) || found
		}
	}
	return found
}

// event returns the number of ticks for which one event keeps an instance busy, assuming that the number of
// events has the noise of counts: it is the variance of readings over their mean. It is 0 for instances that
// have hardly worked.
func (t *Total) event(top float64) float64 {
	bends, sum, n := 0.0, 0.0, 0
	for i := range t.members {
		m := &t.members[i]
		at := t.established(m)
		for k := at.From + eventDistance; k+eventDistance < at.To; k++ {
			bend := m.Values[k-eventDistance] - 2*m.Values[k] + m.Values[k+eventDistance]
			bends += bend * bend / 6
			sum += m.Values[k]
			n++
		}
	}
	if sum <= faint*top*float64(n) {
		return 0
	}
	return bends / (sum * top)
}

// countClipped counts the ticks at which an instance is clipped: those of at least minTicks consecutive ones at
// top or above. It reports whether there are any.
func countClipped(values []float64, top float64, minTicks int, settled []settled) bool {
	found := false
	for k := minTicks - 1; k < len(values); k += minTicks { // each run of that length contains one of these ticks
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
		if k-from < minTicks {
			continue
		}
		found = true
		for j := from; j < k; j++ {
			settled[j].clipped++
		}
	}
	return found
}

// addNew adds a new instance with at most the average of the established ones.
func (t *Total) addNew(m *member, o *Options) {
	if !m.growing.Empty() {
		t.settled[m.growing.From].begins = true
	}
	for k := m.growing.From; k < m.growing.To; k++ {
		g := o.Model.Load(m.Values[k])
		if e := &t.settled[k]; e.count > 0 {
			share := t.raw[k] / float64(e.count)
			e.moving += max(0, share-g)
			g = min(g, share)
		}
		t.loads[k].Effective += g
		t.loads[k].Active++
	}
}

// addEnded counts the last load of an ended instance as moving to others for T_R.
func (t *Total) addEnded(m *member, o *Options) {
	end := m.Active.To
	if m.Active.Empty() || end <= t.window.First || end > t.window.Last {
		return
	}
	g := o.Model.Load(m.Values[end-1])
	until := t.window.Index(t.window.Tick(end) + o.Timeout.Milliseconds())
	moved := series.Ticks{From: end, To: until}.Intersect(t.window.Span())
	t.settled[end].begins = true
	for k := moved.From; k < moved.To; k++ {
		t.settled[k].moving += g
	}
}
