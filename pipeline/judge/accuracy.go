// Package judge measures the accuracy of forecasts and the startup time of instances. Loads are in units of the
// aggregate, times in ms.
package judge

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Accuracy compares each forecast with the load at its horizon, and with the error of a naive forecast: that
// the load does not change. Times at which the fleet was clipped or not read are left out, with one exception:
// if a clipped fleet showed more load than the ordered instances carry, the forecast was late, or at its
// maximum. The zero value is ready to use.
type Accuracy struct {
	pending  []pendingForecast // sorted by the time at which they are due
	judged   int64             // the newest judged time (ms)
	lastHour tally
	lastDay  tally
}

// Claim is the part of a forecast that is judged.
type Claim struct {
	Now     int64         // ms
	Tick    int64         // the newest known tick (ms)
	Horizon time.Duration // from Now

	Total     float64 // the load at the horizon
	Holds     float64 // the load that the ordered instances carry
	AtMaximum bool    // the load needed more instances than the maximum allows
}

// pendingForecast is a forecast that is not due yet.
type pendingForecast struct {
	due          int64   // ms
	total, naive float64 // naive is the present load; NaN if it could not be read
	holds        float64 // the load that the ordered instances carry
	atMaximum    bool    // the load needed more instances than the maximum allows
}

// tally is a sum of errors that decays exponentially with its span.
type tally struct {
	time       float64 // the judged time (ms)
	off, naive float64 // absolute errors, multiplied by their time
	late       float64 // the time in which the load exceeded the ordered instances, and more could have been ordered
	atMaximum  float64 // the time in which the load exceeded the maximum number of instances
	lateOrNot  float64 // the time for which it is known whether the load exceeded them
}

// Score summarizes the accuracy of forecasts.
type Score struct {
	Judged time.Duration // the judged time, in which recent times weigh more; 0: nothing is known
	Error  float64       // the mean absolute error of Total at the horizon, in units of the load
	Naive  float64       // the mean absolute error of the forecast that the load does not change

	LateKnown time.Duration // the share of LateKnown in which they could not, and more could have been ordered
	Late      float64       // the share of LateKnown in which they could not, and more could have been ordered
	AtMaximum float64       // the share of LateKnown in which they could not, and the order was at the maximum
}

// Ratio returns Error as a share of Naive; NaN if that is not known.
func (s Score) Ratio() float64 {
	if s.Naive == 0 {
		return math.NaN()
	}
	return s.Error / s.Naive
}

const (
	// rateWithin is half the window over which the load around a time is averaged: the load of a single tick is
	// partly chance.
	rateWithin = 10 * time.Second
	// presentOver is the time over which the present load is averaged: the sync period of an HPA.
	presentOver = 15 * time.Second
	// maxPending bounds the number of forecasts that are not due yet.
	maxPending = 64
	// roundingSlack is the share of a load that may be a rounding error.
	roundingSlack = 1e-9
	// minApart is the minimum time between two judged forecasts.
	minApart = 5 * time.Second
)

// Judge compares the forecasts that are due with the loads of a run, and adds the claim of its forecast to the
// pending ones.
func (a *Accuracy) Judge(l *series.Loads, c Claim) {
	around := max(rateWithin.Milliseconds(), l.Step)
	done := 0
	for ; done < len(a.pending) && a.pending[done].due+around <= c.Tick; done++ {
		x := a.pending[done]
		if came := meanLoadOf(l, x.due-around, x.due+around); came.known {
			a.add(&x, came)
		}
		a.judged = x.due
	}
	a.pending = append(a.pending[:0], a.pending[done:]...)
	apart := max(minApart, c.Horizon/(maxPending-1)).Milliseconds()
	due := c.Now + c.Horizon.Milliseconds()
	if n := len(a.pending); n > 0 && (due < a.pending[n-1].due+apart || n == maxPending) {
		return
	}
	present := meanLoadOf(l, c.Tick-max(presentOver.Milliseconds(), l.Step)+1, c.Tick)
	if !present.known {
		return
	}
	naive := present.load
	if present.clipped {
		naive = math.NaN()
	}
	a.pending = append(a.pending,
		pendingForecast{due: due, total: c.Total, holds: c.Holds, atMaximum: c.AtMaximum, naive: naive})
}

// add adds the errors of a forecast, weighted by the time since the previous one.
func (a *Accuracy) add(x *pendingForecast, came meanLoad) {
	passed := float64(min(x.due-a.judged, time.Minute.Milliseconds()))
	if a.judged == 0 || passed < 0 {
		passed = float64(minApart.Milliseconds())
	}
	a.lastHour.add(x, came, passed, time.Hour)
	a.lastDay.add(x, came, passed, 24*time.Hour)
}

// add decays the sums by the passed time (ms), and adds the errors of a forecast.
func (t *tally) add(x *pendingForecast, came meanLoad, passed float64, span time.Duration) {
	decay := math.Exp(-passed / series.Millis(span))
	t.time, t.off, t.naive = t.time*decay, t.off*decay, t.naive*decay
	t.late, t.atMaximum, t.lateOrNot = t.late*decay, t.atMaximum*decay, t.lateOrNot*decay
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

// score returns the means of the sums.
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

// DropPending drops the forecasts that are not due yet, as after a gap in the readings. The scores stay.
func (a *Accuracy) DropPending() { a.pending, a.judged = nil, 0 }

// LastHour returns the score of roughly the last hour.
func (a *Accuracy) LastHour() Score { return a.lastHour.score() }

// LastDay returns the score of roughly the last day.
func (a *Accuracy) LastDay() Score { return a.lastDay.score() }

// meanLoad is a mean load; if it is clipped, it is a lower bound.
type meanLoad struct {
	load    float64
	clipped bool
	known   bool
}

// meanLoadOf returns the mean load of the ticks between two times. It is unknown unless all of them are known.
func meanLoadOf(l *series.Loads, from, to int64) meanLoad {
	if from <= l.Start-l.Step || to > l.Tick(l.N-1) {
		return meanLoad{}
	}
	first, last := l.Index(from), int(series.FloorDiv(to-l.Start, l.Step))
	if first > last {
		return meanLoad{}
	}
	r := meanLoad{known: true}
	for _, t := range l.Ticks[first : last+1] {
		r.load += t.Effective / float64(last-first+1)
		r.clipped = r.clipped || t.Clipped
	}
	return r
}
