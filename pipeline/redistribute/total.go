package redistribute

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// Total is the redistribution of the adaptive method. It keeps memory between calls, and nothing else; the zero value
// is ready.
type Total struct {
	sums
	settled []settled // by tick, and one more
}

// Sum returns one load for each tick of [First, Last]: the sum of all instances. An instance that started less than T_R
// ago next to others counts for no more than the average of the established ones, so that warming up is no load; what
// it takes over from others is in the sum already. A tick is clipped if at least half of the established instances read
// the maximum of the metric.
//
// For T_R after an instance has started or ended, the total stays where it was before, unless it falls by more than may
// be moving to other instances: the load that one carried shows at the others only once they have been read. Otherwise
// every pod of a rolling update would look like a fall and a steep rise.
func (t *Total) Sum(w *series.Window, o *Options) []series.Load {
	t.begin(w)
	t.settled = series.Zeroed(t.settled, w.N+1)
	for i := range t.members {
		m := &t.members[i]
		if m.newcomer {
			grown := w.Index(m.Start + o.Timeout.Milliseconds())
			m.growing = m.Active.And(w.Span()).And(series.Ticks{From: 0, To: grown})
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
	t.hold()
	return t.result()
}

// hold keeps the loads where they were while load moves.
func (t *Total) hold() {
	held, first := 0.0, t.window.First
	for k := first; k <= t.window.Last; k++ {
		l, s := &t.loads[k], t.settled[k]
		if s.begins {
			held = series.Mean(t.loads[max(first, k-heldTicks):k])
		}
		l.Effective = max(0, l.Effective) // idle instances may be below the baseline of the Overhead model
		l.Effective = max(l.Effective, min(held, l.Effective+s.moving))
		l.Raw, l.Weight = l.Effective, float64(l.Active)
		l.Clipped = s.clipped > 0 && 2*s.clipped >= s.count
	}
}

const (
	// heldTicks is the number of ticks before a start or an end whose mean is the load then.
	heldTicks = 5
	// clippedTicks is the minimum number of ticks in a row at which a clipped instance reads the maximum: one is noise.
	clippedTicks = 3
	// clippedEvents is the same in events of the length that the noise shows: a long one keeps an idle instance busy.
	clippedEvents = 30
	// eventDistance is the number of ticks between readings that noise is estimated from: more than an event lasts.
	eventDistance = 15
	// faint is the share of the maximum below which the mean reading shows nothing of the noise.
	faint = 0.05
)

// settled describes the established instances at a tick, and what moves between all instances.
type settled struct {
	count, clipped int     // how many, and how many of these are clipped
	moving         float64 // what instances may carry beyond what is read
	begins         bool    // something begins to move
}

func (t *Total) addEstablished(m *member, o *Options) {
	at := t.established(m)
	if at.Empty() {
		return
	}
	t.addRaw(at, o.Model.Loads(m.Values, at, t.scratch))
	t.settled[at.From].count++ // a change; Sum adds them up
	t.settled[at.To].count--
}

// established returns the ticks at which an instance is active, and not new.
func (t *Total) established(m *member) series.Ticks {
	at := m.Active.And(t.window.Span())
	at.From = max(at.From, m.growing.To)
	return at
}

// countClipped counts the established instances that are clipped at each tick.
func (t *Total) countClipped(o *Options) {
	if !o.Saturation.Enabled || !t.clippedFor(clippedTicks, o) {
		return
	}
	least := int(min(math.Ceil(clippedEvents*t.event(o.Saturation.Max)), float64(t.window.N)))
	if least <= clippedTicks {
		return
	}
	for k := range t.settled {
		t.settled[k].clipped = 0
	}
	t.clippedFor(least, o)
}

// clippedFor counts the instances that are clipped for so many ticks in a row, and reports whether there is any.
func (t *Total) clippedFor(least int, o *Options) bool {
	top, found := o.Saturation.Max*(1-o.Saturation.Zone), false
	for i := range t.members {
		m := &t.members[i]
		if at := t.established(m); !at.Empty() {
			found = countClipped(m.Values[at.From:at.To], top, least, t.settled[at.From:at.To]) || found
		}
	}
	return found
}

// event returns the number of ticks for which one event keeps an instance busy, if the number of events has the noise
// of counting: then it is the variance of readings over their mean. It is 0 of instances that have hardly worked.
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

// countClipped counts the ticks at which an instance is clipped: those of at least so many in a row at top or above. It
// reports whether there are any.
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

// addNew adds an instance that is new for no more than the average of the established ones.
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

// addEnded counts the load that an instance carried at its end as moving to others for T_R.
func (t *Total) addEnded(m *member, o *Options) {
	end := m.Active.To
	if m.Active.Empty() || end <= t.window.First || end > t.window.Last {
		return
	}
	g := o.Model.Load(m.Values[end-1])
	until := t.window.Index(t.window.Tick(end) + o.Timeout.Milliseconds())
	moved := series.Ticks{From: end, To: until}.And(t.window.Span())
	t.settled[end].begins = true
	for k := moved.From; k < moved.To; k++ {
		t.settled[k].moving += g
	}
}
