package backtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/pipeline"
)

// Way is a way to forecast that costs nothing: what any other must beat.
type Way int

// The ways.
const (
	LastSecond Way = iota // the load of the last second stays: the scale of the others
	LastQuarter
	LastMinute
	StraightLine
	Yesterday // the load of the same time a day ago, times the ratio of now to then
	LastWeek
	numberOfWays
)

func (w Way) String() string {
	return [numberOfWays]string{
		"naive: the last second stays", fmt.Sprintf("mean of the last %d s stays", meanOver),
		fmt.Sprintf("mean of the last %d s stays", minute),
		fmt.Sprintf("straight line through the last %d s", observed), "the same time yesterday, times now / then",
		"the same time last week, times now / then",
	}[w]
}

const (
	second = 1000
	// observed is how many seconds the ways look back at, but for those that look at days.
	observed = 90
	// meanOver is how many of them the mean is of: the period of an HPA.
	meanOver = 15
	minute   = 60

	day = 24 * 3600 * second
	// swing is how much larger or smaller than now a time of another day may have been for its
	// shape to be used.
	swing = 5

	// A load of a second is a rate and the chance of that second. The rate is the mean of so many
	// seconds before and after.
	rateOver = 10

	// Lateness is the share of the time in which more may come than is planned for: that of Pinball.
	Lateness = 0.01

	// LearnsFor is how long a load is seen before it is known which jumps come in some hours.
	LearnsFor = 6 * time.Hour
)

// Loss adds up the errors of a forecast, in pods' work.
type Loss struct {
	Second float64 // absolute, against the load of the second at the horizon
	Rate   float64 // absolute, against the rate at that time, without the chance of a single second
}

func (l *Loss) add(forecast float64, t truth) {
	l.Second += math.Abs(forecast - t.second)
	l.Rate += math.Abs(forecast - t.rate)
}

func (l Loss) plus(o Loss) Loss { return Loss{l.Second + o.Second, l.Rate + o.Rate} }

func (l Loss) per(n int) Loss { return Loss{l.Second / float64(n), l.Rate / float64(n)} }

// truth is the load that came.
type truth struct{ second, rate float64 }

// Compared adds up the errors of a way to forecast, and those of the scaler at the same times.
type Compared struct {
	N         int
	Way, Ours Loss
}

// Errors add up the errors of forecasts at their horizon, in pods' work.
type Errors struct {
	Orders           // of pods, one by each forecast
	Learned  Orders  // those made once the load had been seen for [LearnsFor]
	Horizon  float64 // seconds
	Forecast Loss    // of the scaler
	Ways     [numberOfWays]Compared

	Pinball float64 // loss of what was planned for as the quantile that is passed for [Lateness] of the time
}

// Orders count orders of pods.
type Orders struct {
	N    int
	Late int // of too few for the rate that came, though the maximum allowed for more
}

func (o Orders) plus(p Orders) Orders { return Orders{o.N + p.N, o.Late + p.Late} }

// Lateness is the share of orders of too few pods; NaN without orders.
func (o Orders) Lateness() float64 { return ratio(float64(o.Late), float64(o.N)) }

func (e Errors) plus(o Errors) Errors {
	e.Orders, e.Learned = e.Orders.plus(o.Orders), e.Learned.plus(o.Learned)
	e.Horizon += o.Horizon
	e.Forecast = e.Forecast.plus(o.Forecast)
	e.Pinball += o.Pinball
	for w := range e.Ways {
		a, b := &e.Ways[w], o.Ways[w]
		a.N, a.Way, a.Ours = a.N+b.N, a.Way.plus(b.Way), a.Ours.plus(b.Ours)
	}
	return e
}

