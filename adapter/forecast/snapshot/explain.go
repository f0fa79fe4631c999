package snapshot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Explain returns the decision as a sentence with the values that led to it, or why there is no
// forecast. Status, Events, logs, foresail explain and the page of the dashboard all show this
// sentence.
func (s *Snapshot) Explain() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	return s.Reasoning().String()
}

// Reasoning returns what the sentence of a decision is made of.
func (s *Snapshot) Reasoning() Reasoning {
	f := &s.Forecast
	r := Reasoning{
		Desired: s.Decision.Desired, Target: f.Target, Reason: s.Decision.Reason,
		Horizon: f.Horizon, Threshold: s.Threshold, Each: f.Need.PerInstance,
		Planned: f.Need.Load, Margin: f.Need.Margin, Basis: f.Need.Basis, Limit: f.Need.Max,
		Level: f.Level, Total: f.Total, LoadNow: f.LoadNow, LoadPredicted: f.LoadPredicted,
		Schedules: s.ActiveSchedules,
	}
	switch {
	case r.Reason == pipeline.Idle:
		r.Limit = s.Activation
	case f.Need.Required() > float64(f.Target):
		r.Limit = f.Need.Min
	}
	return r
}

// Reasoning is the values that led to a decision, from which a reader can check it. Loads without a
// comment are those of all instances together.
type Reasoning struct {
	Desired, Target int
	Reason          pipeline.Reason
	Horizon         time.Duration

	Threshold float64 // of an instance, in units of the metric
	Each      float64 // what an instance holds at the threshold
	Planned   float64 // what instances are counted for
	Margin    float64 // the part of it that was added to the basis
	Basis     pipeline.Basis
	// Limit is the bound that the count was compared with: Need.Min if the target is too small for the
	// load, else Need.Max; with Idle the activation.
	Limit float64

	Level, Total           float64
	LoadNow, LoadPredicted float64 // of an instance, in units of the metric

	Schedules []string // that are active
}

// String returns the decision as a sentence with its arithmetic: (basis + margin) / threshold = replicas.
func (r Reasoning) String() string {
	sentence := r.verdict() + ": " + r.values()
	if len(r.Schedules) > 0 {
		sentence += "; schedules: " + strings.Join(r.Schedules, ", ")
	}
	return sentence
}

func (r *Reasoning) verdict() string {
	instead := fmt.Sprintf("%s instead of %d", replicas(r.Desired), r.Target)
	if r.Target == 0 {
		instead = replicas(r.Desired) + " instead of none"
	}
	kept := replicas(r.Target) + " kept"
	switch r.Reason {
	case pipeline.AboveThreshold:
		return instead
	case pipeline.Headroom:
		if r.Desired == r.Target {
			return kept + ", the minimum"
		}
		return instead
	case pipeline.TrendRising:
		if r.Desired == r.Target {
			return kept + ", the load is rising steeply"
		}
		return instead + ", the load is rising steeply"
	case pipeline.BelowMinimum:
		return instead + ", the minimum"
	case pipeline.AtMaximum:
		if whole(r.required()) <= float64(r.Desired) {
			return instead + ", the maximum"
		}
		if r.Desired == r.Target {
			return kept + ", the maximum, although more are needed"
		}
		return instead + ", the maximum, although more are needed"
	case pipeline.ScaleUpPending:
		return kept + ", not all of them have started"
	case pipeline.StillOverloaded:
		return kept + ", the load is falling but still above the threshold"
	case pipeline.Activated:
		return instead + ", the load is above the activation"
	case pipeline.Idle:
		if r.Target == 0 {
			return "no replicas, the load is not above the activation"
		}
		return fmt.Sprintf("no replicas instead of %d, the load is not above the activation", r.Target)
	case pipeline.PodsUnseen:
		return replicas(r.Desired) + ", no fewer than before, as changes of the pods are not seen"
	case pipeline.CoolingDown:
		return kept + " until a cooldown has passed"
	default:
		if r.Target == 1 {
			return "1 replica fits"
		}
		return replicas(r.Target) + " fit"
	}
}

func replicas(n int) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// amountOfReplicas is replicas for a count that is not whole.
func amountOfReplicas(n float64) string {
	if text := amount(n); text != "1" {
		return text + " replicas"
	}
	return replicas(1)
}

