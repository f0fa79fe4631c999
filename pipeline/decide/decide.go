// Package decide is stage five of the pipeline (paper, section 8): it computes the number of instances, with a reason,
// from the load now and at the horizon (in units of the aggregate).
//
// The pipeline fills an [Input] from the projection of stage four and the learned [Expectation]. [Assess] computes the
// [Assessment]: the load to plan for and the instances that it needs. [Decide] compares that with the target and
// returns a [Decision]. [Cooldown] delays changes (section 9).
//
// The stage exists twice: for Holt's method as the paper describes it, and for the adaptive method.
package decide

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// Options configure the stage.
type Options struct {
	Adaptive   bool
	Model      series.Model
	Threshold  float64 // τ, per instance, in units of the metric
	Min, Max   int     // N_min, N_max; Min can be 0 if the load is measured as a whole
	Activation float64 // the load up to which no instance is needed, if Min is 0

	TrendLimit      float64 // γ_0 = tan θ_0: a load rises if its trend per tick, as a share of its level, is above that
	RiskFactor      float64 // k, used by Holt
	ScaleDownMargin float64 // μ
	Spillover       float64 // an excess below this fraction of an instance is ignored
	MaxStep         int     // N_step; 0 = no limit

	NoiseMargin float64 // the margin for noise, in standard deviations of the load of a tick
	Lateness    float64 // if above 0, the learned margin is used where it is known
}

// Input is the load to decide about: the projection of stage four, and the expectation that was learned.
type Input struct {
	Level, Error, Trend float64     // the load now, its standard error, and its change per tick
	Growth              float64     // the change of the load until the horizon if the trend continues
	TrendTotal          float64     // the load at the horizon if the trend continues
	Noise               float64     // standard deviation of the load of a tick
	Expected            Expectation // what was learned of the load at the horizon
	Instances           float64     // the number of instances that carry Level
	Target              int         // N_target
}

// Assessment is the load to plan for and the instances that it needs.
type Assessment struct {
	Level, Error, Trend float64
	Total               float64 // A_H, the load at the horizon
	PlannedLoad         float64 // A_ω, the load that instances are planned for
	LoadNow             float64 // P_now, per instance
	LoadPredicted       float64 // P_H, per instance of the target count
	Required            float64 // N(A_ω, τ), the number of instances needed, as a real number
	ServedLoad          float64 // S_H, the load that the autoscaler reads and divides by the threshold τ

	Target        int
	MarginLearned bool // the margin in PlannedLoad was learned
	Idle          bool // no instance is needed
	Need          Need
}

// method is one way to decide. Arguments are passed by value, because pointers would make each run allocate.
type method interface {
	// plan returns A_ω for the load at the horizon.
	plan(p Input, total float64) plan
	// servedLoad returns S_H. All of the assessment is set except ServedLoad and Need.
	servedLoad(l Assessment) float64
	// need returns the load that decide is based on, and the acceptable range.
	need(l Assessment) Need
	// decide returns the decision. pending means that requested instances have not started yet.
	decide(l Assessment, pending bool) Decision
	// minInstances returns the smallest acceptable count.
	minInstances(l Assessment) int
}

// method returns the way to decide that the options select.
func (o *Options) method() method {
	if o.Adaptive {
		return adaptive{o}
	}
	return holt{o}
}

// minRequired is the smallest Required of a load that is not idle. The metrics APIs have no finer value except
// zero.
const minRequired = 1e-3

