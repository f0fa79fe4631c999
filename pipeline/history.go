package pipeline

import (
	"math"
	"math/bits"
	"slices"

	"github.com/foresail/foresail/pipeline/series"
)

const (
	// mostMinutes is how many minutes of history count at most.
	mostMinutes = int((week + beyond) / minute)
	// historyStep is how finely jumps are placed within a minute, and longestStep the longest step in which jumps are found (ms).
	historyStep, longestStep = 5_000, 15_000
	// largestMean is what a mean may be at most: heights of jumps are single numbers.
	largestMean = math.MaxFloat32 / 2
)

// Minute is the mean of a load over a minute, NaN if it is not known. A clipped one was at least that.
type Minute struct {
	Mean    float64
	Clipped bool
}

// Fill adds what a load was before, by the minute. The first minute begins at a time (ms), which must be that of a whole minute. It tells
// what the load did a day and a week before, and in which minutes of the day it jumped. What was learned as it came wins where both are
// known, and stays as it is: of how the load goes on, means of minutes tell nothing.
//
// A mean hides how high a load was for seconds, and when in the minute it jumped: that is taken to be where a jump from the mean before to
// the mean after leads to the mean of the minute, and a step earlier, as loads take some seconds to rise.
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

// see adds means of minutes.
func (s *season) see(begin int64, minutes []Minute) {
	var steps [minute / historyStep]float64
	for i, m := range minutes {
		at := begin + int64(i)*minute
		if m.known() && !m.Clipped {
			s.minutes.add(at+minute, m.Mean, minute, day+beyond)
			s.fives.add(at+minute, m.Mean, 5*minute, week+beyond)
		}
		place(minutes, i, steps[:])
		for k, v := range steps {
			s.jumps.add(at+int64(k+1)*historyStep, historyStep, v)
		}
	}
}

func (m Minute) known() bool { return 0 <= m.Mean && m.Mean <= largestMean }

// place puts the load of a minute into steps.
func place(minutes []Minute, i int, steps []float64) {
	mean := minutes[i].Mean
	if !minutes[i].known() {
		mean = math.NaN()
	}
	for k := range steps {
		steps[k] = mean
	}
	if i == 0 || i+1 == len(minutes) || !minutes[i-1].known() || !minutes[i+1].known() {
		return
	}
	before, after := minutes[i-1].Mean, minutes[i+1].Mean
	if !(before <= mean && mean < after) {
		return
	}
	high := 1 + (mean-before)/(after-before)*float64(len(steps)) // how many of them are as after
	for k := len(steps) - 1; k >= 0; k-- {
		steps[k] = before + (after-before)*min(1, max(0, high))
		high--
	}
}

// fill adds the means of a history of the same width where those of this ring are not known. Of its first stretch only a part may be.
func (r *ring) fill(of *ring) {
	own := *r
	n := int64(len(own.means))
	if n == 0 {
		*r = *of
	}
	if n == 0 || len(of.means) == 0 {
		return
	}
	*r = *of
	if own.open > of.open {
		r.forward(own.open)
	}
	began, _ := own.first()
	for number := max(own.open-n, r.open-n) + 1; number < own.open; number++ {
		if v, in := *own.place(number), *r.place(number); v != unknown && (in == unknown || own.origin+number*own.width > began) {
			r.set(number, v)
		}
	}
	if own.open == r.open {
		r.sum, r.count = own.sum, own.count
	}
}

// forward opens a later stretch. Those between are not known, but for the one that was open.
func (r *ring) forward(number int64) {
	if number > r.open+int64(len(r.means)) {
		r.open, r.sum, r.count, r.known = number, 0, 0, 0
		for i := range r.means {
			r.means[i] = unknown
		}
	}
	for ; r.open < number; r.open++ {
		r.set(r.open, shortOf(r.sum/float64(r.count))) // unknown if nothing was
		r.set(r.open+1, unknown)
		r.sum, r.count = 0, 0
	}
}

// first is when the first stretch begins of which something is known.
func (r *ring) first() (t int64, ok bool) {
	n := int64(len(r.means))
	for number := r.open - n + 1; number <= r.open && n > 0; number++ {
		if number == r.open || *r.place(number) != unknown {
			return r.origin + number*r.width, true
		}
	}
	return 0, false
}

// knownFor is for how long the load is known at least: of the first stretch only a part may be.
func (r *ring) knownFor() int64 { return max(0, r.known-1) * r.width }

// fill adds the jumps of a history, but for those at times at which the load was learned as it came.
func (j *jumps) fill(history *jumps, learned func(t int64) bool) {
	if !j.known {
		*j = *history
		return
	}
	if history.open > j.open {
		j.skip(history.open)
	}
	for _, x := range history.list {
		for days := x.days; days != 0; days &= days - 1 {
			number := history.newest(int64(x.minute), int64(bits.TrailingZeros8(days)))
			if number > j.open-7*minutesPerDay && number <= j.open && !learned(j.origin+number*minute) {
				j.recall(x, days&-days)
			}
		}
	}
	j.sumUp()
}

// newest is the number of the newest minute of a day of the last seven that are known.
func (j *jumps) newest(ofDay, day int64) int64 {
	today := series.FloorDiv(j.open, minutesPerDay)
	ago := series.FloorMod(today-day, 7)
	if ago == 0 && ofDay > series.FloorMod(j.open, minutesPerDay) {
		ago = 7
	}
	return (today-ago)*minutesPerDay + ofDay
}

// recall adds a day on which the load jumped.
func (j *jumps) recall(x jump, day uint8) {
	at, found := j.find(int64(x.minute))
	if !found {
		x.days = day
		j.list = slices.Insert(j.list, at, x)
		return
	}
	own := &j.list[at]
	own.days |= day
	own.first, own.last = min(own.first, x.first), max(own.last, x.last)
}