// values returns the arithmetic behind a verdict.
func (r *Reasoning) values() string {
	ahead := r.Horizon.Round(time.Second)
	switch r.Reason {
	case pipeline.StillOverloaded: // compares loads of an instance, and counts none
		return fmt.Sprintf("%s a pod now, %s in %s, threshold %s", r.round(r.LoadNow),
			r.round(r.LoadPredicted), ahead, r.round(r.Threshold))
	case pipeline.Idle:
		return fmt.Sprintf("load now %s, forecast %s in %s, activation %s", r.round(r.Level),
			r.round(r.Total), ahead, r.round(r.Limit))
	}
	return fmt.Sprintf("%s / %s = %s%s", r.load(ahead), r.divisor(), amountOfReplicas(r.required()), r.difference())
}

func (r *Reasoning) required() float64 { return r.Planned / r.Each }

// load names the load that instances are counted for, and what it consists of.
func (r *Reasoning) load(ahead time.Duration) string {
	planned, basis := r.rounded(r.Planned), r.rounded(r.Planned-r.Margin)
	margin := r.rounded(planned - basis) // what is shown adds up
	switch {
	case r.Basis == pipeline.FromDamped:
		return fmt.Sprintf("planned load %s (forecast %s in %s, its rise discounted by riskFactor)",
			text(planned), r.round(r.Total), ahead)
	case margin > 0:
		return fmt.Sprintf("planned load %s (%s + margin %s)", text(planned),
			basisOf(r.Basis, text(basis), ahead), text(margin))
	default:
		return basisOf(r.Basis, text(basis), ahead)
	}
}

func basisOf(basis pipeline.Basis, load string, ahead time.Duration) string {
	switch basis {
	case pipeline.FromPresent:
		return "load now " + load
	case pipeline.FromRecent:
		return "load of the last 30s " + load
	case pipeline.FromTrend:
		return fmt.Sprintf("load, if its trend continues, %s in %s", load, ahead)
	case pipeline.FromJump:
		return fmt.Sprintf("recurring jump to %s within %s", load, ahead)
	default:
		return fmt.Sprintf("forecast %s in %s", load, ahead)
	}
}

// divisor is the threshold, or what a pod holds at it where that is not the same.
func (r *Reasoning) divisor() string {
	if each, threshold := r.round(r.Each), r.round(r.Threshold); each != threshold {
		return fmt.Sprintf("%s of a pod at threshold %s", each, threshold)
	}
	return "threshold " + r.round(r.Threshold)
}

// difference returns why the count that was decided is not what is needed, rounded up, where the
// verdict does not say so.
func (r *Reasoning) difference() string {
	desired, needed, limit := float64(r.Desired), whole(r.required()), whole(r.Limit)
	steep := r.Reason == pipeline.TrendRising && r.Desired == r.Target
	counts := r.Reason == pipeline.AboveThreshold || r.Reason == pipeline.TrendRising ||
		r.Reason == pipeline.Headroom || r.Reason == pipeline.NoNeed
	switch {
	case !counts || steep || desired == needed || r.Reason == pipeline.Headroom && r.Desired == r.Target:
		return ""
	case desired < needed && desired < limit:
		return ", limited by maxStep or maxReplicas"
	case desired < needed:
		return fmt.Sprintf(", reduced to %d, as pods may be overfilled by the load of %s", r.Desired,
			amountOfReplicas(r.required()-r.Limit))
	case desired > limit:
		return ", fewer than the minimum"
	default:
		return fmt.Sprintf(", with the margin for scaling down %s", amount(r.Limit))
	}
}

// whole rounds a count up as the pipeline does, with room for values that were stored in 32 bits.
func whole(n float64) float64 { return math.Ceil(n - 1e-6*max(1, n)) }

// shownDigits is how many significant digits of a load are shown at most.
const shownDigits = 6

// rounded rounds a load to the decimals that matter next to the threshold, about a thousandth of it.
func (r *Reasoning) rounded(v float64) float64 {
	decimals := 0.0
	if r.Threshold > 0 {
		decimals = max(0, 2-math.Floor(math.Log10(r.Threshold)))
	}
	if v != 0 {
		decimals = min(decimals, shownDigits-1-math.Floor(math.Log10(math.Abs(v))))
	}
	unit := math.Pow(10, decimals)
	if v = math.Round(v*unit) / unit; v == 0 {
		return 0 // and not -0
	}
	return v
}

func (r *Reasoning) round(v float64) string { return text(r.rounded(v)) }

func text(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// amount formats a number of instances with two decimals, or with as many as tell it from a whole number or from 0.
func amount(n float64) string {
	for digits := 2; digits < shownDigits; digits++ {
		unit := math.Pow(10, float64(digits))
		if shown := math.Round(n*unit) / unit; whole(shown) == whole(n) && (shown != 0 || n == 0) {
			return text(shown)
		}
	}
	return strconv.FormatFloat(n, 'g', 2, 64)
}
