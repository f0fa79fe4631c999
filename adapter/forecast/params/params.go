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
	p := defaults(s)
	p.Threshold, p.Min, p.Max = number(s.Threshold), int(*s.MinReplicas), maxReplicas(s.MaxReplicas)
	p.Whole, p.Activation = s.Source.Whole(), optional(s.Activation)
	p.Model, p.Saturation = model(s), saturation(s.Saturation, p.Saturation.Zone)
	p.Interval, p.StaleAfter = s.SampleInterval.Duration, StaleAfter(s)
	p.RedistributionTimeout = s.RedistributionTimeout.Duration
	p.StartupTime = s.StartupTime.Duration
	p.HorizonMin, p.HorizonMax = s.Horizon.Min.Duration, s.Horizon.Max.Duration
	p.ReactionDelay = s.Horizon.ReactionDelay.Duration
	_, schedules := Schedules(*s, &p)
	return p, errors.Join(checkBaseline(s), checkLateness(s), checkInterval(p.Interval), checkStaleAfter(s), inSpec(p.Validate()), schedules)
}

// defaults returns the parameters of the method of a spec, with those that only this method has.
func defaults(s *v1alpha1.PredictedMetricSpec) pipeline.Params {
	if s.Holt == nil {
		p := pipeline.AdaptiveParams()
		p.Lateness = lateness(s.Lateness)
		return p
	}
	p := pipeline.HoltParams()
	p.Method = pipeline.Holt
	p.LevelUp, p.LevelDown = number(*s.Holt.LevelUp), number(*s.Holt.LevelDown)
	p.TrendUp, p.TrendDown = number(*s.Holt.TrendUp), number(*s.Holt.TrendDown)
	return p
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

// percentage is what the CRD accepts: 0% to 50%, without 0% itself, with three digits after the point at most.
var percentage = regexp.MustCompile(`^(50(\.0{1,3})?|[1-4]?[0-9](\.[0-9]{1,3})?)%$`)

// lateness returns the share that 1% stands for, 0 of what is absent or no percentage.
func lateness(s string) float64 {
	if !percentage.MatchString(s) {
		return 0
	}
	share, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64) // it matches
	return share / 100
}

func model(s *v1alpha1.PredictedMetricSpec) pipeline.Model {
	if s.Baseline != nil {
		return pipeline.Model{Kind: pipeline.Overhead, Baseline: number(*s.Baseline)}
	}
	return pipeline.Model{Kind: pipeline.ModelKind(s.Model)}
}

// checkBaseline rejects a model that would be ignored.
func checkBaseline(s *v1alpha1.PredictedMetricSpec) error {
	if s.Baseline == nil || s.Model == v1alpha1.ModelLinear {
		return nil
	}
	return &pipeline.FieldError{Field: "spec.baseline", Value: s.Baseline, Accept: "absent unless model is Linear"}
}

// checkLateness rejects what is no percentage, and one that would be ignored.
func checkLateness(s *v1alpha1.PredictedMetricSpec) error {
	accept := "a percentage above 0% and up to 50%, such as 1%"
	switch {
	case s.Lateness == "" || s.Holt == nil && lateness(s.Lateness) > 0:
		return nil
	case s.Holt != nil:
		accept = "absent with holt"
	}
	return &pipeline.FieldError{Field: "spec.lateness", Value: s.Lateness, Accept: accept}
}

// maxInterval has the window of the method with the shorter one hold two samples.
const maxInterval = 45 * time.Second

// checkInterval rejects a grid that is too wide for a forecast.
func checkInterval(interval time.Duration) error {
	if interval <= maxInterval {
		return nil
	}
	return &pipeline.FieldError{Field: "spec.sampleInterval", Value: interval, Accept: "at most " + maxInterval.String()}
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

func saturation(highest *resource.Quantity, zone float64) pipeline.Saturation {
	if highest == nil {
		return pipeline.Saturation{}
	}
	return pipeline.Saturation{Enabled: true, Max: number(*highest), Zone: zone}
}

// StaleAfter returns the age from which on samples are not used: where the spec does not say, three intervals of the source, and no less
// than the default.
func StaleAfter(s *v1alpha1.PredictedMetricSpec) time.Duration {
	if s.StaleAfter != nil {
		return s.StaleAfter.Duration
	}
	return max(v1alpha1.DurationAt("staleAfter", s.Method()).Duration, 3*s.Source.Interval())
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
