package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
)

// Params configures a pipeline. Field comments give the paper's symbol; HoltParams gives the defaults.
type Params struct {
	Method    Method
	Model     Model
	Threshold float64 // τ, per instance, in units of the metric
	Min, Max  int     // N_min, N_max; Min 0 only with Whole: without instances there is nothing else to read

	// Whole says that the load is measured as a whole, as Input.Total: the requests at a gateway, or the length of a queue. Model is
	// Linear then, and Threshold is what one instance can carry.
	Whole bool
	// Activation is the load up to which there need not be any instance, if Min is 0.
	Activation float64

	Interval time.Duration // Δt, the spacing of the time grid
	Window   time.Duration // W, how far back a forecast looks

	// Counted says that the load is counted, as the requests of pods are, and not measured: it has no noise, and what arrives at once is
	// one event. The adaptive method takes the newest load as it is, and carries a rise on that most of the newest ticks share.
	Counted bool

	// WindowFollowsHorizon makes the window longer where the horizon needs it; see WindowFor.
	WindowFollowsHorizon bool

	RedistributionTimeout time.Duration // T_R; 0 counts a new instance in full at once
	RedistributionShape   float64       // κ; 0 is a straight line

	LevelUp, LevelDown float64 // α↑, α↓
	TrendUp, TrendDown float64 // β↑, β↓

	// NoiseMargin is of the adaptive method: how many standard deviations of the load's noise are added to a forecast while there is no
	// Input.Past of it.
	NoiseMargin float64
	// Lateness is for what share of the time more load may come than the instances that were ordered for it can hold at Threshold. The
	// margin of the adaptive method follows from it where there is an Input.Past; 0 = it is NoiseMargin.
	Lateness float64

	Saturation Saturation

	StartupTime       time.Duration // T_I, until a measured one is given with the Input
	HorizonMultiplier float64       // η
	HorizonMin        time.Duration // H_min
	HorizonMax        time.Duration // H_max
	ReactionDelay     time.Duration // D, added after the bounds: how late the actuator reads the forecast

	TrendAngle      float64       // θ_0 in degrees, of the angle whose tangent is trend/level per tick
	RiskFactor      float64       // k
	ScaleDownMargin float64       // μ
	Spillover       float64       // no instance is added for a smaller share of one
	MaxStep         int           // N_step; 0 = no limit
	PendingExpiry   time.Duration // how long a raised target delays scale-down while instances are missing

	StaleAfter time.Duration // older data is an error
	Cooldown   Cooldown
}

// Method names a way to forecast from the loads of the window.
type Method string

// The methods there are.
const (
	Holt     Method = "Holt"     // the paper's; the zero value means it as well
	Adaptive Method = "Adaptive" // a line through as many of the newest loads as lie on one
)

// HoltParams returns the defaults of the paper's table 8, with the reaction delay of an actuator that reads
// every 15 s (an HPA). Threshold and Max have none and must be set.
func HoltParams() Params {
	return Params{
		Model: Model{Kind: Linear}, Min: 1,
		Interval: time.Second, Window: 90 * time.Second,
		RedistributionTimeout: 30 * time.Second, RedistributionShape: 1,
		LevelUp: 0.2, LevelDown: 0.1, TrendUp: 0.2, TrendDown: 0.1,
		Saturation:  Saturation{Zone: 0.02},
		StartupTime: 25 * time.Second, HorizonMultiplier: 1.2,
		HorizonMin: 10 * time.Second, HorizonMax: 40 * time.Second, ReactionDelay: 15 * time.Second,
		TrendAngle: 10, RiskFactor: 2, ScaleDownMargin: 0.3, Spillover: 0.1, MaxStep: 4,
		PendingExpiry: time.Minute, StaleAfter: 30 * time.Second,
		Cooldown: Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 5 * time.Second, DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute},
	}
}

