// Package params turns the spec of a PredictedMetric into the parameters of its pipeline: the one place where the two
// meet.
package params

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// minStaleAfter is the least that staleAfter defaults to: sources that are read often may miss some readings.
const minStaleAfter = 30 * time.Second

// FromSpec returns the parameters that a spec stands for, defaults filled in. Of the spec it needs threshold and
// maxReplicas alone, so that a spec from a file will do. The error joins a *pipeline.FieldError for each problem.
func FromSpec(spec v1alpha1.PredictedMetricSpec) (pipeline.Params, error) {
	s := spec.DeepCopy()
	s.Default()
	p := pipeline.Params{
		Method:    pipeline.Method(s.Forecast.Method),
		Model:     model(s.Model),
		Threshold: number(s.Threshold),
		Min:       int(*s.MinReplicas),
		Max:       int(s.MaxReplicas),

		Interval: s.SampleInterval.Duration,
		Window:   s.Window.Duration,

		RedistributionTimeout: s.Redistribution.Timeout.Duration,
		RedistributionShape:   number(*s.Redistribution.Shape),

		LevelUp:   number(*s.Smoothing.LevelUp),
		LevelDown: number(*s.Smoothing.LevelDown),
		TrendUp:   number(*s.Smoothing.TrendUp),
		TrendDown: number(*s.Smoothing.TrendDown),

		NoiseMargin: optional(s.Forecast.NoiseMargin),

		Saturation: saturation(s.Saturation),

		InitTimeout:       s.Startup.Initial.Duration,
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

		StaleAfter: staleAfter(s),
		Cooldown: pipeline.Cooldown{
			UpAfterUp:     s.Cooldown.UpAfterUp.Duration,
			UpAfterDown:   s.Cooldown.UpAfterDown.Duration,
			DownAfterUp:   s.Cooldown.DownAfterUp.Duration,
			DownAfterDown: s.Cooldown.DownAfterDown.Duration,
		},
	}
	return p, errors.Join(checkBaseline(s.Model), checkNoiseMargin(s.Forecast), checkStaleAfter(s), inSpec(p.Validate()))
}

// number returns the float nearest to a quantity, so that 700m and 0.7 are the same.
func number(q resource.Quantity) float64 {
	// Beyond the range of floats this is an infinity, which the pipeline refuses by name.
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

func model(m v1alpha1.Model) pipeline.Model {
	return pipeline.Model{Kind: pipeline.ModelKind(m.Type), Baseline: optional(m.Baseline)}
}

// checkBaseline refuses a baseline that would be ignored, and its absence where 0 would be made of it.
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

// checkNoiseMargin refuses a margin that would be ignored.
func checkNoiseMargin(f v1alpha1.Forecast) error {
	if f.NoiseMargin == nil || f.Method == v1alpha1.ForecastAdaptive {
		return nil
	}
	return &pipeline.FieldError{Field: "spec.forecast.noiseMargin", Value: f.NoiseMargin, Accept: "absent unless forecast.method is Adaptive"}
}

// checkStaleAfter refuses a limit that data would pass between one reading and the next.
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

func staleAfter(s *v1alpha1.PredictedMetricSpec) time.Duration {
	if s.StaleAfter != nil {
		return s.StaleAfter.Duration
	}
	return max(minStaleAfter, 3*s.Source.Interval())
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
