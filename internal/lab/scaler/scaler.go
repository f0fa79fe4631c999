package scaler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

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

	// Behavior is the behaviour of the HPA that foresail-total, foresail-load and foresail-replicas go through, and of those
	// of NAME/same-behavior; nil = none. The HPAs of hpa-cpu, keda and NAME/hpa-defaults have none.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior

	// Startup is how long a pod takes to serve: what foresail-* assume until they have seen pods start (0 = what Params
	// say) and what clairvoyant knows.
	Startup time.Duration
	Sources Sources // zero = DefaultSources(Seed)
	Seed    uint64  // of when the periods of scalers begin

	Load lab.Load // for the bounds: what will arrive
	Cost float64  // for the bounds, and who reads requests: work of a request, in seconds of one event loop
}

// Forecaster is a scaler that goes by a forecast: paper and foresail-*.
type Forecaster interface {
	lab.Scaler
	// Forecast returns what the last decision was made from; false if there was no forecast.
	Forecast() (pipeline.Forecast, bool)
}

// New returns a scaler by its name, for one run.
func New(name string, s Setup) (lab.Scaler, error) {
	for _, m := range slices.Concat(makers, variations) {
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

// check refuses what no scaler can work with, and fills in sources.
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

// clock tells when a scaler looks.
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
