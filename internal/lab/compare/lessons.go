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
	"github.com/foresail/foresail/internal/lab/workload"
	"github.com/foresail/foresail/pipeline"
)

// Lesson is what comes of changing one thing about Foresail. The first scaler of its outcomes is what is recommended; the
// others are compared with it.
type Lesson struct {
	Name   string // in files
	Title  string
	Result *Result
}

// variant is a scaler of which something is changed.
type variant struct {
	name   string
	scaler string              // of ScalerNames
	change func(*scaler.Setup) // nil = nothing
}

// lesson is a Lesson before it is played. more are profiles beside those of a comparison on which it has something to tell.
type lesson struct {
	name, title string
	more        []string
	variants    []variant
}

// through is the scaler whose settings are changed: an HPA that reads what docs/hpa.md recommends.
const through = "foresail-total"

func lessons() []lesson {
	return []lesson{
		{name: "freshness", title: "how old readings of pods may be", variants: freshness()},
		{name: "delay", title: "how long before the HPA reads a forecast, horizon.reactionDelay", variants: delays()},
		{name: "behavior", title: "how fast the HPA follows, behavior", more: []string{"sine", "bursts", "falling"}, variants: behaviors()},
		{name: "metric", title: "what is read of pods", more: []string{"bursts"}, variants: metrics()},
		{name: "method", title: "how forecasts are made, forecast.method", more: workload.Names(), variants: methods()},
	}
}

// freshness are sources of Foresail. What is scraped further apart may be older before it is refused.
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
		change(fmt.Sprintf("each second, sent every %s", every), batches, func(s *lab.Source) *time.Duration { return &s.BatchPhase })
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
	for _, d := range []time.Duration{15 * time.Second, 0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second} {
		all = append(all, variant{d.String(), through, func(s *scaler.Setup) { s.Params.ReactionDelay = d }})
	}
	return all
}

// behaviors lead from an HPA's defaults to what is recommended, one thing after the other.
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

// methods are those of the forecast, each with its own defaults, among scalers that have none.
func methods() []variant {
	with := func(p pipeline.Params) func(*scaler.Setup) {
		return func(s *scaler.Setup) {
			p := p
			p.InitTimeout = s.Params.InitTimeout
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

// config is the comparison that a lesson is.
func (l lesson) config(c Config, everywhere bool) Config {
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

// PlayLessons plays each lesson on the profiles and seeds of a comparison and, if everywhere, on others on which it has
// something to tell. done is called after each run. When the context ends the lessons that were done are returned, with the
// error of the context.
func PlayLessons(ctx context.Context, c Config, everywhere bool, done func(Run)) ([]Lesson, error) {
	var all []Lesson
	for _, l := range lessons() {
		r, err := Play(ctx, l.config(c, everywhere), done)
		if err != nil {
			return all, err
		}
		all = append(all, Lesson{Name: l.name, Title: l.title, Result: r})
	}
	return all, nil
}

// LessonRuns returns how many runs [PlayLessons] plays.
func (c Config) LessonRuns(everywhere bool) int {
	runs := 0
	for _, l := range lessons() {
		runs += l.config(c, everywhere).Runs()
	}
	return runs
}
