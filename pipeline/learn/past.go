// Package learn learns how a load develops, from loads and their times only: how it recurs each day and week, when it
// jumps, and the margin that a lateness requires. It returns the expected load at a horizon for stage five, and writes
// and reads checkpoints. Loads are in units of the aggregate, times in ms.
package learn

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/series"
)

// Learned is the history of a load and what was learned from it: for each of several horizons a correction of
// the present load and the error to expect, and the times of the day at which the load jumps. It depends only
// on the loads that were added. It is not safe for concurrent use. All of its methods are in this file, except
// those for checkpoints.
//
// It changes a forecast in three ways:
//
//   - The load at the horizon is the one that usually follows a load of this shape.
//   - Recurring jumps are planned for.
//   - The margin is the one with which the forecast would have been late for a share Options.Lateness of the
//     time.
//
// Apart from the margin, learning can only raise the planned load.
type Learned struct {
	key      loadKey
	recent   recent
	horizons [len(horizons)]horizon
	season   season
}

const (
	// evaluationInterval is the minimum time between two evaluations of a load (ms).
	evaluationInterval = 15_000
	// settling is the time for which the load of a tick may still change, because some readings are late.
	settling = 15 * time.Second
)

// NewLearned returns an empty history.
func NewLearned(o Options) *Learned {
	return &Learned{key: o.loadKey(), recent: newRecent(o.Interval)}
}

// Clone returns a copy.
func (p *Learned) Clone() *Learned {
	out := *p
	out.recent, out.season = p.recent.clone(), p.season.clone()
	return &out
}

// Shifted returns a copy in which all times are earlier by a duration.
func (p *Learned) Shifted(by time.Duration) *Learned {
	out, ms := p.Clone(), by.Milliseconds()
	out.recent.end -= ms
	out.recent.newest -= ms
	out.season.minutes.origin -= ms
	out.season.fiveMinutes.origin -= ms
	out.season.jumps.origin -= ms
	for i := range out.horizons {
		out.horizons[i].planned.shift(series.FloorDiv(ms, p.key.evaluationEvery()), horizons[i])
	}
	return out
}

// Rewind drops the loads after a time (ms). They are those of a clock that was ahead and was set back.
func (p *Learned) Rewind(t int64) {
	if p.recent.newest <= t {
		return
	}
	p.recent.reset(series.FloorDiv(t, p.recent.step)*p.recent.step, t)
	p.season.rewind(t)
	p.clearRequested()
}

// Known returns how much of the load is known: the evaluated time, in which recent times weigh more, or the
// known part of the last week, whichever is longer.
func (p *Learned) Known() time.Duration {
	looks := 0.0
	for i := range p.horizons {
		// the shortest horizons are not evaluated for a load that is read rarely
		looks = max(looks, p.horizons[i].evaluations)
	}
	return time.Duration(max(int64(looks*float64(p.key.evaluationEvery())),
		p.season.fiveMinutes.knownFor())) * time.Millisecond
}

// Newest returns the time of the newest load (ms); 0 if there is none.
func (p *Learned) Newest() int64 { return p.recent.newest }

// Fits reports whether the history is of a load with these options, and forecasts of it use the history.
func (p *Learned) Fits(o Options) bool {
	return p != nil && !o.Unused && o.loadKey().continues(p.key)
}

// Learn adds the loads of a run, except those that may still change. It starts over if they cannot be compared
// with the previous ones. It does not learn from times that unlearned reports (ms; nil: none), but keeps their
// loads as long as forecasts look back.
func (p *Learned) Learn(l *series.Loads, o Options, unlearned func(t int64) bool) {
	if o.Unused {
		return
	}
	newest := l.Tick(l.N - 1)
	p.expire(newest)
	p.setOptions(o)
	late := max(settling.Milliseconds(), 2*int64(l.Spacing)*l.Step)
	settled := l.Index(newest - late)
	for k := p.recent.after(l.Grid); k < settled; k++ {
		p.addLoad(l.Tick(k), l.Ticks[k].Effective, l.Ticks[k].Clipped, unlearned)
	}
}

