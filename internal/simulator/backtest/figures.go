package backtest

import "github.com/foresail/foresail/internal/simulator/score"

// Figures are the result of a scaler over all that was played; with several seeds, their mean.
type Figures struct {
	Hours                 float64 // that were played
	PodHours              float64
	AboveThresholdMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	SaturatedMinutes      float64 // seconds in which it was above what a pod can do, divided by 60
	UnderSeconds          float64
	OverSeconds           float64
	Actions               float64
	ScaleUps              float64 // of the actions
	Reversals             float64

	Forecast Errors // of what it scales on; zero for one that forecasts nothing
}

func figuresOf(p score.Pods, seconds int) Figures {
	return Figures{
		Hours: float64(seconds) / 3600, PodHours: p.Seconds / 3600,
		AboveThresholdMinutes: p.AboveThresholdMinutes, SaturatedMinutes: p.SaturatedMinutes,
		UnderSeconds: p.UnderSeconds, OverSeconds: p.OverSeconds, Actions: p.Actions, ScaleUps: p.ScaleUps, Reversals: p.Reversals,
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
	f.ScaleUps += o.ScaleUps
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
	f.ScaleUps /= n
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
