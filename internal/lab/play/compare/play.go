// Package compare plays several scalers against the same loads and pods, seed by seed, and reports
// the result as tables, files of figures, and charts.
package compare

import (
	"context"
	"slices"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/play"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/queue"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

// Config is a comparison: each scaler meets each seed of each profile.
type Config struct {
	Profiles []Profile
	Scalers  []string // of scaler.AllNames
	Seeds    []uint64
	Model    queue.Model
	// Setup is what scalers are made of, but for Seed, Load and Behavior, which each run has of its own.
	Setup scaler.Setup

	variants []variant // of an ablation, by the names in Scalers; nil = those are of scaler.AllNames
}

// Profile is a load by name, drawn for each seed.
type Profile struct {
	Name string
	Draw func(seed uint64) (workload.Profile, error)
}

// NamedProfile is one of [workload.Names].
func NamedProfile(name string) Profile {
	return Profile{Name: name, Draw: func(seed uint64) (workload.Profile, error) { return workload.New(name, seed) }}
}

// TraceProfile is a recorded load, the same for each seed.
func TraceProfile(t *workload.Trace) Profile {
	p := t.Profile()
	return Profile{Name: p.Name, Draw: func(uint64) (workload.Profile, error) { return p, nil }}
}

// Run is one scaler, under one load, with one seed.
type Run struct {
	Profile, Scaler string
	Seed            uint64
	Figures         score.Figures
	Series          Series
}

// Runs returns how many runs there are.
func (c Config) Runs() int { return len(c.Profiles) * len(c.Seeds) * len(c.Scalers) }

// Check makes each scaler once, to find settings that they reject.
func (c Config) Check() error {
	for _, profile := range c.Profiles {
		p, err := profile.Draw(1)
		if err != nil {
			return err
		}
		for _, name := range c.Scalers {
			if _, err := c.scaler(name, c.setup(p, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Play plays all runs. done is called after each, never by two at once, in no certain order. When
// the context ends, the error is that of the context, and the result has the runs that were done.
func Play(ctx context.Context, c Config, done func(Run)) (*Result, error) {
	runs := make([]*Run, c.Runs())
	err := play.Each(ctx, len(runs), c.play, func(i int, run *Run) {
		runs[i] = run
		if done != nil {
			done(*run)
		}
	})
	return c.result(runs), err
}

// of returns what the i-th run plays. Scalers change first and profiles last, so that what has been
// done when a comparison is stopped can be compared.
func (c Config) of(i int) (profile Profile, seed uint64, name string) {
	perSeed := len(c.Scalers)
	perProfile := perSeed * len(c.Seeds)
	return c.Profiles[i/perProfile], c.Seeds[i%perProfile/perSeed], c.Scalers[i%perSeed]
}

func (c Config) play(i int) (*Run, error) {
	profile, seed, name := c.of(i)
	drawn, err := profile.Draw(seed)
	if err != nil {
		return nil, err
	}
	setup := c.setup(drawn, seed)
	s, err := c.scaler(name, setup)
	if err != nil {
		return nil, err
	}
	w := queue.New(queue.Config{Load: drawn.Load, Seed: seed, Min: setup.Min, Max: setup.Max, Warm: setup.Min,
		Model: c.Model})
	watch := newWatch(w, drawn.Span)
	record := lab.Run(w, s, drawn.Span, watch.second)
	requests := w.Requests(record.From)
	return &Run{
		Profile: profile.Name, Scaler: name, Seed: seed,
		Figures: score.Figures{
			Requests: figures(requests),
			Pods:     score.OfPods(record, score.Need{Threshold: setup.Threshold, Min: setup.Min, Max: setup.Max}),
		},
		Series: watch.series(record, requests),
	}, nil
}

func (c Config) setup(p workload.Profile, seed uint64) scaler.Setup {
	s := c.Setup
	s.Load, s.Seed, s.Cost = p.Load, seed, c.Model.Service/1000
	return s
}

func (c Config) scaler(name string, s scaler.Setup) (lab.Scaler, error) {
	for _, v := range c.variants {
		if v.name == name {
			return newScaler(v.scaler, s, v.change)
		}
	}
	return newScaler(name, s, nil)
}

func figures(r queue.Requests) score.Requests {
	return score.Requests{
		Sent: float64(r.Sent), Errors: float64(r.Sent - r.Succeeded), Dropped: float64(r.Dropped),
		Success: r.Success(),
		Mean:    r.Latency.Mean(),
		P50:     r.Latency.Quantile(0.50), P90: r.Latency.Quantile(0.90), P99: r.Latency.Quantile(0.99),
	}
}

// result keeps the runs of seeds that every scaler has met.
func (c Config) result(runs []*Run) *Result {
	r := &Result{}
	perSeed := len(c.Scalers)
	for p, profile := range c.Profiles {
		o := Outcome{Profile: profile.Name}
		for _, name := range c.Scalers {
			o.Scalers = append(o.Scalers, ScalerRuns{Name: name})
		}
		for s, seed := range c.Seeds {
			first := (p*len(c.Seeds) + s) * perSeed
			met := runs[first : first+perSeed]
			if slices.Contains(met, nil) {
				continue
			}
			o.Seeds = append(o.Seeds, seed)
			for i, run := range met {
				o.Scalers[i].Runs = append(o.Scalers[i].Runs, *run)
			}
		}
		if len(o.Seeds) > 0 {
			r.Outcomes = append(r.Outcomes, o)
		}
	}
	return r
}

// Rival is the scaler that the others are compared with, seed by seed.
const Rival = "keda"

// Bound is the best possible scaler: it knows the future and has the fewest pods that hold the threshold.
const Bound = "clairvoyant"

// newScaler makes the scaler of a name, with a change of what it would have; nil = none.
func newScaler(name string, s scaler.Setup, change func(*scaler.Setup)) (lab.Scaler, error) {
	s.Behavior = scaler.RecommendedBehavior()
	if name != Bound {
		s.Startup = 0 // the others assume what their settings have, until they have measured starts
	}
	if change != nil {
		change(&s)
	}
	return scaler.New(name, s)
}
