// Package snapshot holds the immutable result that forecasts are published as and that doors serve from.
package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Snapshot is what is known of one PredictedMetric at one moment. It is never changed after it has been published,
// but for Ready and Joint, which a reader gets as they are at the time of reading.
type Snapshot struct {
	Metric     types.NamespacedName // the PredictedMetric
	TargetKind string               // kind and name of its scaleTargetRef
	TargetName string
	Threshold  float64 // τ, per instance, in units of the metric
	StaleAfter time.Duration

	// Err says why there is no forecast (an *Unavailable); while it is not nil Forecast and Decision mean nothing.
	Err      error
	Forecast pipeline.Forecast
	Decision pipeline.Decision // Forecast.Decision after cooldowns
	Joint    Joint             // with the other PredictedMetrics of the target

	// ReplicasLost is since when the planned count of the target cannot be read, zero if it can.
	ReplicasLost time.Time

	Source           string        // the kind of source, such as pods
	NewestSample     time.Time     // zero: no sample yet
	SamplesPerSecond float64       // received for all instances together, over the last ten seconds
	SampleInterval   time.Duration // mean time between two samples of an instance; 0: not known
	SampleDelay      time.Duration // mean age of the newest sample when forecasts are made
	InitTimeout      time.Duration
	Failing          []Failure // instances that could not be read of late, by pod name
	Trouble          error     // what keeps the source as a whole from being read; nil: nothing
	At               time.Time // when this was computed

	// Ready counts the target's pods that are Running and Ready, as the HPA controller counts them.
	Ready int
}

// Undecided tells whether the planned count of the target is not known: a decision is made from it, while a load is not.
// As with samples, a short gap is borne.
func (s *Snapshot) Undecided() bool {
	return s.Err != nil || !s.ReplicasLost.IsZero() && s.At.Sub(s.ReplicasLost) > s.StaleAfter
}

// Coarseness tells how long a change of the load takes to show in the samples (two of them and their delay), and how
// long it may take for the forecast to be of use: half of the horizon, so that the other half is left to act. Both
// are 0 while either is unknown.
func (s *Snapshot) Coarseness() (shows, within time.Duration) {
	if s.SampleInterval == 0 || s.Forecast.Horizon == 0 {
		return 0, 0
	}
	return 2*s.SampleInterval + s.SampleDelay, s.Forecast.Horizon / 2
}

// Failure is an instance that a source could not read.
type Failure struct {
	Pod string // name, in the namespace of the PredictedMetric
	Err error
}

// Reason classifies why there is no forecast, as a word that conditions, metrics and errors share.
type Reason string

// Why there may be no forecast.
const (
	NoReadyPods       Reason = "NoReadyPods"       // the target has no pod that is Ready: there is no load to read
	WaitingForSamples Reason = "WaitingForSamples" // pods are Ready, not all have been read yet
	WarmingUp         Reason = "WarmingUp"         // all are read, for too short a time to tell a trend
	PodsUnreadable    Reason = "PodsUnreadable"    // most pods cannot be read
	Stale             Reason = "Stale"             // the newest sample is too old
	BadSamples        Reason = "BadSamples"        // the samples make no number
	InvalidSpec       Reason = "InvalidSpec"       // the PredictedMetric asks for what cannot be done
)

// Unavailable is the error of a Snapshot without a forecast.
type Unavailable struct {
	Reason  Reason
	Message string // what is missing, and where known what to do
}

func (e *Unavailable) Error() string { return e.Message }
