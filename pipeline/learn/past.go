// Package learn learns how a load goes on, from loads and their times alone: daily and weekly recurrence, jumps, and
// the margin that keeps to a lateness. It returns the expected load at a horizon for stage five, and checkpoints of
// what it has learned. Loads are in units of the aggregate, times in ms.
package learn

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// Past is the history of a load, and what has been learned of how it goes on: for some horizons a correction of the
// present load and the error to expect, and the times of the day at which it jumps. It depends on the loads that were
// added to it alone. It is not safe for concurrent use. Its methods are here, but for those of checkpoints.
//
// A forecast with a past differs from one without in three ways. Its load at the horizon is the one that has been
// learned to follow from the shape of the load. It plans for jumps that recur. And its margin is the one that would
// have been late for a share of the time, Options.Lateness. Except for the margin, what has been learned can only raise
// the planned load.
type Past struct {
	of       kind
	recent   recent
	horizons [len(horizons)]horizon
	season   season
}

const (
	// learnEach is the time between two looks at a load (ms).
	learnEach = 15_000
	// settling is how long the load of a tick may still change, as some readings are late.
	settling = 15 * time.Second
)

// NewPast returns the past of a load of which nothing is known.
func NewPast(o Options) *Past {
	return &Past{of: o.kind(), recent: newRecent(o.Interval)}
}

// Clone returns a copy.
func (p *Past) Clone() *Past {
	out := *p
	out.recent, out.season = p.recent.clone(), p.season.clone()
	return &out
}

// Shifted returns a copy in which everything was earlier by some time.
func (p *Past) Shifted(by time.Duration) *Past {
	out, ms := p.Clone(), by.Milliseconds()
	out.recent.end -= ms
	out.recent.newest -= ms
	out.season.minutes.origin -= ms
	out.season.fives.origin -= ms
	out.season.jumps.origin -= ms
	for i := range out.horizons {
		out.horizons[i].before.shift(series.FloorDiv(ms, p.of.lookEach()), horizons[i])
	}
	return out
}

// Rewind forgets the loads that lie after a time (ms), as those are of a clock that was ahead and has been set back.
func (p *Past) Rewind(t int64) {
	if p.recent.newest <= t {
		return
	}
	p.recent.forget(series.FloorDiv(t, p.recent.step)*p.recent.step, t)
	p.season.rewind(t)
	p.release()
}

// Known returns for how long the load is known: the time for which it has been looked at, in which late times count
// more than early ones, or the part of the last week that is known, whichever is more.
func (p *Past) Known() time.Duration {
	looks := 0.0
	for i := range p.horizons {
		looks = max(looks, p.horizons[i].looks) // the nearest are none of a load that is read rarely
	}
	return time.Duration(max(int64(looks*float64(p.of.lookEach())), p.season.fives.knownFor())) * time.Millisecond
}

// Newest returns the time of the newest load (ms), 0 without any.
func (p *Past) Newest() int64 { return p.recent.newest }

// Fits reports whether a past is of loads of these options, and forecasts of them use it.
func (p *Past) Fits(o Options) bool {
	return p != nil && !o.Unused && o.kind().continues(p.of)
}

// Learn adds the loads of a run, except those that may still change. It starts over if they are not of the same kind as
// those before. Times that unlearned reports (ms; nil: none) are not learned: their loads are kept for as long as
// forecasts look back.
func (p *Past) Learn(l *series.Loads, o Options, unlearned func(t int64) bool) {
	if o.Unused {
		return
	}
	newest := l.Tick(l.N - 1)
	p.age(newest)
	p.become(o)
	late := max(settling.Milliseconds(), 2*int64(l.Spacing)*l.Step)
	settled := l.Index(newest - late)
	for k := p.recent.after(l.Grid); k < settled; k++ {
		p.add(l.Tick(k), l.Ticks[k].Effective, l.Ticks[k].Clipped, unlearned)
	}
}

// Add adds the load at a time (ms), NaN if it is not known.
func (p *Past) Add(t int64, load float64, o Options) {
	p.age(t)
	p.become(o)
	p.add(t, load, false, nil)
}

// maxAge is how old what was learned may be (ms): nothing of it recurs less often.
const maxAge = week

// tooOld reports whether nothing has been learned for so long that the load may have changed by now (ms).
func (p *Past) tooOld(now int64) bool { return p.recent.newest > 0 && now-p.recent.newest > maxAge }

// age forgets everything once it is too old at a time (ms).
func (p *Past) age(now int64) {
	if p.tooOld(now) {
		*p = Past{of: p.of, recent: recent{step: p.recent.step}}
		p.recent.forget(0, 0)
	}
}

// become makes it the past of a load of other parameters, which is another load if it does not go on from it.
func (p *Past) become(o Options) {
	if of := o.kind(); of.continues(p.of) {
		p.of = of
	} else {
		*p = *NewPast(o)
	}
}

func (p *Past) add(t int64, load float64, clipped bool, unlearned func(t int64) bool) {
	p.recent.add(t, load, clipped, func(mean, shown float64) {
		if unlearned != nil && unlearned(p.recent.end-p.recent.step) {
			p.season.add(p.recent.end, p.recent.step, math.NaN(), math.NaN())
			p.release()
			return
		}
		p.season.add(p.recent.end, p.recent.step, mean, shown)
		if series.FloorMod(p.recent.end, learnEach) < p.recent.step {
			p.look(unlearned)
		}
	})
}