// Assess computes the load that instances are planned for, and the number of instances it needs.
func Assess(o *Options, p Input) Assessment {
	m := o.method()
	a := Assessment{Level: p.Level, Error: p.Error, Trend: p.Trend, Total: p.TrendTotal, Target: p.Target}
	if p.Expected.Known {
		a.Total = p.Expected.Total
	}
	plan := m.plan(p, a.Total)
	a.PlannedLoad, a.MarginLearned, a.Need = plan.load, plan.marginLearned, Need{Margin: plan.margin, Basis: plan.basis}
	a.LoadNow = o.Model.PerInstance(a.Level, p.Instances)
	a.LoadPredicted = o.Model.PerInstance(a.Total, float64(max(1, a.Target)))
	a.Required = o.Model.Required(a.PlannedLoad, o.Threshold)
	if a.Idle = o.idle(max(a.Level, a.Total, p.TrendTotal)); a.Idle {
		a.Required = 0
	} else if o.Min == 0 {
		a.Required = max(a.Required, minRequired)
	}
	a.ServedLoad = m.servedLoad(a)
	a.Need = m.need(a)
	return a
}

// IsFinite reports whether all numbers are finite. They may not be if the sum of the samples overflows.
func (a *Assessment) IsFinite() bool {
	for _, x := range [...]float64{
		a.Level, a.Error, a.Trend, a.Total, a.PlannedLoad, a.LoadNow, a.LoadPredicted, a.Required, a.ServedLoad,
	} {
		if !series.Finite(x) {
			return false
		}
	}
	return true
}

// Decide returns the decision that follows from an assessment. pending means that requested instances have not
// started yet.
func Decide(o *Options, a *Assessment, pending bool) Decision {
	d := o.method().decide(*a, pending)
	if o.Min > 0 || a.Idle && pending {
		return d
	}
	return scaleFromZero(d, a)
}

// scaleFromZero adjusts a decision for a target that may have no instances: there is at least one if the load
// is above the activation, and none if it is not.
func scaleFromZero(d Decision, a *Assessment) Decision {
	switch {
	case a.Idle:
		d.Reason = Idle
		return d.withDesired(0, a.Target)
	case a.Target == 0:
		d.Reason = Activated
	}
	return d.withDesired(max(1, d.Desired), a.Target)
}

// ApplyBounds limits a decision and the served load to bounds that the autoscaler does not know. The bounds may
// have taken effect just now, so neither MaxStep nor pending instances delay them.
func ApplyBounds(o *Options, d Decision, a *Assessment) (bounded Decision, serve float64) {
	serve = max(o.Threshold*float64(o.Min), min(a.ServedLoad, o.Threshold*float64(o.Max)))
	desired := d.Desired
	switch {
	case desired < o.Min:
		desired, d.Reason = o.Min, BelowMinimum
	case desired > o.Max:
		desired, d.Reason = o.Max, AtMaximum
	}
	return d.withDesired(desired, a.Target), serve
}

// MinInstances returns the smallest acceptable count within the bounds.
func MinInstances(o *Options, a *Assessment) int {
	switch {
	case a.Idle:
		return 0
	case o.Min == 0:
		return clamp(o.method().minInstances(*a), 1, o.Max)
	}
	return clamp(o.method().minInstances(*a), o.Min, o.Max)
}

// idle reports whether no instance is needed for the largest of the loads now and at the horizon. These are
// loads without margin and without what was learned: a margin does not keep an instance, and learning does not
// remove one.
func (o *Options) idle(largest float64) bool {
	return o.Min == 0 && largest <= o.Activation+RoundingSlack*o.Threshold
}

// direction classifies the trend of an assessment.
func (o *Options) direction(a *Assessment) Direction {
	if a.Level <= 0 {
		return Steady
	}
	gamma := a.Trend / a.Level
	switch {
	case gamma > o.TrendLimit:
		return Rising
	case gamma < -o.TrendLimit:
		return Falling
	default:
		return Steady
	}
}

// highest returns the largest count that a decision may request.
func (o *Options) highest(target int) int {
	if o.MaxStep == 0 {
		return o.Max
	}
	return min(target+o.MaxStep, o.Max)
}

// RoundingSlack keeps rounding errors from turning 14.000000000001 instances into 15.
const RoundingSlack = 1e-9

// toCount converts a whole number of instances, limited to an int32 as in the Kubernetes API.
func toCount(n float64) int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// clamp limits n to [low, high]; if low > high, it returns low.
func clamp(n, low, high int) int { return max(low, min(n, high)) }