// MASE is the mean absolute error of the scaler's forecast, scaled by that of the naive one; NaN if
// it made none, or if the naive one was never off.
func (e Errors) MASE() float64 { return ratio(e.Forecast.Second, e.Ways[LastSecond].Way.Second) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// judge adds a forecast, what is planned for by it, and those of the ways that know something;
// learned if the load had been seen for long.
func (e *Errors) judge(f *pipeline.Forecast, t truth, ways [numberOfWays]float64, learned bool) {
	order := Orders{N: 1}
	if t.rate > f.Holds && f.Decision.Reason != pipeline.AtMaximum {
		order.Late = 1
	}
	e.Orders = e.Orders.plus(order)
	if learned {
		e.Learned = e.Learned.plus(order)
	}
	e.Horizon += f.Horizon.Seconds()
	e.Forecast.add(f.Total, t)
	e.Pinball += pinball(f.PlannedLoad, t.rate, 1-Lateness)
	for w, value := range ways {
		if math.IsNaN(value) {
			continue
		}
		c := &e.Ways[w]
		c.N++
		c.Way.add(value, t)
		c.Ours.add(f.Total, t)
	}
}

// pinball is the loss of a forecast of a quantile.
func pinball(forecast, value, quantile float64) float64 {
	return max(quantile*(value-forecast), (1-quantile)*(forecast-value))
}

// observer wraps a scaler and measures the errors of its forecasts.
type observer struct {
	lab.Scaler
	load   lab.Load
	cost   float64 // seconds of work of a request
	begins int64   // of the load; nothing is known from before
	from   int64   // when what counts begins
	until  int64   // what is forecast of a later time is not looked at

	seen   int64 // the end of the last second of totals
	totals []float64
	errors Errors
}

// Decide implements lab.Scaler.
func (o *observer) Decide(v *lab.View) int {
	n := o.Scaler.Decide(v)
	if f, ok := o.Scaler.(scaler.Forecaster); ok {
		o.observe(v)
		if forecast, ok := f.Forecast(); ok {
			o.judge(v.Now, &forecast)
		}
	}
	return n
}

// observe records how busy the pods were together in each second since the last look.
func (o *observer) observe(v *lab.View) {
	o.seen = max(o.seen, v.Now/second*second-observed*second)
	for ; o.seen+second <= v.Now; o.seen += second {
		total := 0.0
		for _, p := range v.Pods {
			total += p.Busy.Mean(o.seen, o.seen+second)
		}
		o.totals = append(o.totals, total)
	}
	if n := len(o.totals) - observed; n > 0 {
		o.totals = append(o.totals[:0], o.totals[n:]...)
	}
}

// judge compares a forecast, and those of all ways, with the load that came.
func (o *observer) judge(now int64, f *pipeline.Forecast) {
	at := now + f.Horizon.Milliseconds()
	if now < o.from || at+rateOver*second > o.until || len(o.totals) < observed {
		return
	}
	o.errors.judge(f, truth{o.load.Rate(at) * o.cost, o.around(at, rateOver)}, [numberOfWays]float64{
		LastSecond:   o.totals[len(o.totals)-1],
		LastQuarter:  mean(o.totals[len(o.totals)-meanOver:]),
		LastMinute:   mean(o.totals[len(o.totals)-minute:]),
		StraightLine: max(0, continued(o.totals, f.Horizon.Seconds())),
		Yesterday:    o.before(now, at, day),
		LastWeek:     o.before(now, at, 7*day),
	}, now-o.begins >= LearnsFor.Milliseconds())
}

// around is the mean load of so many seconds before a time, of its own, and of as many after.
func (o *observer) around(at int64, seconds int64) float64 {
	sum := 0.0
	for k := -seconds; k <= seconds; k++ {
		sum += o.load.Rate(at + k*second)
	}
	return sum * o.cost / float64(2*seconds+1)
}

// before is the load that a time had some days ago, times how much more or less there is now than
// there was then; NaN if the load does not go back that far.
func (o *observer) before(now, at, ago int64) float64 {
	if now-ago-rateOver*second < o.begins {
		return math.NaN()
	}
	value := o.around(at-ago, rateOver)
	then, present := o.around(now-ago-rateOver*second, rateOver), mean(o.totals[len(o.totals)-meanOver:])
	if then <= 0 || present > swing*then || swing*present < then {
		return value
	}
	return value * present / then
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// continued is where the straight line of least squares through values, one a second, is so many
// seconds after the last.
func continued(values []float64, seconds float64) float64 {
	middle, level := float64(len(values)-1)/2, mean(values)
	var covariance, variance float64
	for i, v := range values {
		x := float64(i) - middle
		covariance += x * (v - level)
		variance += x * x
	}
	return level + covariance/variance*(middle+seconds)
}

// Forecast is the error of one way to forecast.
type Forecast struct {
	Name    string
	Horizon time.Duration // on average
	Error   Loss          // mean, in pods' work
	Scaled  Loss          // by that of the naive way: MASE
	// Ours is the error of Foresail's forecast divided by that of this way, at the times at which
	// there were both.
	Ours Loss
	// Late is the share of the time at which too few pods had been ordered, LateLearned the same
	// once the load had been seen for [LearnsFor], and Pinball the loss of what was planned for;
	// NaN of what plans nothing.
	Late, LateLearned, Pinball float64
}

// forecastsOf returns the ways to forecast, the baselines first. Those have the horizon of Foresail.
func forecastsOf(summary Rows) []Forecast {
	var out []Forecast
	base := slices.IndexFunc(summary, func(row Row) bool { return row.Scaler == ours && row.Forecast.N > 0 })
	if base < 0 {
		base = slices.IndexFunc(summary, func(row Row) bool { return row.Forecast.N > 0 })
	}
	if base < 0 {
		return nil
	}
	e := summary[base].Forecast
	naive := e.Ways[LastSecond].Way.per(e.N)
	for w, c := range e.Ways {
		if c.N > 0 {
			out = append(out, forecastOf(Way(w).String(), c.N, c.Way, e, naive).against(c))
		}
	}
	for _, row := range summary {
		if f := row.Forecast; f.N > 0 {
			one := forecastOf(row.Scaler, f.N, f.Forecast, f, naive)
			one.Late, one.LateLearned, one.Pinball = f.Lateness(), f.Learned.Lateness(), f.Pinball/float64(f.N)
			out = append(out, one)
		}
	}
	return out
}

func forecastOf(name string, n int, sum Loss, e Errors, naive Loss) Forecast {
	return Forecast{
		Name: name, Horizon: time.Duration(e.Horizon / float64(e.N) * float64(time.Second)),
		Error:  sum.per(n),
		Scaled: Loss{ratio(sum.per(n).Second, naive.Second), ratio(sum.per(n).Rate, naive.Rate)},
		Ours:   Loss{math.NaN(), math.NaN()}, Late: math.NaN(), LateLearned: math.NaN(), Pinball: math.NaN(),
	}
}

// against adds how Foresail's forecast did at the same times.
func (f Forecast) against(c Compared) Forecast {
	f.Ours = Loss{ratio(c.Ours.Second, c.Way.Second), ratio(c.Ours.Rate, c.Way.Rate)}
	return f
}