// Add adds the load at a time (ms); NaN if it is not known.
func (p *Learned) Add(t int64, load float64, o Options) {
	p.expire(t)
	p.setOptions(o)
	p.addLoad(t, load, false, nil)
}

// maxAge is the age at which the history expires (ms): no recurrence has a longer period.
const maxAge = week

// tooOld reports whether the newest load is so old that the load may have changed since.
func (p *Learned) tooOld(now int64) bool { return p.recent.newest > 0 && now-p.recent.newest > maxAge }

// expire drops the whole history if it is too old.
func (p *Learned) expire(now int64) {
	if p.tooOld(now) {
		*p = Learned{key: p.key, recent: recent{step: p.recent.step}}
		p.recent.reset(0, 0)
	}
}

// setOptions adopts the options, and starts over if loads with them cannot be compared with the previous ones.
func (p *Learned) setOptions(o Options) {
	if of := o.loadKey(); of.continues(p.key) {
		p.key = of
	} else {
		*p = *NewLearned(o)
	}
}

// addLoad adds a load, and evaluates the horizons with each step that an evaluation falls into.
func (p *Learned) addLoad(t int64, load float64, clipped bool, unlearned func(t int64) bool) {
	p.recent.add(t, load, clipped, func(mean, shown float64) {
		if unlearned != nil && unlearned(p.recent.end-p.recent.step) {
			p.season.add(p.recent.end, p.recent.step, math.NaN(), math.NaN())
			p.clearRequested()
			return
		}
		p.season.add(p.recent.end, p.recent.step, mean, shown)
		if series.FloorMod(p.recent.end, evaluationInterval) < p.recent.step {
			p.evaluate(unlearned)
		}
	})
}

// evaluate compares the newest loads with the expected ones, for each horizon, unless the forecast was made at
// an unlearned time.
func (p *Learned) evaluate(unlearned func(t int64) bool) {
	means, step := p.recent.means, float64(p.recent.step)/1000
	around := int(math.Round(aroundTime / step))
	came := means[max(0, len(means)-max(1, 2*around)):]
	rate := 0.0
	for _, v := range came {
		rate += v / float64(len(came)) // NaN if one of them is
	}
	clipped := math.IsNaN(rate)
	if clipped {
		rate = p.recent.lowerBound(max(1, 2*around))
	}
	if math.IsNaN(rate) {
		p.clearRequested()
		p.recordMargins()
		return
	}
	for i, seconds := range horizons {
		ahead := int(math.Round(seconds/step)) + around
		if around == 0 { // steps are longer than that, and the middle of the newest one is in the past
			ahead++
		}
		n, at := len(means)-ahead, p.recent.end-int64(ahead)*p.recent.step
		learns := seconds >= step && n > 0 && (unlearned == nil || !unlearned(at))
		var d description
		learns = learns && d.computeFeatures(means[max(0, n-stepsOf(describedSeconds, step)):n], at, step)
		if learns && !p.season.incident(at, p.recent.end, d.base, rate) {
			p.horizons[i].learn(&d, seconds, &p.season, rate, clipped, &p.key)
		} else {
			p.horizons[i].requested = 0
		}
	}
	p.recordMargins()
}

// recordMargins stores the margins that each horizon plans now.
func (p *Learned) recordMargins() {
	for i, seconds := range horizons {
		p.horizons[i].recordMargin(p.recent.end, seconds, &p.season, &p.key)
	}
}

// clearRequested forgets the number of instances that the previous evaluation requested, after a gap.
func (p *Learned) clearRequested() {
	for i := range p.horizons {
		p.horizons[i].requested = 0
	}
}

