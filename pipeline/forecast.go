package pipeline

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
)

// Forecast is the result of one run, with all numbers that its decision depends on. Loads without a unit in
// their comment are aggregates; "per instance" means in units of the metric.
type Forecast struct {
	Now  int64 // ms
	Tick int64 // t_last, the newest tick at which any instance is known (ms)

	Level   float64 // A_now, the smoothed load
	Error   float64 // the standard error of Level, where the method knows it
	Trend   float64 // its change per tick
	Horizon time.Duration
	Total   float64 // A_H, the load at the horizon
	Damped  float64 // A_ω, the load that instances are needed for; with Adaptive no less than Level and Total

	Weight float64 // N^w, instances counted by how far they take part
	Active int     // instances active at Tick
	Target int     // N_target

	LoadNow       float64 // P_now, per instance
	LoadPredicted float64 // P_H, per instance of the target count
	Required      float64 // N(A_ω, τ), instances, as a real number
	// Serve is S_H, the load that an average over instances with target τ scales on. It is τ·Required, with Adaptive
	// τ·Target while that is good enough; within Input.Bounds if there are any.
	Serve float64

	Learned bool // the margin in Damped is the one that kept to Params.Lateness; else it is Params.NoiseMargin
	Need    Need // the load that Decision counts instances for

	Idle bool // Params.Min is 0, and neither Level nor Total is above Params.Activation

	HorizonNeeded time.Duration // Horizon, had there been no HorizonMax
	HorizonLimit  HorizonLimit  // the setting that keeps the forecast short of the startup time, if any
	Window        time.Duration // how far back this forecast looked
	WindowNeeded  time.Duration // the shortest window that carries a trend to Horizon; 0 with Holt, which needs none

	Dropped  int // samples rejected: not finite, out of the model's range, or from the future
	Decision Decision
	Holds    float64 // the load that the instances of Decision hold at the threshold
	Farther  Farther // with Input.NodeStartupTime
}

// Farther is a second forecast of a run: of the time at which an instance could be ready that has to wait for a node
// which is ordered now. It is the zero value while it is not known.
type Farther struct {
	Horizon      time.Duration // Forecast.Horizon and the startup time of a node
	Total        float64       // the load then
	Desired      int           // instances needed then, between Params.Min and Params.Max or those of Input.Bounds
	WindowNeeded time.Duration // the shortest window that carries a trend so far; 0 with Holt, which needs none
}

// take copies the numbers of an outlook.
func (f *Forecast) take(l *decide.Outlook) {
	f.Level, f.Error, f.Trend, f.Total, f.Damped = l.Level, l.Error, l.Trend, l.Total, l.Damped
	f.LoadNow, f.LoadPredicted, f.Required, f.Serve = l.LoadNow, l.LoadPredicted, l.Required, l.Serve
	f.Learned, f.Idle, f.Need = l.Learned, l.Idle, l.Need
}

// Claim returns the part of the forecast that is judged. Without instances, a load up to the activation is held.
func (f *Forecast) Claim(activation float64) judge.Claim {
	c := judge.Claim{
		Now: f.Now, Tick: f.Tick, Horizon: f.Horizon,
		Total: f.Total, Holds: f.Holds, AtMaximum: f.Decision.Reason == AtMaximum,
	}
	if f.Decision.Desired == 0 {
		c.Holds = activation
	}
	return c
}

// ErrNoData is returned if no instance is known at any tick of the window.
var ErrNoData = errors.New("no tick of the window has a value: at least two samples of one active instance are needed")

// ErrOverflow is returned if the samples are so large that their sum is not a finite number.
var ErrOverflow = errors.New("the samples add up to more than a number can hold")

// StaleError is returned if the newest tick is older than Params.StaleAfter.
type StaleError struct{ Age, Limit time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the newest data is %s old, more than the limit of %s", e.Age, e.Limit)
}
