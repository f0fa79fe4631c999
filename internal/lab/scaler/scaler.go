// Package scaler has the scalers that are compared, by name: what clusters do today (hpa-cpu, keda,
// and keda with a trigger on what the load was a day or a week ago), the paper's scaler, Foresail
// in each of the ways that its forecast can reach the replicas, and bounds that know what no scaler
// can know (clairvoyant, instant and instant/hpa-defaults).
//
// What is Foresail's is Foresail's own code: the pipeline, and the external metrics with their rounding.
package scaler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/pipeline"
)

// Setup is what scalers are made from. Each takes of it what it needs.
type Setup struct {
	Threshold float64 // utilisation that a pod is to have, of one event loop
	Min, Max  int

	Params pipeline.Params // of the forecast of foresail-*; Threshold, Min and Max are taken from above
	Paper  pipeline.Params // of the forecast of paper, likewise

	// Metric is what foresail-total, foresail-load and foresail-replicas read of each pod.
	Metric Metric

	// Behavior is the behaviour of the HPA that foresail-total, foresail-load and foresail-replicas
	// go through, and of those of NAME/same-behavior; nil = none. The HPAs of hpa-cpu, keda and
	// NAME/hpa-defaults have none.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior

	// Startup is how long a pod takes to serve: what foresail-* assume until they have seen pods
	// start (0 = what Params say) and what clairvoyant knows.
	Startup time.Duration
	Sources Sources // zero = DefaultSources(Seed)
	Seed    uint64  // of when the periods of scalers begin

	// Past is what foresail-* know of the load before the run, of which they take a copy; nil = nothing.
	Past *pipeline.Learned

	Load    lab.Load // for the bounds: what will arrive
	History History  // for keda/yesterday and keda/last-week; zero = nothing was recorded
	Cost    float64  // for these, and for scalers that read requests: work of a request, in seconds of one event loop
}

// Forecaster is a scaler that goes by a forecast: paper and foresail-*.
type Forecaster interface {
	lab.Scaler
	// Forecast returns what the last decision was made from; false if there was no forecast.
	Forecast() (pipeline.Forecast, bool)
}