// Fill adds earlier means of the load, one per minute. begin is the time of the first one (ms), which must be a
// whole minute. They show the load a day and a week ago, and the minutes of the day in which it jumped. Where
// the load is also known from Learn, that wins. They do not train the regression.
//
// A mean hides how high a load was for seconds, and when in the minute it jumped. The jump is placed so that a
// step from the previous mean to the next one gives the mean of the minute, and a step earlier, because loads
// take some seconds to rise.
func (p *Learned) Fill(begin int64, minutes []Minute) {
	begin += int64(max(0, len(minutes)-maxMinutes)) * minute
	minutes = minutes[max(0, len(minutes)-maxMinutes):]
	end := begin + int64(len(minutes))*minute
	if len(minutes) == 0 || !isTime(begin) || !isTime(end) {
		return
	}
	own := &p.season
	from := season{
		minutes: ring{origin: own.minutes.origin}, fiveMinutes: ring{origin: own.fiveMinutes.origin},
		jumps: jumps{origin: own.jumps.origin},
	}
	from.addMinutes(begin, minutes)
	began, learned := own.minutes.first()
	if p.key.step <= longestStep {
		own.jumps.fill(&from.jumps, func(t int64) bool { return learned && began <= t && t < p.recent.end })
	}
	own.minutes.fill(&from.minutes)
	own.fiveMinutes.fill(&from.fiveMinutes)
	if end > p.recent.end || p.recent.newest == 0 { // continue from there: rings accept no times before the newest
		p.recent.reset(series.FloorDiv(end, p.recent.step)*p.recent.step, end-1)
	}
}

// Expect returns the expected load a number of ticks after the newest load of a run at the time now (ms).
func (p *Learned) Expect(l *series.Loads, o Options, now int64, ahead float64) decide.Expectation {
	if !p.Fits(o) || p.tooOld(now) {
		return decide.Expectation{}
	}
	var (
		d      description
		memory [maxDescribed]float64
	)
	steps, end, step := p.recent.stepsFor(l, memory[:0])
	if !d.computeFeatures(steps, end, step) {
		return decide.Expectation{}
	}
	return p.expect(&d, now, ahead*float64(l.Step)/1000, o.Lateness)
}

// expect returns the expected load in some seconds, with the margin for a lateness.
func (p *Learned) expect(d *description, now int64, seconds, lateness float64) decide.Expectation {
	k := 0
	for k < len(horizons)-2 && 1000*horizons[k] < float64(p.key.step) {
		k++ // this horizon is not evaluated
	}
	for k < len(horizons)-2 && seconds > horizons[k+1] {
		k++
	}
	minTime := int64(minKnown)
	if horizons[k+1] <= nearSeconds {
		minTime = minKnownNear
	}
	near, far := &p.horizons[k], &p.horizons[k+1]
	if !near.observedFor(minTime, &p.key) || !far.observedFor(minTime, &p.key) {
		return decide.Expectation{}
	}
	share := min(1, max(0, (seconds-horizons[k])/(horizons[k+1]-horizons[k])))
	between := func(a, b float64) float64 { return a + (b-a)*share }
	x := d.features(seconds, &p.season)
	total := d.expectedLoad(between(near.at(&x), far.at(&x)), seconds)
	planned := d.plannedLoad(total, now, seconds, &p.season)
	margin := math.NaN()
	if near.observedFor(minMarginKnown, &p.key) && far.observedFor(minMarginKnown, &p.key) {
		a, b := near.marginFor(lateness, &p.key), far.marginFor(lateness, &p.key)
		margin = between(a*near.size, b*far.size) * d.scale
		if lateness > 0 && p.key.lateness > 0 {
			often, jump := p.season.hourly(now, d.at+int64(seconds*1000))
			planned, _ = withJump(planned, jump, margin, often*between(near.marginPrice(a), far.marginPrice(b))*d.scale)
		}
	}
	r := decide.Expectation{Known: true, Total: total, Planned: planned, Margin: margin,
		Basis: d.basis(planned, total, seconds)}
	if !series.Finite(r.Total) || !series.Finite(r.Planned) || math.IsInf(r.Margin, 0) {
		return decide.Expectation{}
	}
	return r
}
