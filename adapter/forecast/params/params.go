// Package params converts the spec of a PredictedMetric to the parameters of its pipeline.
package params

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// FromSpec converts a spec, defaults filled in, to parameters. It requires only the threshold, so that specs in files may
// leave out target and source.
//
// The rules of a spec are those of its CustomResourceDefinition: the API server evaluates them for objects, ParseSpec for
// files. The error is of what they cannot know, such as the names of time zones, and of what the pipeline requires of any
// parameters, which specs that follow the rules fulfil.
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
	return p, errors.Join(p.Validate(), schedules)
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

// lateness returns the share that a percentage such as 1% stands for, 0 for an absent one.
func lateness(s string) float64 {
	share, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64) // a rule of the API requires the form
	return share / 100
}

func model(m v1alpha1.Model) pipeline.Model {
	return pipeline.Model{Kind: pipeline.ModelKind(m.Type), Baseline: optional(m.Baseline)}
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