// look compares the newest loads with the expected ones, for each horizon, unless that was at a time that is not
// learned.
func (p *Past) look(unlearned func(t int64) bool) {
	means, step := p.recent.means, float64(p.recent.step)/1000
	around := int(math.Round(aroundTime / step))
	came := means[max(0, len(means)-max(1, 2*around)):]
	rate := 0.0
	for _, v := range came {
		rate += v / float64(len(came)) // NaN if one of them is
	}
	clipped := math.IsNaN(rate)
	if clipped {
		rate = p.recent.atLeast(max(1, 2*around))
	}
	if math.IsNaN(rate) {
		p.release()
		p.remember()
		return
	}
	for i, seconds := range horizons {
		ahead := int(math.Round(seconds/step)) + around
		if around == 0 { // the newest step is longer, and the middle of it some time ago
			ahead++
		}
		n, at := len(means)-ahead, p.recent.end-int64(ahead)*p.recent.step
		learns := seconds >= step && n > 0 && (unlearned == nil || !unlearned(at))
		var d description
		learns = learns && d.describe(means[max(0, n-stepsOf(describedSeconds, step)):n], at, step)
		if learns && !p.season.incident(at, p.recent.end, d.base, rate) {
			p.horizons[i].learn(&d, seconds, &p.season, rate, clipped, &p.of)
		} else {
			p.horizons[i].asked = 0
		}
	}
	p.remember()
}

// remember keeps what is promised now.
func (p *Past) remember() {
	for i, seconds := range horizons {
		p.horizons[i].remember(p.recent.end, seconds, &p.season, &p.of)
	}
}

// release forgets the instances that the previous look requested, after which there was none.
func (p *Past) release() {
	for i := range p.horizons {
		p.horizons[i].asked = 0
	}
}

// Fill adds earlier means of the load, by the minute. The first minute begins at a time (ms), which must be that of a
// whole minute. They show what the load did a day and a week before, and in which minutes of the day it jumped. Loads
// that were learned as they came win where both are known, and nothing is learned of how the load goes on.
//
// A mean hides how high a load was for seconds, and when in the minute it jumped: the jump is placed where one from the
// previous mean to the next leads to the mean of the minute, and a step earlier, as loads take some seconds to rise.
func (p *Past) Fill(begin int64, minutes []Minute) {
	begin += int64(max(0, len(minutes)-mostMinutes)) * minute
	minutes = minutes[max(0, len(minutes)-mostMinutes):]
	end := begin + int64(len(minutes))*minute
	if len(minutes) == 0 || !isTime(begin) || !isTime(end) {
		return
	}
	own := &p.season
	from := season{
		minutes: ring{origin: own.minutes.origin}, fives: ring{origin: own.fives.origin}, jumps: jumps{origin: own.jumps.origin},
	}
	from.see(begin, minutes)
	began, learned := own.minutes.first()
	if p.of.step <= longestStep {
		own.jumps.fill(&from.jumps, func(t int64) bool { return learned && began <= t && t < p.recent.end })
	}
	own.minutes.fill(&from.minutes)
	own.fives.fill(&from.fives)
	if end > p.recent.end || p.recent.newest == 0 { // it goes on from there: rings take no times before the newest
		p.recent.forget(series.FloorDiv(end, p.recent.step)*p.recent.step, end-1)
	}
}

// Expect returns what was learned of the load a number of ticks after the newest of the loads of a run at a time (ms).
func (p *Past) Expect(l *series.Loads, o Options, now int64, ahead float64) decide.Expectation {
	if !p.Fits(o) || p.tooOld(now) {
		return decide.Expectation{}
	}
	var (
		d      description
		memory [maxDescribed]float64
	)
	steps, end, step := p.recent.with(l, memory[:0])
	if !d.describe(steps, end, step) {
		return decide.Expectation{}
	}
	return p.expect(&d, now, ahead*float64(l.Step)/1000, o.Lateness)
}

// expect returns what is known of the load in some seconds, with the margin for a lateness.
func (p *Past) expect(d *description, now int64, seconds, lateness float64) decide.Expectation {
	k := 0
	for k < len(horizons)-2 && 1000*horizons[k] < float64(p.of.step) {
		k++ // it is not looked at
	}
	for k < len(horizons)-2 && seconds > horizons[k+1] {
		k++
	}
	least := int64(leastKnown)
	if horizons[k+1] <= nearest {
		least = leastNear
	}
	near, far := &p.horizons[k], &p.horizons[k+1]
	if !near.knows(least, &p.of) || !far.knows(least, &p.of) {
		return decide.Expectation{}
	}
	share := min(1, max(0, (seconds-horizons[k])/(horizons[k+1]-horizons[k])))
	between := func(a, b float64) float64 { return a + (b-a)*share }
	x := d.features(seconds, &p.season)
	total := d.likely(between(near.at(&x), far.at(&x)), seconds)
	planned := d.planned(total, now, seconds, &p.season)
	margin := math.NaN()
	if near.knows(leastMargin, &p.of) && far.knows(leastMargin, &p.of) {
		a, b := near.marginFor(lateness, &p.of), far.marginFor(lateness, &p.of)
		margin = between(a*near.size, b*far.size) * d.scale
		if lateness > 0 && p.of.lateness > 0 {
			often, jump := p.season.hourly(now, d.at+int64(seconds*1000))
			planned, _ = withJump(planned, jump, margin, often*between(near.price(a), far.price(b))*d.scale)
		}
	}
	r := decide.Expectation{Known: true, Total: total, Planned: planned, Margin: margin, Basis: d.basis(planned, total, seconds)}
	if !series.Finite(r.Total) || !series.Finite(r.Planned) || math.IsInf(r.Margin, 0) {
		return decide.Expectation{}
	}
	return r
}
