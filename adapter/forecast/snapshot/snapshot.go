// Package snapshot holds the immutable values that forecasters publish and that the doors (the APIs
// that Foresail serves) read.
package snapshot

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// Snapshot is the state of one PredictedMetric at one moment. It never changes after publication. A reader gets a copy
// in which DryRun, Ready and Combined are as of the read.
type Snapshot struct {
	Metric     types.NamespacedName // the PredictedMetric
	TargetKind string               // kind and name of its scaleTargetRef
	TargetName string
	Threshold  float64 // τ, per instance, in units of the metric
	Activation float64 // the load above which there are instances, where there may be none
	StaleAfter time.Duration

	// Err is why there is no forecast (an *Unavailable). While it is set, Forecast and Decision are meaningless.
	Err      error
	Forecast pipeline.Forecast
	Decision pipeline.Decision // Forecast.Decision after cooldowns
	Combined Combined          // with the other PredictedMetrics of the target
	Accuracy Accuracy          // of the forecasts before
	Lateness float64           // the share of the time that they may be late
	Learned  time.Duration     // the time for which the load is known; 0: none, or none yet

	// Bounds are those that hold with the schedules of the spec, nil without any; they are there
	// without a forecast as well.
	Bounds *pipeline.Bounds
	// ActiveSchedules names the schedules that they are of.
	ActiveSchedules []string

	// ReplicasLost is the time since which the replicas of the target cannot be read, zero if they can.
	ReplicasLost time.Time

	// PodsLost is the time since which changes of the pods of the target are not seen, zero if they
	// are. Until that is longer ago than StaleAfter, the forecast is no less than before.
	PodsLost time.Time

	// DryRun is whether nothing may act on the forecast.
	DryRun bool

	Whole            bool          // the load is measured as a whole, not at each pod
	Source           string        // the kind of source, such as pods
	NewestSample     time.Time     // zero: no sample yet
	SamplesPerSecond float64       // received for all instances together, over the last ten seconds
	SampleInterval   time.Duration // mean time between two samples of an instance; 0: not known
	SampleDelay      time.Duration // mean age of the newest sample at the time of a forecast
	StartupTime      time.Duration
	StartupsMeasured int       // start-ups that StartupTime is measured from; 0: it is assumed
	Failing          []Failure // instances whose last reading failed, by pod name
	SourceErr        error     // why the source as a whole cannot be read; nil if it can
	Refused          int       // readings in the window that cannot be a load, and are unknown
	At               time.Time // when this was computed

	// Ready counts the target's pods that are Running and Ready, as the HPA controller counts them.
	Ready int
}

// Accuracy is how good the forecasts of a PredictedMetric have been.
type Accuracy struct{ LastHour, LastDay pipeline.Score }

// TooOld returns whether something that was taken at a time is older than limit now. The whole adapter judges freshness
// by this one rule.
func TooOld(at, now time.Time, limit time.Duration) bool { return now.Sub(at) > limit }

// ForecastTooOld returns whether the forecast was computed longer than StaleAfter ago: the forecaster has stopped.
func (s *Snapshot) ForecastTooOld(now time.Time) bool { return TooOld(s.At, now, s.StaleAfter) }

// SamplesTooOld returns whether the newest sample is older than StaleAfter, or there is none.
func (s *Snapshot) SamplesTooOld(now time.Time) bool {
	return s.NewestSample.IsZero() || TooOld(s.NewestSample, now, s.StaleAfter)
}

// Usable reports whether the forecast may be used now, by the clock of the reader: readers do not notice a forecaster
// that has stopped.
func (s *Snapshot) Usable(now time.Time) bool {
	return s.Err == nil && !s.ForecastTooOld(now) && !s.SamplesTooOld(now)
}

// ValidUntil returns until when the forecast may be used, unless there is none.
func (s *Snapshot) ValidUntil() time.Time {
	return s.At.Add(s.StaleAfter - max(0, s.At.Sub(s.NewestSample)))
}

