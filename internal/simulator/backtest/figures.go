package backtest

import (
	"math"

	"github.com/foresail/foresail/internal/simulator"
	"github.com/foresail/foresail/internal/simulator/scaler"
	"github.com/foresail/foresail/internal/simulator/score"
	"github.com/foresail/foresail/pipeline"
)

// Figures are the result of a scaler over all that was played; with several seeds, their mean.
type Figures struct {
	Hours                 float64 // that were played
	PodHours              float64
	AboveThresholdMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	SaturatedMinutes      float64 // seconds in which it was above what a pod can do, divided by 60
	UnderSeconds          float64
	OverSeconds           float64
	Actions               float64
	Reversals             float64

	Forecast Errors // of what it scales on; zero for one that forecasts nothing
}

func figuresOf(p score.Pods, seconds int) Figures {
	return Figures{
		Hours: float64(seconds) / 3600, PodHours: p.Seconds / 3600,
		AboveThresholdMinutes: p.AboveThresholdMinutes, SaturatedMinutes: p.SaturatedMinutes,
		UnderSeconds: p.UnderSeconds, OverSeconds: p.OverSeconds, Actions: p.Actions, Reversals: p.Reversals,
	}
}

// plus adds what happened in another section, or with another seed.
func (f Figures) plus(o Figures) Figures {
	f.Hours += o.Hours
	f.PodHours += o.PodHours
	f.AboveThresholdMinutes += o.AboveThresholdMinutes
	f.SaturatedMinutes += o.SaturatedMinutes
	f.UnderSeconds += o.UnderSeconds
	f.OverSeconds += o.OverSeconds
	f.Actions += o.Actions
	f.Reversals += o.Reversals
	f.Forecast = f.Forecast.plus(o.Forecast)
	return f
}

// per divides what was added up by a number of seeds.
func (f Figures) per(seeds int) Figures {
	n := float64(seeds)
	f.Hours /= n
	f.PodHours /= n
	f.AboveThresholdMinutes /= n
	f.SaturatedMinutes /= n
	f.UnderSeconds /= n
	f.OverSeconds /= n
	f.Actions /= n
	f.Reversals /= n
	return f
}

// AboveThresholdShare is the share of the time that was above the threshold.
func (f Figures) AboveThresholdShare() float64 { return f.AboveThresholdMinutes / (60 * f.Hours) }

// Pods is how many pods there were on average.
func (f Figures) Pods() float64 { return f.PodHours / f.Hours }

// Bill is what pods and time above the threshold cost together, in pod-hours, at so many a minute.
func (f Figures) Bill(perMinute float64) float64 {
	return f.PodHours + perMinute*f.AboveThresholdMinutes
}

// Errors add up the absolute errors of forecasts at their horizon, in pods' work.
type Errors struct {
	N        int
	Horizon  float64 // seconds
	Forecast float64 // of the scaler
	Naive    float64 // of the load of the last second, taken to stay: the scale of the others
	Mean     float64 // of the mean load of the last quarter of a minute, taken to stay
	Linear   float64 // of the straight line through the last minute and a half, continued
}

func (e Errors) plus(o Errors) Errors {
	return Errors{e.N + o.N, e.Horizon + o.Horizon, e.Forecast + o.Forecast, e.Naive + o.Naive, e.Mean + o.Mean, e.Linear + o.Linear}
}

// MASE is the mean absolute error of the scaler's forecast, scaled by that of the naive one; NaN if it made none, or if the
// naive one was never off.
func (e Errors) MASE() float64 { return e.scaled(e.Forecast) }

func (e Errors) scaled(sum float64) float64 {
	if e.N == 0 || e.Naive == 0 {
		return math.NaN()
	}
	return sum / e.Naive
}

const (
	second = 1000
	// observed is how many seconds baselines look at.
	observed = 90
	// meanOver is how many of them the mean is of: the period of an HPA.
	meanOver = 15
)

// observer wraps a scaler and measures the errors of its forecasts.
type observer struct {
	simulator.Scaler
	load  simulator.Load
	cost  float64 // seconds of work of a request
	from  int64   // when what counts begins
	until int64   // what is forecast of a later time is not looked at

	seen   int64 // the end of the last second of totals
	totals []float64
	errors Errors
}

// Decide implements simulator.Scaler.
func (o *observer) Decide(v *simulator.View) int {
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
func (o *observer) observe(v *simulator.View) {
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

// judge compares a forecast, and those of the baselines, with the load that came.
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
