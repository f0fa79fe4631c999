package compare

import (
	"context"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

// Ablation is the result of changing one setting of Foresail. The first scaler of its outcomes has
// the recommended setting; the others are compared with it.
type Ablation struct {
	Name   string // in files
	Title  string
	Result *Result
}

// variant is a scaler with one setting changed.
type variant struct {
	name   string
	scaler string              // of scaler.AllNames
	change func(*scaler.Setup) // nil = nothing
}

// ablation is an Ablation before it is played. more are further profiles on which it matters.
type ablation struct {
	name, title string
	more        []string
	variants    []variant
}

// through is the scaler whose settings are changed: an HPA that reads what docs/hpa.md recommends.
const through = "foresail-total"

func ablations() []ablation {
	return []ablation{
		{name: "freshness", title: "age of the readings of pods", variants: freshness()},
		{name: "delay", title: "time until the HPA reads a forecast, horizon.reactionDelay", variants: delays()},
		{name: "behavior", title: "behavior of the HPA", more: []string{"sine", "bursts", "falling"},
			variants: behaviors()},
		{name: "metric", title: "metric that is read of pods", more: []string{"bursts"}, variants: metrics()},
		{name: "method", title: "method", more: workload.Names(), variants: methods()},
	}
}

// freshness varies the age of readings. StaleAfter grows with their period, so that they are not
// rejected as stale.
func freshness() []variant {
	all := []variant{{name: "each second", scaler: through}}
	change := func(name string, source lab.Source, phase func(*lab.Source) *time.Duration) {
		all = append(all, variant{name, through, func(s *scaler.Setup) {
			period := max(source.Period, source.Batch)
			own := source
			*phase(&own) = phaseOf(s.Seed, name, period)
			s.Sources = scaler.DefaultSources(s.Seed)
			s.Sources.Foresail = own
			s.Params.StaleAfter = max(s.Params.StaleAfter, 3*period+source.Lag)
		}})
	}
	for _, every := range []time.Duration{5 * time.Second, 15 * time.Second} {
		batches := lab.EverySecond()
		batches.Batch = every
		change(fmt.Sprintf("each second, sent every %s", every), batches,
			func(s *lab.Source) *time.Duration { return &s.BatchPhase })
	}
	for _, lag := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		for _, every := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second} {
			name := fmt.Sprintf("mean of %s", every)
			if lag > time.Second {
				name += fmt.Sprintf(", seen %s later", lag)
			}
			gauge := lab.Source{Window: every, Period: every, Lag: lag}
			change(name, gauge, func(s *lab.Source) *time.Duration { return &s.Phase })
		}
	}
	return all
}

// phaseOf is when within a period something happens, in whole seconds.
func phaseOf(seed uint64, of string, period time.Duration) time.Duration {
	return time.Duration(lab.Random(seed, "phase of "+of).Int64N(int64(period/time.Second))) * time.Second
}

func delays() []variant {
	var all []variant
	for _, d := range []time.Duration{15 * time.Second, 0, 5 * time.Second, 10 * time.Second, 20 * time.Second,
		30 * time.Second} {
		all = append(all, variant{d.String(), through, func(s *scaler.Setup) { s.Params.ReactionDelay = d }})
	}
	return all
}

// behaviors lead step by step from the HPA's defaults to the recommended behaviour.
func behaviors() []variant {
	exact, twoMinutes := resource.MustParse("0"), int32(120)
	behave := func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) func(*scaler.Setup) {
		return func(s *scaler.Setup) { s.Behavior = b }
	}
	up := scaler.RecommendedBehavior().ScaleUp
	return []variant{
		{"recommended, down after 30s", through, nil},
		{"HPA's defaults", through, behave(nil)},
		{"scaleUp tolerance 0", through, behave(&autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: &exact},
		})},
		{"and up by 400%", through, behave(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up})},
		{"and down after 120s", through, behave(&autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: up, ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &twoMinutes},
		})},
	}
}

func metrics() []variant {
	read := func(m scaler.Metric) func(*scaler.Setup) { return func(s *scaler.Setup) { s.Metric = m } }
	return []variant{
		{"utilisation", through, nil},
		{"requests", through, read(scaler.Requests)},
		{"both", through, read(scaler.Both)},
	}
}

// methods are those of the forecast, each with its own defaults, beside scalers without a forecast.
func methods() []variant {
	with := func(p pipeline.Params) func(*scaler.Setup) {
		return func(s *scaler.Setup) {
			p := p
			p.StartupTime = s.Params.StartupTime
			s.Params = p
		}
	}
	return []variant{
		{"Adaptive", through, with(scaler.RecommendedParams())},
		{"Holt", through, with(scaler.PaperParams())},
		{Rival, Rival, nil},
		{"clairvoyant", "clairvoyant", nil},
		{"instant", "instant", nil},
	}
}

// config is the comparison that plays an ablation.
func (l ablation) config(c Config, everywhere bool) Config {
	c.Scalers, c.variants, c.Profiles = nil, l.variants, slices.Clone(c.Profiles)
	for _, v := range l.variants {
		c.Scalers = append(c.Scalers, v.name)
	}
	if !everywhere {
		return c
	}
	for _, name := range l.more {
		if !slices.ContainsFunc(c.Profiles, func(p Profile) bool { return p.Name == name }) {
			c.Profiles = append(c.Profiles, NamedProfile(name))
		}
	}
	return c
}

// PlayAblations plays each ablation on the profiles and seeds of a comparison and, if everywhere,
// on further ones on which it matters. done is called after each run. When the context ends it
// returns the finished ablations and its error.
func PlayAblations(ctx context.Context, c Config, everywhere bool, done func(Run)) ([]Ablation, error) {
	var all []Ablation
	for _, l := range ablations() {
		r, err := Play(ctx, l.config(c, everywhere), done)
		if err != nil {
			return all, err
		}
		all = append(all, Ablation{Name: l.name, Title: l.title, Result: r})
	}
	return all, nil
}

// AblationRuns returns how many runs [PlayAblations] plays.
func AblationRuns(c Config, everywhere bool) int {
	runs := 0
	for _, l := range ablations() {
		runs += l.config(c, everywhere).Runs()
	}
	return runs
}