// HasDecision returns whether a number of replicas has been decided. Unlike a load, a decision needs the replicas that
// the target is set to; they may be unreadable for up to StaleAfter, as samples may.
func (s *Snapshot) HasDecision() bool {
	return s.Err == nil && (s.ReplicasLost.IsZero() || !TooOld(s.ReplicasLost, s.At, s.StaleAfter))
}

// SampleResolution returns after what time a change of the load shows in the samples (two of them and their delay), and
// the longest that is useful: half of the horizon, so that the other half is left to act. Both are 0 while either is
// unknown.
func (s *Snapshot) SampleResolution() (resolution, limit time.Duration) {
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

// Reason classifies why there is no forecast. Conditions, metrics and errors use the same words.
type Reason string

// Why there may be no forecast.
const (
	NoReadyPods       Reason = "NoReadyPods"       // the target has no Ready pod, so there is no load to read
	WaitingForSamples Reason = "WaitingForSamples" // pods are Ready, but not all have been read yet
	SourceFailing     Reason = "SourceFailing"     // nothing has been read, and every reading fails
	WarmingUp         Reason = "WarmingUp"         // all are read, but not for long enough to see a trend
	PodsUnreadable    Reason = "PodsUnreadable"    // most pods cannot be read
	PodsStale         Reason = "PodsStale"         // the pods of the target are known as they were too long ago
	Stale             Reason = "Stale"             // the newest sample is too old
	BadSamples        Reason = "BadSamples"        // no load can be computed from the samples
	InvalidSpec       Reason = "InvalidSpec"       // the spec of the PredictedMetric was rejected
)

// Reasons returns every Reason.
func Reasons() []Reason {
	return []Reason{
		NoReadyPods, WaitingForSamples, SourceFailing, WarmingUp, PodsUnreadable, PodsStale, Stale, BadSamples,
		InvalidSpec,
	}
}

// Unavailable is the error of a Snapshot without a forecast.
type Unavailable struct {
	Reason  Reason
	Message string // what is missing and, where known, what to do
}

func (e *Unavailable) Error() string { return e.Message }

// Combined is the decision of all PredictedMetrics of one target that are not in dry run: the
// largest number of replicas that any of them desires.
type Combined struct {
	Desired   int
	DrivenBy  string   // the name of the PredictedMetric that desires it; the first by name of several
	Undecided []string // the names of those without a decision, sorted; not to be changed
	Metrics   int      // how many there are
}

// Combine combines the decisions of the PredictedMetrics of one target, in any order (paper, section 1.4). Without any
// decision Desired is 0 and meaningless.
func Combine(all []*Snapshot) Combined {
	slices.SortFunc(all, func(a, b *Snapshot) int { return cmp.Compare(a.Metric.Name, b.Metric.Name) })
	c := Combined{Metrics: len(all)}
	decisions := make([]pipeline.Decision, 0, len(all))
	names := make([]string, 0, len(all))
	for _, s := range all {
		if !s.HasDecision() {
			c.Undecided = append(c.Undecided, s.Metric.Name)
			continue
		}
		decisions, names = append(decisions, s.Decision), append(names, s.Metric.Name)
	}
	if best := pipeline.Largest(decisions); best >= 0 {
		c.Desired, c.DrivenBy = decisions[best].Desired, names[best]
	}
	return c
}

// Decided returns whether any of them has a decision.
func (c *Combined) Decided() bool { return len(c.Undecided) < c.Metrics }

// Hold returns what is desired while the target is set to a number of replicas: it is not scaled down while one of its
// PredictedMetrics has no decision.
func (c Combined) Hold(replicas int) Combined {
	if len(c.Undecided) > 0 && len(c.Undecided) < c.Metrics && c.Desired < replicas {
		c.Desired, c.DrivenBy = replicas, c.Undecided[0]
	}
	return c
}
