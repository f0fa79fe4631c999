package learn

import (
	"cmp"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Options describe a load and the decisions that are based on it.
type Options struct {
	Model           series.Model
	Whole           bool          // the load is measured as a whole, not by instance
	Threshold       float64       // τ, per instance, in units of the metric
	Lateness        float64       // the share of the time in which the load may exceed the planned load; 0 = any
	ScaleDownMargin float64       // μ
	Interval        time.Duration // Δt
	Unused          bool          // forecasts of this load do not use the history, so nothing is learned
}

// loadKey holds the options that affect what is learned.
type loadKey struct {
	model           series.Model
	whole           bool
	threshold       float64 // of an instance, in units of the load
	lateness        float64
	scaleDownMargin float64
	step            int64 // ms
}

// evaluationEvery returns the time between two evaluations of a load (ms).
func (k *loadKey) evaluationEvery() int64 { return max(evaluationInterval, k.step) }

// loadKey derives the key from the options.
func (o *Options) loadKey() loadKey {
	model := o.Model
	model.Kind = cmp.Or(model.Kind, series.Linear)
	return loadKey{
		model: model, whole: o.Whole, threshold: o.Model.Load(o.Threshold),
		lateness: o.Lateness, scaleDownMargin: o.ScaleDownMargin, step: stepOf(o.Interval),
	}
}

// continues reports whether loads with this key can be compared with loads of another.
func (k loadKey) continues(other loadKey) bool {
	return k.model == other.model && k.whole == other.whole && k.step == other.step
}
