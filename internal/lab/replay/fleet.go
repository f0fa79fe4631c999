package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// spans are how far back a run looks, in ms.
type spans struct {
	window int64 // samples before it matter no more, but for the newest
	fleet  int64 // an instance that ended before it cannot change a forecast
	keep   int64 // an instance that ended before it cannot change anything
}

// spansOf derives the spans. An instance that has ended still matters, up to a redistribution
// timeout before the window, to those that started while it was active: it decides whether they
// take load over. After that timeout an instance counts in full either way. Cooldowns and the first
// target count look back on their own.
func spansOf(p pipeline.Params) spans {
	s := spans{window: ceilMillis(p.WindowFor(0))}
	s.fleet = s.window + ceilMillis(p.RedistributionTimeout)
	s.keep = max(s.fleet, ceilMillis(p.PendingExpiry), ceilMillis(p.Cooldown.DownAfterUp))
	return s
}

func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

// tracked is what is known of one instance at the time of a run.
type tracked struct {
	samples    samples.Series // that a run can see and that can still matter to it
	id         string
	start, end int64 // as package pipeline understands them
	state      state
}

// state is where an instance is in the replay.
type state int

const (
	unseen    state = iota // neither its start nor a sample has come up
	present                // in fleet.live
	forgotten              // ended too long ago to change anything
)

// fleet is everything a run can see. It moves on from run to run and never back.
type fleet struct {
	rec       *Recording
	arrivals  []arrival // rec.samples as they become visible
	interval  int64     // ms
	model     pipeline.Model
	spans     spans
	tracked   []tracked  // by the index of their member
	live      []*tracked // sorted by ID, as the pipeline wants them
	byStart   []int32    // members whose start is given, by it
	demand    samples.Series
	target    targetCount
	instances []pipeline.Instance // of the last input, for its memory

	nextArrival, nextStart int // in arrivals, byStart
}

func newFleet(rec *Recording, p pipeline.Params) *fleet {
	interval := p.Interval.Milliseconds()
	f := &fleet{
		rec: rec, arrivals: rec.visible(interval), interval: interval, model: p.Model, spans: spansOf(p),
		target: targetCount{planned: rec.targets, rose: pipeline.Never},
	}
	f.tracked = make([]tracked, len(rec.members))
	for i, m := range rec.members {
		f.tracked[i] = tracked{id: m.id, start: m.start, end: endOf(m)}
		if m.start != pipeline.Never {
			f.byStart = append(f.byStart, int32(i))
		}
	}
	slices.SortFunc(f.byStart, func(a, b int32) int { return cmp.Compare(rec.members[a].start, rec.members[b].start) })
	return f
}

// endOf translates the end of a member. To the pipeline 0 is no end at all, so an end at 0 becomes
// one a millisecond earlier, which is the same to every tick but one at -1.
func endOf(m member) int64 {
	switch m.end {
	case pipeline.Never:
		return 0
	case 0:
		return -1
	default:
		return m.end
	}
}

// advance lets everything happen that is known at now, which is not before that of the last call.
func (f *fleet) advance(now int64) {
	for ; f.nextStart < len(f.byStart); f.nextStart++ {
		t := &f.tracked[f.byStart[f.nextStart]]
		if t.start > now {
			break
		}
		f.join(t)
	}
	for ; f.nextArrival < len(f.arrivals) && f.arrivals[f.nextArrival].visibleFrom(f.interval) <= now; f.nextArrival++ {
		f.receive(&f.arrivals[f.nextArrival])
	}
	f.live = slices.DeleteFunc(f.live, func(t *tracked) bool {
		if t.endsBy(now - f.spans.keep) {
			t.state, t.samples = forgotten, nil
		}
		return t.state == forgotten
	})
	f.target.advance(now)
}

func (f *fleet) join(t *tracked) {
	t.state = present
	at, _ := slices.BinarySearchFunc(f.live, t.id, func(x *tracked, id string) int { return cmp.Compare(x.id, id) })
	f.live = slices.Insert(f.live, at, t)
}

// receive takes a sample. An instance without a line on its start is there from its first sample
// on, as far as has been received.
func (f *fleet) receive(a *arrival) {
	if a.member == demandSeries {
		f.demand.Add(a.sample)
		return
	}
	t := &f.tracked[a.member]
	if t.state == forgotten {
		return
	}
	if f.rec.members[a.member].start == pipeline.Never {
		if t.state == unseen {
			t.start = a.sample.T
			f.join(t)
		}
		t.start = min(t.start, a.sample.T)
	}
	if f.model.InRange(a.sample.V) {
		t.samples.Add(a.sample)
	}
}

func (t *tracked) endsBy(time int64) bool { return t.end != 0 && t.end <= time }

func (t *tracked) activeAt(time int64) bool { return t.start <= time && !t.endsBy(time) }

// input returns what a run at now, which the fleet has advanced to, is made of. It is valid until
// the next call.
func (f *fleet) input(now int64) pipeline.Input {
	f.instances = f.instances[:0]
	for _, t := range f.live {
		if t.endsBy(now - f.spans.fleet) {
			continue
		}
		t.samples.Trim(now - f.spans.window)
		f.instances = append(f.instances, pipeline.Instance{ID: t.id, Start: t.start, End: t.end, Samples: t.samples})
	}
	f.demand.Trim(now - f.spans.window)
	in := pipeline.Input{Now: now, Instances: f.instances, Demand: f.demand}
	in.Target, in.TargetRose = f.target.now(f.activeAt)
	return in
}

// activeAt counts the instances active at a time, of those not forgotten. The count is complete for
// spans.keep.
func (f *fleet) activeAt(time int64) int {
	n := 0
	for _, t := range f.live {
		if t.activeAt(time) {
			n++
		}
	}
	return n
}

// newestStart returns when the newest instance started, or pipeline.Never; one that has been
// forgotten started too long ago to matter to a cooldown.
func (f *fleet) newestStart(now int64) int64 {
	newest := pipeline.Never
	for _, t := range f.live {
		if t.start <= now {
			newest = max(newest, t.start)
		}
	}
	return newest
}

// targetCount follows the requested count.
type targetCount struct {
	planned []planned
	next    int   // in planned
	rose    int64 // the last rise but for that to the first count, or pipeline.Never
}

func (c *targetCount) advance(now int64) {
	for ; c.next < len(c.planned) && c.planned[c.next].at <= now; c.next++ {
		if c.next > 0 && c.planned[c.next].count > c.planned[c.next-1].count {
			c.rose = c.planned[c.next].at
		}
	}
}

// now returns the target count and when it last rose. Before the first planned count it is that of
// the active instances (0 to the pipeline), so the first one is a rise if fewer than that were
// active. Where the first is so long ago that activeAt is not complete, a rise has expired and does
// not matter.
func (c *targetCount) now(activeAt func(time int64) int) (count int, rose int64) {
	if c.next == 0 {
		return 0, pipeline.Never
	}
	count, rose = max(1, c.planned[c.next-1].count), c.rose
	if first := c.planned[0]; rose == pipeline.Never && first.count > activeAt(first.at) {
		rose = first.at
	}
	return count, rose
}