// New returns a scaler by its name, for one run.
func New(name string, s Setup) (lab.Scaler, error) {
	for _, m := range slices.Concat(makers, variations, recurrings) {
		if m.name == name {
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			made, err := m.make(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return made, nil
		}
	}
	return nil, fmt.Errorf("scaler: %q: must be one of %s", name, strings.Join(AllNames(), ", "))
}

// check rejects settings that no scaler can use, and fills in sources.
func (s *Setup) check() error {
	if !(s.Threshold > 0 && s.Threshold <= 1) {
		return fmt.Errorf("threshold: %v: must be above 0 and at most 1", s.Threshold)
	}
	if s.Min < 1 || s.Max < s.Min {
		return fmt.Errorf("min and max: %d and %d: must be at least 1, and max at least min", s.Min, s.Max)
	}
	if s.Sources == (Sources{}) {
		s.Sources = DefaultSources(s.Seed)
	}
	return s.Sources.check()
}

// phase is when within a period something happens that has no reason to begin with the run, by its name.
func phase(seed uint64, of string, period time.Duration) int64 {
	return lab.Random(seed, "phase of "+of).Int64N(period.Milliseconds())
}

// clock is when a scaler looks.
type clock struct{ next, period int64 }

func newClock(seed uint64, of string, period time.Duration) clock {
	return clock{next: phase(seed, of, period), period: period.Milliseconds()}
}

// Next implements lab.Scaler.
func (c *clock) Next() int64 { return c.next }

func (c *clock) tick() { c.next += c.period }

// running returns the pods that exist, ready or not.
func running(v *lab.View) []*lab.Pod {
	return slices.DeleteFunc(slices.Clone(v.Pods), func(p *lab.Pod) bool { return !p.Exists(v.Now) })
}

type maker struct {
	name string
	make func(Setup) (lab.Scaler, error)
}

var makers = []maker{
	{"hpa-cpu", asItComes(newCPU)},
	{"keda", asItComes(newKEDA)},
	{"paper", newPaper},
	{"foresail-total", throughHPA(loadTotal)},
	{"foresail-load", throughHPA(loadPerPod)},
	{"foresail-replicas", throughHPA(replicas)},
	{"foresail-direct", newDirect},
	{"clairvoyant", newClairvoyant},
	{"instant", newInstant},
	{"instant/hpa-defaults", newInstantHPA},
}

// variations are scalers with the HPA behaviour of others, so that only what they read differs.
var variations = []maker{
	{"hpa-cpu/same-behavior", behaving(newCPU)},
	{"keda/same-behavior", behaving(newKEDA)},
	{"foresail-total/hpa-defaults", withDefaults(throughHPA(loadTotal))},
	{"foresail-load/hpa-defaults", withDefaults(throughHPA(loadPerPod))},
	{"foresail-replicas/hpa-defaults", withDefaults(throughHPA(replicas))},
}

// recurrings go by what the load was some days ago as well, see [Setup.History].
var recurrings = []maker{
	{"keda/yesterday", asItComes(recurring(day))},
	{"keda/last-week", asItComes(recurring(7 * day))},
}

// Names returns the names of the scalers that there are, in the order in which results list them.
func Names() []string { return namesOf(makers) }

// DefaultNames returns what a comparison needs at least: what clusters use today, what docs/hpa.md
// recommends, and a bound.
func DefaultNames() []string { return []string{"keda", "foresail-total", "clairvoyant"} }

// Variations returns the names of scalers with another HPA behaviour, which results list after the others:
// NAME/same-behavior has Setup.Behavior, as foresail-* do, and NAME/hpa-defaults has the HPA's default.
func Variations() []string { return namesOf(variations) }

// Recurring returns the names of scalers that are keda unless the load was recorded for a day or longer.
func Recurring() []string { return namesOf(recurrings) }

// AllNames returns all that [New] knows.
func AllNames() []string { return slices.Concat(Names(), Variations(), Recurring()) }

func namesOf(all []maker) []string {
	names := make([]string, 0, len(all))
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

// reactive makes a scaler that forecasts nothing, with a behaviour of its HPA; nil = none.
type reactive func(Setup, *autoscalingv2.HorizontalPodAutoscalerBehavior) (lab.Scaler, error)

func asItComes(of reactive) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) { return of(s, nil) }
}

func behaving(of reactive) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) { return of(s, s.Behavior) }
}

func withDefaults(of func(Setup) (lab.Scaler, error)) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) {
		s.Behavior = nil
		return of(s)
	}
}

// RecommendedParams are the defaults of a PredictedMetric of a utilisation, which foresail-* have
// unless others are tried.
func RecommendedParams() pipeline.Params { return defaults(nil) }

// PaperParams are those of the paper's method.
func PaperParams() pipeline.Params { return defaults(&v1alpha1.Holt{}) }

// defaults are those that the API has for a method. Threshold and replicas come from a Setup.
func defaults(holt *v1alpha1.Holt) pipeline.Params {
	p, err := params.FromSpec(v1alpha1.PredictedMetricSpec{
		Threshold: resource.MustParse("700m"), MaxReplicas: new(int32(20)), Saturation: new(resource.MustParse("1")),
		Holt: holt,
	})
	if err != nil {
		panic(err) // of a constant
	}
	p.Threshold, p.Max = 0, 0
	return p
}

// RecommendedBehavior is what docs/hpa.md recommends for an HPA that reads forecasts.
func RecommendedBehavior() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	tolerance, atOnce, twoLooks := resource.MustParse("0"), int32(0), int32(30)
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{
			Tolerance: &tolerance, StabilizationWindowSeconds: &atOnce,
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PercentScalingPolicy, Value: 400, PeriodSeconds: 15},
				{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			},
		},
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &twoLooks},
	}
}
