// Package judge compares forecasts with the loads that came, and measures how long instances take to start. Loads are
// in units of the aggregate, times in ms.
package judge

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Accuracy compares forecasts with the load that came at their horizon, and with a forecast that costs nothing: that
// the present load stays. Times at which the fleet was clipped, or not read, are left out; but where a clipped fleet
// showed more load than had been ordered for, it was late, or at its maximum. The zero value is ready.
type Accuracy struct {
	pending  []made // by the time at which they are due
	judged   int64  // the newest time that was judged (ms)
	lastHour tally
	lastDay  tally
}

// Claim is the part of a forecast that is judged.
type Claim struct {
	Now     int64         // ms
	Tick    int64         // the newest one known (ms)
	Horizon time.Duration // counted from Now

	Total     float64 // the load at the horizon
	Holds     float64 // the load that the ordered instances hold
	AtMaximum bool    // more were needed than the maximum allows
}

// made is a forecast whose time has not come.
type made struct {
	due          int64   // ms
	total, naive float64 // naive is NaN where the present load could not be read
	holds        float64 // the load that the ordered instances hold
	atMaximum    bool    // more were needed than the maximum allows
}

// tally adds up errors. Errors that are older than its span count less and less.
type tally struct {
	time       float64 // that was judged (ms)
	off, naive float64 // absolute errors, times that time
	late       float64 // the time in which more came than the ordered instances hold, and more could have been ordered
	atMaximum  float64 // the time in which more came than the maximum number of instances holds
	lateOrNot  float64 // the time of which that is known
}

// Score is how good forecasts have been.
type Score struct {
	Judged time.Duration // the time that was judged, new times counting more than old ones; 0: nothing is known
	Error  float64       // the mean absolute error of Total at the horizon, in units of the load
	Naive  float64       // the error of the present load, had it been taken to stay

	LateKnown time.Duration // the time for which it is known whether the ordered instances could hold the load
	Late      float64       // the share of LateKnown in which they could not, and more could have been ordered
	AtMaximum float64       // the share of LateKnown in which they could not, and the order was at the maximum
}

// Ratio is the error as a share of the naive one; NaN where that is not known.
func (s Score) Ratio() float64 {
	if s.Naive == 0 {
		return math.NaN()
	}
	return s.Error / s.Naive
}

const (
	// rateWithin is the time around a moment whose mean load is its rate: the load of a single tick is partly chance.
	rateWithin = 10 * time.Second
	// presentOver is the time over which the present load is averaged: the sync period of an HPA.
	presentOver = 15 * time.Second
	// mostPending bounds the forecasts that wait for their time.
	mostPending = 64
	// roundingSlack is the share of a load that rounding may add to it.
	roundingSlack = 1e-9
	// leastApart is the least time between two forecasts that are judged.
	leastApart = 5 * time.Second
)

// Judge compares the forecasts whose time has come with the loads of a run, and records the claim of its forecast.
func (a *Accuracy) Judge(l *series.Loads, c Claim) {
	around := max(rateWithin.Milliseconds(), l.Step)
	done := 0
	for ; done < len(a.pending) && a.pending[done].due+around <= c.Tick; done++ {
		x := a.pending[done]
		if came := rateOf(l, x.due-around, x.due+around); came.known {
			a.add(&x, came)
		}
		a.judged = x.due
	}
	a.pending = append(a.pending[:0], a.pending[done:]...)
	apart := max(leastApart, c.Horizon/(mostPending-1)).Milliseconds()
	due := c.Now + c.Horizon.Milliseconds()
	if n := len(a.pending); n > 0 && (due < a.pending[n-1].due+apart || n == mostPending) {
		return
	}
	present := rateOf(l, c.Tick-max(presentOver.Milliseconds(), l.Step)+1, c.Tick)
	if !present.known {
		return
	}
	naive := present.load
	if present.clipped {
		naive = math.NaN()
	}
	a.pending = append(a.pending, made{due: due, total: c.Total, holds: c.Holds, atMaximum: c.AtMaximum, naive: naive})
}

// add adds the errors of a forecast, which count for the time since the previous one.
func (a *Accuracy) add(x *made, came rate) {
	passed := float64(min(x.due-a.judged, time.Minute.Milliseconds()))
	if a.judged == 0 || passed < 0 {
		passed = float64(leastApart.Milliseconds())
	}
	a.lastHour.add(x, came, passed, time.Hour)
	a.lastDay.add(x, came, passed, 24*time.Hour)
}

func (t *tally) add(x *made, came rate, passed float64, span time.Duration) {
	keep := math.Exp(-passed / series.Millis(span))
	t.time, t.off, t.naive = t.time*keep, t.off*keep, t.naive*keep
	t.late, t.atMaximum, t.lateOrNot = t.late*keep, t.atMaximum*keep, t.lateOrNot*keep
	more := came.load > x.holds*(1+roundingSlack)
	switch {
	case more && x.atMaximum:
		t.atMaximum += passed
	case more:
		t.late += passed
	}
	if more || !came.clipped {
		t.lateOrNot += passed
	}
	if !came.clipped && !math.IsNaN(x.naive) {
		t.time += passed
		t.off += passed * math.Abs(x.total-came.load)
		t.naive += passed * math.Abs(x.naive-came.load)
	}
}

func (t tally) score() Score {
	s := Score{Judged: series.Duration(t.time), LateKnown: series.Duration(t.lateOrNot)}
	if t.time > 0 {
		s.Error, s.Naive = t.off/t.time, t.naive/t.time
	}
	if t.lateOrNot > 0 {
		s.Late, s.AtMaximum = t.late/t.lateOrNot, t.atMaximum/t.lateOrNot
	}
	return s
}

// Forget drops the forecasts whose time has not come, as after a gap in the readings. The scores stay.
func (a *Accuracy) Forget() { a.pending, a.judged = nil, 0 }

// LastHour returns the score of about the last hour.
func (a *Accuracy) LastHour() Score { return a.lastHour.score() }

// LastDay returns the score of about the last day.
func (a *Accuracy) LastDay() Score { return a.lastDay.score() }

// rate is a mean load; a clipped one was at least that.
type rate struct {
	load    float64
	clipped bool
	known   bool
}

// rateOf returns the mean load of the ticks from one time to another, which is not known where not all of them are.
func rateOf(l *series.Loads, from, to int64) rate {
	if from <= l.Start-l.Step || to > l.Tick(l.N-1) {
		return rate{}
	}
	first, last := l.Index(from), int(series.FloorDiv(to-l.Start, l.Step))
	if first > last {
		return rate{}
	}
	r := rate{known: true}
	for _, t := range l.Ticks[first : last+1] {
		r.load += t.Effective / float64(last-first+1)
		r.clipped = r.clipped || t.Clipped
	}
	return r
}