// AdaptiveParams returns the defaults of the adaptive method. Its window is long enough to show earlier peaks and grows with
// the horizon, the horizon follows the startup time, and there are none of the margins and limits that keep Holt's method
// from acting on noise and overshooting. Threshold and Max must be set.
func AdaptiveParams() Params {
	p := HoltParams()
	p.Method, p.NoiseMargin, p.Lateness = Adaptive, 0.8, 0.01
	p.Window, p.WindowFollowsHorizon = 5*time.Minute, true
	p.HorizonMultiplier, p.HorizonMax = 1, 20*time.Minute
	p.ScaleDownMargin, p.MaxStep = 0.05, 0
	p.Cooldown.DownAfterUp, p.Cooldown.DownAfterDown = 0, 0 // it falls for reasons, not for noise
	return p
}

// minInterval and series.MaxTicks bound the grid of one run.
const minInterval = 100 * time.Millisecond

// FieldError names a wrong field (by its path in a PredictedMetric's spec), its value and what would be accepted.
type FieldError struct {
	Field  string
	Value  any
	Accept string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %v: must be %s", e.Field, e.Value, e.Accept)
}

// Validate returns every broken precondition, each a *FieldError, joined; nil if there is none.
func (p Params) Validate() error {
	var v validator
	v.method(p)
	v.model(p)
	v.whole(p)
	v.require(p.Max >= p.Min, "maxReplicas", p.Max, fmt.Sprintf("at least minReplicas (%d)", p.Min))

	v.require(p.Interval >= minInterval && p.Interval%time.Millisecond == 0, "sampleInterval", p.Interval, "a whole number of milliseconds, at least "+minInterval.String())
	v.require(p.Window/2 >= p.Interval, "window", p.Window, fmt.Sprintf("at least two sample intervals (%s)", 2*p.Interval))
	v.require(p.Interval <= 0 || p.Window/p.Interval <= series.MaxTicks, "window", p.Window, fmt.Sprintf("at most %d sample intervals", series.MaxTicks))
	v.durations(p)

	v.require(math.Abs(p.RedistributionShape) <= 50, "redistribution.shape", p.RedistributionShape, "between -50 and 50")
	v.share("smoothing.levelUp", p.LevelUp)
	v.share("smoothing.levelDown", p.LevelDown)
	v.share("smoothing.trendUp", p.TrendUp)
	v.share("smoothing.trendDown", p.TrendDown)
	if s := p.Saturation; s.Enabled {
		v.require(p.Threshold < s.Max && !math.IsInf(s.Max, 0), "saturation.max", s.Max, fmt.Sprintf("finite and above the threshold (%v)", p.Threshold))
		v.require(s.Zone >= 0 && s.Zone < 1, "saturation.zone", s.Zone, "at least 0 and below 1")
	}
	v.require(p.HorizonMultiplier > 0 && p.HorizonMultiplier <= 100, "horizon.multiplier", p.HorizonMultiplier, "above 0 and at most 100")
	v.require(p.TrendAngle >= 0 && p.TrendAngle < 90, "decision.trendAngle", p.TrendAngle, "degrees, at least 0 and below 90")
	v.require(p.RiskFactor > 0 && !math.IsInf(p.RiskFactor, 0), "decision.riskFactor", p.RiskFactor, "finite and above 0")
	v.require(p.ScaleDownMargin >= 0 && p.ScaleDownMargin <= 100, "decision.scaleDownMargin", p.ScaleDownMargin, "between 0 and 100")
	v.require(p.Spillover >= 0 && p.Spillover < 1, "decision.spillover", p.Spillover, "at least 0 and below 1")
	v.require(p.MaxStep >= 0, "decision.maxStep", p.MaxStep, "0 (no limit) or more")
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

// require takes a condition that is false for NaN, so that NaN is rejected.
func (v *validator) require(ok bool, field string, value any, accept string) {
	if !ok {
		v.errs = append(v.errs, &FieldError{Field: field, Value: value, Accept: accept})
	}
}

func (v *validator) share(field string, value float64) {
	v.require(value >= 0 && value <= 1, field, value, "between 0 and 1")
}

func (v *validator) method(p Params) {
	known := p.Method == "" || p.Method == Holt || p.Method == Adaptive
	v.require(known, "forecast.method", string(p.Method), "Holt or Adaptive")
	v.require(!p.Counted || p.Method == Adaptive, "forecast.method", string(p.Method), "Adaptive where the load is counted")
	v.require(p.NoiseMargin >= 0 && p.NoiseMargin <= 10, "forecast.noiseMargin", p.NoiseMargin, "between 0 and 10")
	v.require(p.Lateness >= 0 && p.Lateness <= 0.5, "forecast.lateness", p.Lateness, "between 0 and 0.5")
}

func (v *validator) whole(p Params) {
	if !p.Whole {
		v.require(p.Min >= 1, "minReplicas", p.Min, "at least 1, or 0 if the source measures the whole target")
		v.require(p.Activation == 0, "activation", p.Activation, "absent unless the source measures the whole target")
		return
	}
	v.require(p.Min >= 0, "minReplicas", p.Min, "at least 0")
	v.require(p.Max != 0 || p.Min != 0, "maxReplicas", p.Max, "at least 1")
	v.require(p.Activation >= 0 && !math.IsInf(p.Activation, 0), "activation", p.Activation, "finite and at least 0")
	v.require(p.Activation == 0 || p.Min == 0, "activation", p.Activation, fmt.Sprintf("absent unless minReplicas is 0 (it is %d)", p.Min))
	v.require(p.Model.Kind == "" || p.Model.Kind == Linear, "model.type", string(p.Model.Kind), "Linear if the source measures the whole target")
	v.require(!p.Saturation.Enabled, "saturation", p.Saturation.Max, "absent if the source measures the whole target")
}

func (v *validator) model(p Params) {
	positive := p.Threshold > 0 && !math.IsInf(p.Threshold, 0)
	v.require(positive, "threshold", p.Threshold, "finite and above 0")
	v.require(!positive || p.Threshold >= 1e-100 && p.Threshold <= 1e100, "threshold", p.Threshold, "between 1e-100 and 1e+100")
	switch p.Model.Kind {
	case "", Linear, Quadratic:
	case Overhead:
		b := p.Model.Baseline
		v.require(b >= 0 && b < p.Threshold, "model.baseline", b, fmt.Sprintf("at least 0 and below the threshold (%v)", p.Threshold))
		// Scale-down needs N(A, τ/(1+μ)), which is defined only if that threshold is above the baseline too.
		tooWide := b < p.Threshold && b >= p.Threshold/(1+p.ScaleDownMargin)
		v.require(!tooWide, "decision.scaleDownMargin", p.ScaleDownMargin, fmt.Sprintf("below threshold/baseline - 1 (%.4g)", p.Threshold/b-1))
	default:
		v.require(false, "model.type", string(p.Model.Kind), "Linear, Overhead or Quadratic")
	}
}

func (v *validator) durations(p Params) {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"redistribution.timeout", p.RedistributionTimeout},
		{"startup.initial", p.StartupTime},
		{"horizon.min", p.HorizonMin},
		{"horizon.reactionDelay", p.ReactionDelay},
		{"decision.pendingExpiry", p.PendingExpiry},
		{"cooldown.upAfterUp", p.Cooldown.UpAfterUp},
		{"cooldown.upAfterDown", p.Cooldown.UpAfterDown},
		{"cooldown.downAfterUp", p.Cooldown.DownAfterUp},
		{"cooldown.downAfterDown", p.Cooldown.DownAfterDown},
	} {
		v.require(d.value >= 0, d.field, d.value, "0s or more")
	}
	v.require(p.HorizonMax >= p.HorizonMin, "horizon.max", p.HorizonMax, fmt.Sprintf("at least horizon.min (%s)", p.HorizonMin))
	v.require(p.StaleAfter > 0, "staleAfter", p.StaleAfter, "above 0s")
}

// redistribution returns the options of stage three.
func (p *Params) redistribution() redistribute.Options {
	return redistribute.Options{Model: p.Model, Timeout: p.RedistributionTimeout, Shape: p.RedistributionShape, Saturation: p.Saturation}
}
