package learn

import (
	"cmp"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// Options describe a load, and the decisions that are made by it.
type Options struct {
	Model           series.Model
	Whole           bool          // the load is measured as a whole, not by instance
	Threshold       float64       // τ, per instance, in units of the metric
	Lateness        float64       // the share of the time in which the load may exceed the margin; 0 = any
	ScaleDownMargin float64       // μ
	Interval        time.Duration // Δt
	Unused          bool          // forecasts of the load do not look at what was learned, and nothing is
}

// kind is the part of the options by which loads can be compared, or are learned.
type kind struct {
	model           series.Model
	whole           bool
	threshold       float64 // of an instance, in units of the load
	lateness        float64
	scaleDownMargin float64
	step            int64 // ms
}

// lookEach is the time between two looks at a load (ms).
func (k *kind) lookEach() int64 { return max(learnEach, k.step) }

func (o *Options) kind() kind {
	model := o.Model
	model.Kind = cmp.Or(model.Kind, series.Linear)
	return kind{
		model: model, whole: o.Whole, threshold: o.Model.Load(o.Threshold),
		lateness: o.Lateness, scaleDownMargin: o.ScaleDownMargin, step: stepOf(o.Interval),
	}
}

// continues reports whether loads of this kind go on from those of another.
func (k kind) continues(other kind) bool {
	return k.model == other.model && k.whole == other.whole && k.step == other.step
}
