package pipeline

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
)

// Forecast is the result of one run, with every number that its decision depends on. Loads are aggregates
// unless the comment says "per instance", which means in units of the metric.
type Forecast struct {
	Now  int64 // ms
	Tick int64 // t_last, the newest tick with a value of any instance (ms)

	Level   float64 // A_now, the smoothed load
	Error   float64 // the standard error of Level, if the method estimates it
	Trend   float64 // the change of Level per tick
	Horizon time.Duration
	Total   float64 // A_H, the load at the horizon
	// PlannedLoad is A_ω, the load that instances are planned for: damped with Holt; with Adaptive at least
	// Level and Total.
	PlannedLoad float64

	Weight float64 // N^w, the sum of the weights of all instances; new instances count less than 1
	Active int     // instances active at Tick
	Target int     // N_target

	LoadNow       float64 // P_now, per instance
	LoadPredicted float64 // P_H, per instance of the target count
	Required      float64 // N(A_ω, τ), the number of instances needed, as a real number
	// ServedLoad is S_H, the load that the autoscaler reads and divides by the threshold τ. It is τ·Required;
	// with Adaptive it is τ·Target while the target is within the acceptable range. Input.Bounds limit it.
	ServedLoad float64

	MarginLearned bool // the margin in PlannedLoad was learned for Params.Lateness; if false, it is Params.NoiseMargin
	Need          Need // how Decision follows from a load

	Idle bool // Params.Min is 0, and neither Level nor Total is above Params.Activation

	HorizonNeeded time.Duration // Horizon without HorizonMax
	HorizonLimit  HorizonLimit  // the setting that makes the horizon shorter than the startup time requires, if any
	Window        time.Duration // the length of the window that was used
	// WindowNeeded is the shortest window from which a trend extends to Horizon; 0 with Holt, which needs none.
	WindowNeeded time.Duration

	Dropped      int // number of rejected samples: not finite, out of the model's range, or in the future
	Decision     Decision
	Holds        float64      // the load that Decision.Desired instances carry at the threshold
	NodeForecast NodeForecast // set if Input.NodeStartupTime is
}

// NodeForecast is a second forecast of a run, for the time at which an instance is ready that has to wait for a
// node that is requested now. The zero value means that it is not known.
type NodeForecast struct {
	Horizon      time.Duration // Forecast.Horizon plus the startup time of a node
	Total        float64       // the load at Horizon
	Desired      int           // instances needed at Horizon, within Params.Min and Max or the bounds of the Input
	WindowNeeded time.Duration // the shortest window from which a trend extends that far; 0 with Holt, which needs none
}

// copyAssessment copies the numbers of an assessment.
func (f *Forecast) copyAssessment(a *decide.Assessment) {
	f.Level, f.Error, f.Trend, f.Total, f.PlannedLoad = a.Level, a.Error, a.Trend, a.Total, a.PlannedLoad
	f.LoadNow, f.LoadPredicted, f.Required, f.ServedLoad = a.LoadNow, a.LoadPredicted, a.Required, a.ServedLoad
	f.MarginLearned, f.Idle, f.Need = a.MarginLearned, a.Idle, a.Need
}

// Claim returns the part of the forecast that is judged later. Without instances, load up to the activation
// counts as held.
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

// ErrNoData is returned if no instance has a value at any tick of the window.
var ErrNoData = errors.New("no tick of the window has a value: at least two samples of one active instance are needed")

// ErrOverflow is returned if the sum of the samples is not a finite number.
var ErrOverflow = errors.New("the samples add up to more than a number can hold")

// StaleError is returned if the newest tick is older than Params.StaleAfter.
type StaleError struct{ Age, Limit time.Duration }

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the newest data is %s old, more than the limit of %s", e.Age, e.Limit)
}
