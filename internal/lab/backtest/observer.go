package backtest

import (
	"math"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/pipeline"
)

const (
	second = 1000
	// observed is how many seconds baselines look at.
	observed = 90
	// meanOver is how many of them the mean is of: the period of an HPA.
	meanOver = 15
)

// observer has a scaler decide, and measures how far its forecasts are off.
type observer struct {
	lab.Scaler
	load  lab.Load
	cost  float64 // seconds of work of a request
	from  int64   // when what counts begins
	until int64   // what is forecast of a later time is not looked at

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

// observe notes how busy the pods were, together, in each second since the last look.
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

// judge compares a forecast, and what others would have forecast, with what came.
func (o *observer) judge(now int64, f *pipeline.Forecast) {
	at := now + f.Horizon.Milliseconds()
	if now < o.from || at > o.until || len(o.totals) < observed {
		return
	}
	truth := o.load.Rate(at) * o.cost
	last := o.totals[len(o.totals)-1]
	o.errors.N++
	o.errors.Horizon += f.Horizon.Seconds()
	o.errors.Forecast += math.Abs(f.Total - truth)
	o.errors.Naive += math.Abs(last - truth)
	o.errors.Mean += math.Abs(mean(o.totals[len(o.totals)-meanOver:]) - truth)
	o.errors.Linear += math.Abs(max(0, continued(o.totals, f.Horizon.Seconds())) - truth)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// continued is where the straight line of least squares through values, one a second, is so many seconds after the last.
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
