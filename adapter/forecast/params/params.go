// Package params converts the spec of a PredictedMetric to the parameters of its pipeline.
package params

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// FromSpec converts a spec, defaults filled in, to parameters. It requires only the threshold, so that specs in files may
// leave out target and source. The error joins a *pipeline.FieldError for each problem.
func FromSpec(spec v1alpha1.PredictedMetricSpec) (pipeline.Params, error) {
	s := spec.DeepCopy()
	s.Default()
	p := pipeline.Params{
		Method:    pipeline.Method(s.Forecast.Method),
		Model:     model(s.Model),
		Threshold: number(s.Threshold),
		Min:       int(*s.MinReplicas),

		Whole:      s.Source.Whole(),
		Activation: optional(s.Activation),

		Max: maxReplicas(s.MaxReplicas),

		Interval: s.SampleInterval.Duration,

		RedistributionTimeout: s.Redistribution.Timeout.Duration,
		RedistributionShape:   number(*s.Redistribution.Shape),

		LevelUp:   number(*s.Smoothing.LevelUp),
		LevelDown: number(*s.Smoothing.LevelDown),
		TrendUp:   number(*s.Smoothing.TrendUp),
		TrendDown: number(*s.Smoothing.TrendDown),

		Lateness:    lateness(s.Forecast.Lateness),
		NoiseMargin: optional(s.Forecast.NoiseMargin),

		Saturation: saturation(s.Saturation),

		StartupTime:       s.Startup.Initial.Duration,
		HorizonMultiplier: number(*s.Horizon.Multiplier),
		HorizonMin:        s.Horizon.Min.Duration,
		HorizonMax:        s.Horizon.Max.Duration,
		ReactionDelay:     s.Horizon.ReactionDelay.Duration,

		TrendAngle:      number(*s.Decision.TrendAngle),
		RiskFactor:      number(*s.Decision.RiskFactor),
		ScaleDownMargin: number(*s.Decision.ScaleDownMargin),
		Spillover:       number(*s.Decision.Spillover),
		MaxStep:         int(*s.Decision.MaxStep),
		PendingExpiry:   s.Decision.PendingExpiry.Duration,

		StaleAfter: StaleAfter(s),
		Cooldown: pipeline.Cooldown{
			UpAfterUp:     s.Cooldown.UpAfterUp.Duration,
			UpAfterDown:   s.Cooldown.UpAfterDown.Duration,
			DownAfterUp:   s.Cooldown.DownAfterUp.Duration,
			DownAfterDown: s.Cooldown.DownAfterDown.Duration,
		},
	}
	p.Window, p.WindowFollowsHorizon = window(s)
	_, schedules := Schedules(*s, &p)
	return p, errors.Join(checkBaseline(s.Model), checkNoiseMargin(s.Forecast), checkLateness(s.Forecast), checkStaleAfter(s), inSpec(p.Validate()), schedules)
}

// number returns the float nearest to a quantity, so that 700m and 0.7 are the same.
func number(q resource.Quantity) float64 {
	// Beyond the range of floats this is an infinity, which the pipeline rejects with the name of the field.
	f, _ := strconv.ParseFloat(q.AsDec().String(), 64)
	return f
}

// optional is number, and 0 of what is absent.
func optional(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	return number(*q)
}

// percentage is what the CRD accepts: 0% to 50%, with three digits after the point at most.
var percentage = regexp.MustCompile(`^(50(\.0{1,3})?|[1-4]?[0-9](\.[0-9]{1,3})?)%$`)

// lateness returns the share that 1% stands for, 0 of what is absent or no percentage.
func lateness(s string) float64 {
	if !percentage.MatchString(s) {
		return 0
	}
	share, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64) // it matches
	return share / 100
}

func model(m v1alpha1.Model) pipeline.Model {
	return pipeline.Model{Kind: pipeline.ModelKind(m.Type), Baseline: optional(m.Baseline)}
}

