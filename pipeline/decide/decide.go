// Package decide is stage five of the pipeline (paper, section 8): it turns the load now and at the horizon, in units
// of the aggregate, into a number of instances, with the reason for it. [Cooldown] holds changes back (section 9).
//
// The stage exists twice: for Holt's method as the paper has it, and for the adaptive method.
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
	Min, Max   int     // N_min, N_max; Min 0 where the load is measured without instances
	Activation float64 // the load up to which no instance is needed, if Min is 0

	TrendLimit      float64 // γ_0 = tan θ_0: the trend above which a load rises, as a share of its level per tick
	RiskFactor      float64 // k, of Holt
	ScaleDownMargin float64 // μ
	Spillover       float64 // no instance is added for a smaller share of one
	MaxStep         int     // N_step; 0 = no limit

	NoiseMargin float64 // of the adaptive method: the margin in standard deviations of noise, where none is learned
	Lateness    float64 // above 0, the margin is the learned one where that is known
}

// Prospect is the load that a decision is about.
type Prospect struct {
	Level, Error, Trend float64     // the load now, its standard error, and its change per tick
	Growth              float64     // of the load until the horizon, if the trend goes on
	Straight            float64     // the load at the horizon, if the trend goes on
	Noise               float64     // standard deviation of the load of a tick
	Learned             Expectation // of the load at the horizon
	Carriers            float64     // number of instances that carry Level
	Target              int         // N_target
}

// Outlook is a Prospect by instances.
type Outlook struct {
	Level, Error, Trend float64
	Total               float64 // A_H, the load at the horizon
	Damped              float64 // A_ω, the load that instances are needed for
	LoadNow             float64 // P_now, per instance
	LoadPredicted       float64 // P_H, per instance of the target count
	Required            float64 // N(A_ω, τ), instances, as a real number
	Serve               float64 // S_H, the load that an average over instances with target τ scales on

	Target  int
	Learned bool // the margin in Damped was learned
	Idle    bool // no instance is needed
	Need    Need
}

// method is one way to decide. Arguments are values, as pointers would make a run allocate.
type method interface {
	// plan returns A_ω for a load at the horizon.
	plan(p Prospect, total float64) plan
	// served returns S_H of an outlook that is complete but for this and its need.
	served(l Outlook) float64
	// need returns what decide counts instances for.
	need(l Outlook) Need
	// decide returns the decision. Pending: requested instances have not started.
	decide(l Outlook, pending bool) Decision
	// fewest returns the fewest instances that are good enough.
	fewest(l Outlook) int
}

func (o *Options) method() method {
	if o.Adaptive {
		return adaptive{o}
	}
	return holt{o}
}

// leastShare is the share of an instance that any load needs that is not idle. The doors serve no finer one but zero.
const leastShare = 1e-3

// Assess returns the outlook of a prospect.
func Assess(o *Options, p Prospect) Outlook {
	m := o.method()
	l := Outlook{Level: p.Level, Error: p.Error, Trend: p.Trend, Total: p.Straight, Target: p.Target}
	if p.Learned.Known {
		l.Total = p.Learned.Total
	}
	plan := m.plan(p, l.Total)
	l.Damped, l.Learned, l.Need = plan.load, plan.learned, Need{Margin: plan.margin, Basis: plan.basis}
	l.LoadNow = o.Model.PerInstance(l.Level, p.Carriers)
	l.LoadPredicted = o.Model.PerInstance(l.Total, float64(max(1, l.Target)))
	l.Required = o.Model.Required(l.Damped, o.Threshold)
	if l.Idle = o.idle(max(l.Level, l.Total, p.Straight)); l.Idle {
		l.Required = 0
	} else if o.Min == 0 {
		l.Required = max(l.Required, leastShare)
	}
	l.Serve = m.served(l)
	l.Need = m.need(l)
	return l
}

// Finite reports whether all numbers are: the samples may add up to more than a number can hold.
func (l *Outlook) Finite() bool {
	for _, x := range [...]float64{
		l.Level, l.Error, l.Trend, l.Total, l.Damped, l.LoadNow, l.LoadPredicted, l.Required, l.Serve,
	} {
		if !series.Finite(x) {
			return false
		}
	}
	return true
}

// Decide returns the decision of an outlook. Pending: requested instances have not started.
func Decide(o *Options, l *Outlook, pending bool) Decision {
	d := o.method().decide(*l, pending)
	if o.Min > 0 || l.Idle && pending {
		return d
	}
	return wake(d, l)
}

// wake completes a decision where there may be no instances: there is one as soon as the load is above the activation,
// however small a share of an instance it needs, and none while it is not.
func wake(d Decision, l *Outlook) Decision {
	switch {
	case l.Idle:
		d.Reason = Idle
		return d.to(0, l.Target)
	case l.Target == 0:
		d.Reason = Activated
	}
	return d.to(max(1, d.Desired), l.Target)
}

// Bound holds a decision, and what an average scales on, to bounds that the actuator does not know, and which may just
// have begun: no step and no pending instance delays them.
func Bound(o *Options, d Decision, l *Outlook) (bounded Decision, serve float64) {
	serve = max(o.Threshold*float64(o.Min), min(l.Serve, o.Threshold*float64(o.Max)))
	desired := d.Desired
	switch {
	case desired < o.Min:
		desired, d.Reason = o.Min, BelowMinimum
	case desired > o.Max:
		desired, d.Reason = o.Max, AtMaximum
	}
	return d.to(desired, l.Target), serve
}

// Fewest returns the fewest instances that are good enough, within the bounds.
func Fewest(o *Options, l *Outlook) int {
	switch {
	case l.Idle:
		return 0
	case o.Min == 0:
		return clamp(o.method().fewest(*l), 1, o.Max)
	}
	return clamp(o.method().fewest(*l), o.Min, o.Max)
}

// idle reports whether no instance is needed for the largest of the loads now and at the horizon. Noise that is added
// to a forecast keeps no instance alive, and nothing that was learned removes one.
func (o *Options) idle(largest float64) bool {
	return o.Min == 0 && largest <= o.Activation+RoundingSlack*o.Threshold
}

func (o *Options) direction(l *Outlook) Direction {
	if l.Level <= 0 {
		return Steady
	}
	gamma := l.Trend / l.Level
	switch {
	case gamma > o.TrendLimit:
		return Rising
	case gamma < -o.TrendLimit:
		return Falling
	default:
		return Steady
	}
}

// highest returns the largest count that a decision may come to.
func (o *Options) highest(target int) int {
	if o.MaxStep == 0 {
		return o.Max
	}
	return min(target+o.MaxStep, o.Max)
}

// RoundingSlack keeps rounding errors from turning 14.000000000001 instances into 15.
const RoundingSlack = 1e-9

// count converts a whole number of instances, limited to an int32 of the Kubernetes API.
func count(n float64) int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// clamp holds n to [low, high]; where the bounds cross, low wins.
func clamp(n, low, high int) int { return max(low, min(n, high)) }
