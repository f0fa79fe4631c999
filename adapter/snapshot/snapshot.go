// Package snapshot holds the immutable result that forecasts are published as and that doors serve from.
package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Snapshot is what is known of one PredictedMetric at one moment. It is never changed after it has been published,
// but for Ready, which a reader gets as it is at the time of reading.
type Snapshot struct {
	Metric     types.NamespacedName // the PredictedMetric
	TargetKind string               // kind and name of its scaleTargetRef
	TargetName string
	Threshold  float64 // τ, per instance, in units of the metric
	StaleAfter time.Duration

	// Err says why there is no forecast; while it is not nil Forecast and Decision mean nothing.
	Err      error
	Forecast pipeline.Forecast
	Decision pipeline.Decision // Forecast.Decision after cooldowns

	NewestSample time.Time // zero: no sample yet
	At           time.Time // when this was computed

	// Ready counts the target's pods that are Running and Ready, as the HPA controller counts them.
	Ready int
}
