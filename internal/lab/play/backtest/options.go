package backtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/fluid"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

// Options are what to play.
type Options struct {
	Trace           *workload.Trace
	Scalers         []string // of scaler.AllNames
	Threshold       float64  // utilisation of a pod that is not to be exceeded, and that scalers aim at
	Min, Max        int
	Capacity        float64       // requests per second that keep one pod fully busy
	CapacityDerived bool          // from the trace, because none was given
	Startup         time.Duration // from the decision until a pod is ready, on average
	Seeds           []uint64

	Params pipeline.Params // of Foresail; threshold, minimum and maximum are taken from above
	Paper  pipeline.Params // of the paper's scaler, likewise
	// Behavior is that of the HPAs of foresail-*, and of NAME/same-behavior.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	Metric   Metric // that Foresail reads
	// Sources is how scalers get to see pods in a run of a seed; nil = scaler.DefaultSources.
	Sources func(seed uint64) scaler.Sources

	Targets []float64     // of the frontier; none = no frontier
	Prices  *score.Prices // nil: nothing is in money
	Advise  bool          // whether to search for settings
	// FixedMin and FixedMax keep the search from a bound that is not one of the PredictedMetric.
	FixedMin, FixedMax bool

	// Progress is called after each run, never by two at once. All are those that are known of so
	// far. nil = not.
	Progress func(done, all int)
}

// busyAtThreshold is the busy share of a pod at the threshold of a metric without a maximum: any
// would do, as nothing saturates.
const busyAtThreshold = 0.7

// InPods sets parameters in units of a metric as those of a load in parts of a pod, and the
// threshold and the metric with them. It returns the load of a whole pod.
func (o *Options) InPods(p pipeline.Params) (unit float64) {
	model := p.Model
	unit, o.Metric = model.Load(p.Threshold)/busyAtThreshold, Requests
	if p.Saturation.Enabled {
		unit, o.Metric = model.Load(p.Saturation.Max), Utilization
		p.Saturation.Max = 1
	} else {
		p.Saturation = pipeline.Saturation{}
	}
	o.Threshold = model.Load(p.Threshold) / unit
	// Pods share what is measured as a whole, and there always are some.
	p.Model, p.Whole, p.Activation = pipeline.Model{Kind: pipeline.Linear}, false, 0
	o.Params = p
	return unit
}

// Targets returns the targets that a frontier has by default, the threshold among them.
func Targets(threshold float64) []float64 {
	targets := []float64{0.4, 0.5, 0.6, 0.7, 0.8, 0.9, threshold}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// Capacity returns the capacity with which half of the most pods hold the threshold under all but
// the largest hundredth of a trace's rates.
func Capacity(t *workload.Trace, threshold float64, most int) (float64, error) {
	rates := make([]float64, 0, t.Length()/t.Step+1)
	for at := time.Duration(0); at <= t.Length(); at += t.Step {
		rates = append(rates, t.Rate(at.Milliseconds()))
	}
	slices.Sort(rates)
	high := rates[int(math.Ceil(0.99*float64(len(rates))))-1]
	if high <= 0 {
		return 0, errors.New("the trace is zero nearly everywhere: a capacity cannot be derived from it")
	}
	return high / (threshold * math.Max(1, float64(most)/2)), nil
}

// Validate finds what no run could be played with.
func (o *Options) Validate() error {
	if least := 10 * time.Minute; o.Trace.Length() < least {
		return fmt.Errorf("the trace is %s long: must be at least %s", o.Trace.Length(), least)
	}
	if o.Trace.Largest() <= 0 {
		return errors.New("the trace is zero everywhere: there is nothing to play")
	}
	if most := 400 * 24 * time.Hour; o.Trace.Length() > most {
		return fmt.Errorf("the trace is %s long: must be at most %s", o.Trace.Length(), most)
	}
	for _, name := range o.Scalers {
		s := o.setting(name)
		if _, err := o.scaler(&s, o.Trace, before{}, 1); err != nil {
			return err
		}
	}
	return nil
}

// need returns what pods of a setting are needed for, whatever it aims at.
func (o *Options) need(s *Setting) score.Need {
	return score.Need{Threshold: o.Threshold, Min: s.Min, Max: s.Max}
}

// setting is how a scaler is set unless something else is tried.
func (o *Options) setting(name string) Setting {
	s := Setting{Scaler: name, Target: o.Threshold, Min: o.Min, Max: o.Max, Params: o.Params, Metric: Utilization}
	if isOurs(name) {
		s.Metric = o.Metric
	}
	return s
}

// exact reports whether the trace counts the requests of each second.
func (o *Options) exact() bool { return o.Trace.Counts() }

// load is what is played.
func (o *Options) load() lab.Load {
	if o.Trace.Step <= time.Second {
		return counted{o.Trace}
	}
	return o.Trace
}

// recorded is the load as Prometheus has it, in the time of a section.
func (o *Options) recorded(part section, seed uint64) scaler.History {
	load := o.load()
	if !o.exact() {
		load = fluid.Recorded(load, seed)
	}
	return scaler.History{Load: part.load(load), From: part.begins()}
}

// isOurs reports whether a scaler is one of Foresail's.
func isOurs(name string) bool { return strings.HasPrefix(name, "foresail-") }

// scaler makes the scaler of a run.
func (o *Options) scaler(s *Setting, load lab.Load, known before, seed uint64) (lab.Scaler, error) {
	p := s.Params
	if s.Metric == Requests {
		p.Saturation = pipeline.Saturation{}
	}
	startup := o.Startup
	if s.Scaler == "clairvoyant" {
		startup = fluid.LongestStartup(startup) + time.Second // no pod is ever late
	}
	var sources scaler.Sources
	if o.Sources != nil {
		sources = o.Sources(seed)
	}
	return scaler.New(s.Scaler, scaler.Setup{
		Threshold: s.Target, Min: s.Min, Max: s.Max, Params: p, Paper: o.Paper, Behavior: o.Behavior,
		Startup: startup, Sources: sources, Seed: seed, Load: load, Past: known.past, History: known.recorded,
		Cost: 1 / o.Capacity,
	})
}

// beyondMax is for how many minutes the maximum number of pods would have been too few.
func (o *Options) beyondMax() float64 {
	seconds := 0
	load, most := o.load(), float64(o.Max)*o.Threshold*o.Capacity
	for t := int64(0); t < o.Trace.Length().Milliseconds()/second; t++ {
		if load.Rate(t*second+second/2) > most {
			seconds++
		}
	}
	return float64(seconds) / 60
}
