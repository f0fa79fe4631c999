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

// FromSpec converts a spec, defaults filled in, to parameters. It requires only the threshold, so
// that specs in files may leave out target and source.
//
// The rules of a spec are those of its CustomResourceDefinition: the API server evaluates them for
// objects, ParseSpec for files. The error reports fields that they cannot check, such as the names of time zones, and
// preconditions of the pipeline, which specs that follow the rules fulfil.
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
	return p, errors.Join(p.Validate(), schedules)
}

// defaults returns the parameters of the method of a spec, with those that only this method has.
func defaults(s *v1alpha1.PredictedMetricSpec) pipeline.Params {
	if s.Holt == nil {
		p := pipeline.AdaptiveParams()
		p.Lateness = shareOf(s.Lateness)
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

// optional returns number(q); 0 if q is absent.
func optional(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	return number(*q)
}

// shareOf returns the share that a percentage such as 1% stands for, 0 for an absent one.
func shareOf(s string) float64 {
	share, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64) // a rule of the API requires the form
	return share / 100
}

func model(s *v1alpha1.PredictedMetricSpec) pipeline.Model {
	if s.Baseline != nil {
		return pipeline.Model{Kind: pipeline.Overhead, Baseline: number(*s.Baseline)}
	}
	return pipeline.Model{Kind: pipeline.ModelKind(s.Model)}
}

func saturation(highest *resource.Quantity, zone float64) pipeline.Saturation {
	if highest == nil {
		return pipeline.Saturation{}
	}
	return pipeline.Saturation{Enabled: true, Max: number(*highest), Zone: zone}
}

// StaleAfter returns the age from which on samples are not used: where the spec does not say, three
// intervals of the source, and no less than the default.
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
