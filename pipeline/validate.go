package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// minInterval is the shortest Interval; with series.MaxTicks it bounds the grid of one run.
const minInterval = 100 * time.Millisecond

// FieldError reports an invalid field by its path in the spec of a PredictedMetric, its value and
// the accepted values. A parameter that is not in the spec is named by its field in Params.
type FieldError struct {
	Field  string
	Value  any
	Accept string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %v: must be %s", e.Field, e.Value, e.Accept)
}

// Validate returns a *FieldError for each invalid parameter, joined; nil if there is none.
func (p Params) Validate() error {
	var v validator
	v.method(p)
	v.model(p)
	v.whole(p)
	v.require(p.Max >= p.Min, "maxReplicas", p.Max, fmt.Sprintf("at least minReplicas (%d)", p.Min))

	v.require(p.Interval >= minInterval && p.Interval%time.Millisecond == 0, "sampleInterval", p.Interval,
		"a whole number of milliseconds, at least "+minInterval.String())
	v.require(p.Window/2 >= p.Interval, "window", p.Window,
		fmt.Sprintf("at least two sample intervals (%s)", 2*p.Interval))
	v.require(p.Interval <= 0 || p.Window/p.Interval <= series.MaxTicks, "window", p.Window,
		fmt.Sprintf("at most %d sample intervals", series.MaxTicks))
	v.durations(p)

	v.require(math.Abs(p.RedistributionShape) <= 50, "redistributionShape", p.RedistributionShape, "between -50 and 50")
	v.share("holt.levelUp", p.LevelUp)
	v.share("holt.levelDown", p.LevelDown)
	v.share("holt.trendUp", p.TrendUp)
	v.share("holt.trendDown", p.TrendDown)
	if s := p.Saturation; s.Enabled {
		v.require(p.Threshold < s.Max && !math.IsInf(s.Max, 0), "saturation", s.Max,
			fmt.Sprintf("finite and above the threshold (%v)", p.Threshold))
		v.require(s.Zone >= 0 && s.Zone < 1, "saturationZone", s.Zone, "at least 0 and below 1")
	}
	v.require(p.HorizonMultiplier > 0 && p.HorizonMultiplier <= 100, "horizonMultiplier",
		p.HorizonMultiplier, "above 0 and at most 100")
	v.require(p.TrendAngle >= 0 && p.TrendAngle < 90, "trendAngle", p.TrendAngle, "degrees, at least 0 and below 90")
	v.require(p.RiskFactor > 0 && !math.IsInf(p.RiskFactor, 0), "riskFactor", p.RiskFactor, "finite and above 0")
	v.require(p.ScaleDownMargin >= 0 && p.ScaleDownMargin <= 100, "scaleDownMargin",
		p.ScaleDownMargin, "between 0 and 100")
	v.require(p.Spillover >= 0 && p.Spillover < 1, "spillover", p.Spillover, "at least 0 and below 1")
	v.require(p.MaxStep >= 0, "maxStep", p.MaxStep, "0 (no limit) or more")
	return errors.Join(v.errs...)
}

// validator collects the errors of fields.
type validator struct{ errs []error }

// require records an error unless ok. Callers write conditions that are false for NaN, so that NaN is rejected.
func (v *validator) require(ok bool, field string, value any, accept string) {
	if !ok {
		v.errs = append(v.errs, &FieldError{Field: field, Value: value, Accept: accept})
	}
}

// share requires a value between 0 and 1.
func (v *validator) share(field string, value float64) {
	v.require(value >= 0 && value <= 1, field, value, "between 0 and 1")
}

// method validates the method and the options that belong to one.
func (v *validator) method(p Params) {
	known := p.Method == "" || p.Method == Holt || p.Method == Adaptive
	v.require(known, "method", string(p.Method), "Holt or Adaptive")
	v.require(!p.Counted || p.Method == Adaptive, "method", string(p.Method), "Adaptive where the load is counted")
	v.require(p.NoiseMargin >= 0 && p.NoiseMargin <= 10, "noiseMargin", p.NoiseMargin, "between 0 and 10")
	v.require(p.Lateness >= 0 && p.Lateness <= 0.5, "lateness", p.Lateness, "between 0 and 0.5")
}

// whole validates the bounds, and the fields that depend on whether the load is measured as a whole.
func (v *validator) whole(p Params) {
	if !p.Whole {
		v.require(p.Min >= 1, "minReplicas", p.Min, "at least 1, or 0 if the source measures the whole target")
		v.require(p.Activation == 0, "activation", p.Activation, "absent unless the source measures the whole target")
		return
	}
	v.require(p.Min >= 0, "minReplicas", p.Min, "at least 0")
	v.require(p.Max != 0 || p.Min != 0, "maxReplicas", p.Max, "at least 1")
	v.require(p.Activation >= 0 && !math.IsInf(p.Activation, 0), "activation", p.Activation, "finite and at least 0")
	v.require(p.Activation == 0 || p.Min == 0, "activation", p.Activation,
		fmt.Sprintf("absent unless minReplicas is 0 (it is %d)", p.Min))
	v.require(p.Model.Kind == "" || p.Model.Kind == Linear, "model", string(p.Model.Kind),
		"Linear if the source measures the whole target")
	v.require(!p.Saturation.Enabled, "saturation", p.Saturation.Max, "absent if the source measures the whole target")
}

// model validates the threshold and the metric model.
func (v *validator) model(p Params) {
	positive := p.Threshold > 0 && !math.IsInf(p.Threshold, 0)
	v.require(positive, "threshold", p.Threshold, "finite and above 0")
	v.require(!positive || p.Threshold >= 1e-100 && p.Threshold <= 1e100, "threshold",
		p.Threshold, "between 1e-100 and 1e+100")
	switch p.Model.Kind {
	case "", Linear, Quadratic:
	case Overhead:
		b := p.Model.Baseline
		v.require(b >= 0 && b < p.Threshold, "baseline", b,
			fmt.Sprintf("at least 0 and below the threshold (%v)", p.Threshold))
		// Scale-down needs N(A, τ/(1+μ)), which is defined only if that threshold is above the baseline too.
		tooWide := b < p.Threshold && b >= p.Threshold/(1+p.ScaleDownMargin)
		v.require(!tooWide, "baseline", b,
			fmt.Sprintf("below threshold/%.4g (%.4g), so that fewer instances are possible", 1+p.ScaleDownMargin,
				p.Threshold/(1+p.ScaleDownMargin)))
	default:
		v.require(false, "model", string(p.Model.Kind), "Linear, Overhead or Quadratic")
	}
}

// durations validates the durations that have only a lower bound.
func (v *validator) durations(p Params) {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"redistributionTimeout", p.RedistributionTimeout},
		{"startupTime", p.StartupTime},
		{"horizon.min", p.HorizonMin},
		{"horizon.reactionDelay", p.ReactionDelay},
		{"pendingExpiry", p.PendingExpiry},
		{"cooldown.upAfterUp", p.Cooldown.UpAfterUp},
		{"cooldown.upAfterDown", p.Cooldown.UpAfterDown},
		{"cooldown.downAfterUp", p.Cooldown.DownAfterUp},
		{"cooldown.downAfterDown", p.Cooldown.DownAfterDown},
	} {
		v.require(d.value >= 0, d.field, d.value, "0s or more")
	}
	v.require(p.HorizonMax >= p.HorizonMin, "horizon.max", p.HorizonMax,
		fmt.Sprintf("at least horizon.min (%s)", p.HorizonMin))
	v.require(p.StaleAfter > 0, "staleAfter", p.StaleAfter, "above 0s")
}
