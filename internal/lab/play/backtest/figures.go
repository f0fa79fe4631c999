package backtest

import (
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/score"
)

// Figures are the result of a scaler over all that was played; with several seeds, their mean.
type Figures struct {
	score.Pods
	Abrupt   score.Abrupt // above the threshold, as the load rose too fast
	Forecast Errors       // of the load that it scales on; zero for one that forecasts nothing
}

// hpaPeriod is how often an HPA looks: it takes about that and their startup time until pods for a
// load are ready.
const hpaPeriod = 15 * time.Second

// figuresOf returns the figures of a record of a setting. The threshold is that of the options, whatever the
// setting aims at.
func (o *Options) figuresOf(r *lab.Record, s *Setting) Figures {
	return Figures{Pods: score.OfPods(r, o.need(s)), Abrupt: score.OfAbrupt(r, o.Threshold, o.Startup+hpaPeriod)}
}

// plus adds figures of another section, or of another seed.
func (f Figures) plus(o Figures) Figures {
	return Figures{f.Plus(o.Pods), f.Abrupt.Plus(o.Abrupt), f.Forecast.plus(o.Forecast)}
}

// per divides sums by a number of seeds. Errors of forecasts stay sums, as only their ratios count.
func (f Figures) per(seeds int) Figures {
	return Figures{f.Per(seeds), f.Abrupt.Per(seeds), f.Forecast}
}