// checkBaseline rejects a baseline that would be ignored, and a missing one that would become 0.
func checkBaseline(m v1alpha1.Model) error {
	const field = "spec.model.baseline"
	switch {
	case m.Type == v1alpha1.ModelOverhead && m.Baseline == nil:
		return &pipeline.FieldError{Field: field, Value: "absent", Accept: "given with type Overhead"}
	case m.Type != v1alpha1.ModelOverhead && m.Baseline != nil:
		return &pipeline.FieldError{Field: field, Value: m.Baseline, Accept: "absent unless type is Overhead"}
	}
	return nil
}

// checkNoiseMargin rejects a margin that would be ignored.
func checkNoiseMargin(f v1alpha1.Forecast) error {
	if f.NoiseMargin == nil || f.Method != v1alpha1.ForecastHolt {
		return nil
	}
	return &pipeline.FieldError{Field: "spec.forecast.noiseMargin", Value: f.NoiseMargin, Accept: "absent unless forecast.method is Adaptive"}
}

// checkLateness rejects what is no percentage, and one that would be ignored.
func checkLateness(f v1alpha1.Forecast) error {
	accept := ""
	switch {
	case f.Lateness == "":
		return nil
	case f.Method == v1alpha1.ForecastHolt:
		accept = "absent unless forecast.method is Adaptive"
	case !percentage.MatchString(f.Lateness):
		accept = "a percentage between 0% and 50%, such as 1%"
	default:
		return nil
	}
	return &pipeline.FieldError{Field: "spec.forecast.lateness", Value: f.Lateness, Accept: accept}
}

// checkStaleAfter rejects a limit that data would exceed between two readings.
func checkStaleAfter(s *v1alpha1.PredictedMetricSpec) error {
	if s.StaleAfter == nil || s.StaleAfter.Duration <= 0 {
		return nil
	}
	if least := 2 * s.Source.Interval(); s.StaleAfter.Duration < least {
		return &pipeline.FieldError{
			Field: "spec.staleAfter", Value: s.StaleAfter.Duration,
			Accept: fmt.Sprintf("at least twice source.%s.interval (%s)", s.Source.Name(), least),
		}
	}
	return nil
}

func saturation(s *v1alpha1.Saturation) pipeline.Saturation {
	if s == nil {
		return pipeline.Saturation{}
	}
	return pipeline.Saturation{Enabled: true, Max: number(s.Max), Zone: number(*s.Zone)}
}

// StaleAfter returns the age from which on samples are not used: where the spec does not say, three intervals of the source, and no less
// than the default.
func StaleAfter(s *v1alpha1.PredictedMetricSpec) time.Duration {
	if s.StaleAfter != nil {
		return s.StaleAfter.Duration
	}
	return max(v1alpha1.DurationAt("staleAfter", s.Forecast.Method).Duration, 3*s.Source.Interval())
}

// window returns the length of the window, and whether it may grow with the horizon: one that is set does not.
func window(s *v1alpha1.PredictedMetricSpec) (length time.Duration, followsHorizon bool) {
	if s.Window != nil {
		return s.Window.Duration, false
	}
	return v1alpha1.DurationAt("window", s.Forecast.Method).Duration, s.Forecast.Method == v1alpha1.ForecastAdaptive
}

// maxReplicas returns the limit, or none where the spec leaves it to the HPA.
func maxReplicas(limit *int32) int {
	if limit == nil {
		return math.MaxInt32
	}
	return int(*limit)
}

// inSpec puts "spec." before the field of every *pipeline.FieldError that err joins.
func inSpec(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var placed []error
	for _, e := range joined.Unwrap() {
		if f, ok := errors.AsType[*pipeline.FieldError](e); ok {
			e = &pipeline.FieldError{Field: "spec." + f.Field, Value: f.Value, Accept: f.Accept}
		}
		placed = append(placed, e)
	}
	return errors.Join(placed...)
}
