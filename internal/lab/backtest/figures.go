package backtest

import (
	"math"

	"github.com/foresail/foresail/internal/lab/score"
)

// Figures are what a scaler comes to, over all that was played; with several seeds, on average.
type Figures struct {
	Hours            float64 // that were played
	PodHours         float64
	ViolationMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	SaturatedMinutes float64 // seconds in which it was above what a pod can do, divided by 60
	UnderSeconds     float64
	OverSeconds      float64
	Actions          float64
	Reversals        float64

	Forecast Errors // of what it scales on; zero for one that forecasts nothing
}

func figuresOf(p score.Pods, seconds int) Figures {
	return Figures{
		Hours: float64(seconds) / 3600, PodHours: p.Seconds / 3600,
		ViolationMinutes: p.ViolationMinutes, SaturatedMinutes: p.SaturatedMinutes,
		UnderSeconds: p.UnderSeconds, OverSeconds: p.OverSeconds, Actions: p.Actions, Reversals: p.Reversals,
	}
}

// plus adds what happened in another section, or with another seed.
func (f Figures) plus(o Figures) Figures {
	f.Hours += o.Hours
	f.PodHours += o.PodHours
	f.ViolationMinutes += o.ViolationMinutes
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
	f.ViolationMinutes /= n
	f.SaturatedMinutes /= n
	f.UnderSeconds /= n
	f.OverSeconds /= n
	f.Actions /= n
	f.Reversals /= n
	return f
}

// ViolationShare is the share of the time that was in violation.
func (f Figures) ViolationShare() float64 { return f.ViolationMinutes / (60 * f.Hours) }

// Pods is how many pods there were on average.
func (f Figures) Pods() float64 { return f.PodHours / f.Hours }

// Bill is what pods and violations cost together, in pod-hours, if a minute of violation is worth so many of them.
func (f Figures) Bill(perViolationMinute float64) float64 {
	return f.PodHours + perViolationMinute*f.ViolationMinutes
}

// Errors add up how far forecasts were off what came, in pods' work, at the horizon of the forecast.
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
