package backtest

import (
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/score"
)

// Figures are the result of a scaler over all that was played; with several seeds, their mean.
type Figures struct {
	Hours                 float64 // that were played
	PodHours              float64
	AboveThresholdMinutes float64 // seconds in which the load of a ready pod was above the threshold, divided by 60
	AtMaximumMinutes      float64 // the part of AboveThresholdMinutes in which the maximum was too little, see [score.Need.AtMaximum]
	SaturatedMinutes      float64 // seconds in which it was above what a pod can do, divided by 60
	UnderSeconds          float64
	OverSeconds           float64
	Actions               float64
	ScaleUps              float64 // of the actions
	Reversals             float64
	Abrupt                score.Abrupt // above the threshold, as the load rose too fast

	Forecast Errors // of what it scales on; zero for one that forecasts nothing
}

// hpaPeriod is how often an HPA looks: it takes about that and their startup time until pods for a load are ready.
const hpaPeriod = 15 * time.Second

// figuresOf returns the figures of a record of a setting. Whatever the setting aims at, the threshold is that of the options.
func (o *Options) figuresOf(r *lab.Record, s *Setting) Figures {
	p := score.OfPods(r, o.need(s))
	return Figures{
		Hours: float64(len(r.Seconds)) / 3600, PodHours: p.Seconds / 3600,
		AboveThresholdMinutes: p.AboveThresholdMinutes, AtMaximumMinutes: p.AtMaximumMinutes, SaturatedMinutes: p.SaturatedMinutes,
		UnderSeconds: p.UnderSeconds, OverSeconds: p.OverSeconds, Actions: p.Actions, ScaleUps: p.ScaleUps, Reversals: p.Reversals,
		Abrupt: score.OfAbrupt(r, o.Threshold, o.Startup+hpaPeriod),
	}
}

// plus adds what happened in another section, or with another seed.
func (f Figures) plus(o Figures) Figures {
	f.Hours += o.Hours
	f.PodHours += o.PodHours
	f.AboveThresholdMinutes += o.AboveThresholdMinutes
	f.AtMaximumMinutes += o.AtMaximumMinutes
	f.SaturatedMinutes += o.SaturatedMinutes
	f.UnderSeconds += o.UnderSeconds
	f.OverSeconds += o.OverSeconds
	f.Actions += o.Actions
	f.ScaleUps += o.ScaleUps
	f.Reversals += o.Reversals
	f.Abrupt.MomentaryMinutes += o.Abrupt.MomentaryMinutes
	f.Abrupt.SuddenMinutes += o.Abrupt.SuddenMinutes
	f.Forecast = f.Forecast.plus(o.Forecast)
	return f
}

// per divides what was added up by a number of seeds.
func (f Figures) per(seeds int) Figures {
	n := float64(seeds)
	f.Hours /= n
	f.PodHours /= n
	f.AboveThresholdMinutes /= n
	f.AtMaximumMinutes /= n
	f.SaturatedMinutes /= n
	f.UnderSeconds /= n
	f.OverSeconds /= n
	f.Actions /= n
	f.ScaleUps /= n
	f.Reversals /= n
	f.Abrupt.MomentaryMinutes /= n
	f.Abrupt.SuddenMinutes /= n
	return f
}

// TooFewMinutes returns the minutes above the threshold in which the target could have had more pods.
func (f Figures) TooFewMinutes() float64 { return f.AboveThresholdMinutes - f.AtMaximumMinutes }

// AboveThresholdShare is the share of the time that was above the threshold.
func (f Figures) AboveThresholdShare() float64 { return f.AboveThresholdMinutes / (60 * f.Hours) }

// Pods is how many pods there were on average.
func (f Figures) Pods() float64 { return f.PodHours / f.Hours }

// Bill returns what pods and time above the threshold cost together.
func (f Figures) Bill(p *score.Prices) float64 { return p.Bill(f.PodHours, f.AboveThresholdMinutes) }
