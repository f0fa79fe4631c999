package backtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/fluid"
	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/pipeline"
)

// Setting is a scaler and how it is set.
type Setting struct {
	Scaler string
	Target float64 // the utilisation that it aims at
	Params pipeline.Params
	Metric Metric
}

// Metric is what is measured of a pod.
type Metric string

// The metrics. Both are in pods' work: requests are divided by a pod's capacity.
const (
	Utilization Metric = "utilization" // which cannot rise above 1
	Requests    Metric = "requests"    // which tell of overload
)

// player plays settings against a trace.
type player struct {
	*Options
	mu        sync.Mutex
	done, all int // runs
}

func newPlayer(o *Options) *player { return &player{Options: o} }

func (p *player) need() score.Need {
	return score.Need{Threshold: p.Threshold, Min: p.Min, Max: p.Max}
}

// play plays each setting against each section with each seed, and returns figures in the order of settings.
func (p *player) play(ctx context.Context, settings []Setting, parts []section) ([]Figures, error) {
	each := len(parts) * len(p.Seeds)
	runs := make([]Figures, len(settings)*each)
	p.all += len(runs)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			runs[i], err = p.one(&settings[i/each], parts[i%each/len(p.Seeds)], p.Seeds[i%len(p.Seeds)])
			p.tell()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make([]Figures, len(settings))
	for i := range out {
		for _, run := range runs[i*each : (i+1)*each] {
			out[i] = out[i].plus(run)
		}
		out[i] = out[i].per(len(p.Seeds))
	}
	return out, nil
}

func (p *player) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.Progress != nil {
		p.Progress(p.done, p.all)
	}
}

func (p *player) one(s *Setting, part section, seed uint64) (Figures, error) {
	record, errors, err := p.record(s, part, seed)
	if err != nil {
		return Figures{}, err
	}
	f := figuresOf(score.OfPods(record, p.need()), len(record.Seconds))
	f.Forecast = errors
	return f, nil
}

func (p *player) record(s *Setting, part section, seed uint64) (*lab.Record, Errors, error) {
	load, span := part.load(p.load()), part.span()
	// Each section has chance of its own, the same for all settings.
	runSeed := lab.Random(seed, fmt.Sprintf("section from %d", part.from)).Uint64()
	scaler, err := p.scaler(s, load, runSeed)
	if err != nil {
		return nil, Errors{}, err
	}
	watched := &observer{Scaler: scaler, load: load, cost: 1 / p.Capacity, from: span.Lead.Milliseconds(), until: (span.Lead + span.Length).Milliseconds()}
	world := fluid.New(fluid.Config{
		Load: load, Seed: runSeed, Min: p.Min, Max: p.Max, Warm: p.need().Pods(load.Rate(0) / p.Capacity),
		Capacity: p.Capacity, Startup: p.Startup,
		Exact: p.exact(), Unclipped: s.Metric == Requests,
	})
	return lab.Run(world, watched, span, nil), watched.errors, nil
}
