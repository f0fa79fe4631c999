package main

import (
	"bytes"
	"context"
	"time"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/play/compare"
	labscaler "github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/queue"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/test/env/loadgen"
)

// simulate plays the same in the simulator, with pods like the live ones, and returns means over seeds.
func simulate(ctx context.Context, c settings, ps []profile, scs []scaler, seeds int) ([]row, error) {
	forecast, err := c.forecast()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, p := range ps {
		config := compare.Config{
			Model: c.model(),
			Setup: labscaler.Setup{Threshold: threshold, Params: forecast, Min: minPods, Max: maxPods,
				Startup: c.startup},
			Profiles: []compare.Profile{{
				Name: p.name,
				Draw: func(uint64) (workload.Profile, error) { return p.simulated(c.lead), nil },
			}},
		}
		if p.recurs > 0 {
			config.Setup.Past = c.past(p, &forecast, time.UnixMilli(0), time.UnixMilli(0).Add(c.lead))
		}
		for _, s := range scs {
			config.Scalers = append(config.Scalers, s.simulated())
		}
		for i := range seeds {
			config.Seeds = append(config.Seeds, uint64(i+1))
		}
		played, err := compare.Play(ctx, config, nil)
		if err != nil {
			return nil, err
		}
		for j, runs := range played.Outcomes[0].Scalers {
			rows = append(rows, meanRow(p.name, scs[j].name, runs.Runs))
		}
	}
	return rows, nil
}

// forecast is the settings of the PredictedMetric that is live.
func (c settings) forecast() (pipeline.Params, error) {
	s := stage{settings: c}
	manifest, err := s.manifest(forecastManifest)
	if err != nil {
		return pipeline.Params{}, err
	}
	document, _, _ := bytes.Cut(manifest, []byte("\n---\n"))
	spec, err := params.ParseSpec(document)
	if err != nil {
		return pipeline.Params{}, err
	}
	return params.FromSpec(spec)
}

// model is that of the pods of test/env/workload: a queue in which each waits its turn, for one
// piece of work.
func (c settings) model() queue.Model {
	m := queue.Defaults()
	m.Service = float64(c.serviceTime()) / float64(time.Millisecond)
	m.Routes = nil
	// Work is spread evenly over half to one and a half times the mean.
	for cost := 0.55; cost < 1.5; cost += 0.1 {
		m.Routes = append(m.Routes, queue.Route{Share: 1, Cost: cost})
	}
	m.ChunksMin, m.ChunksMax = 1, 1
	m.WaitsMin, m.WaitsMax = 0, 0
	m.Jump, m.SpeedSigma = 0, 0
	m.FailShare, m.StillRuns = 0, 0
	m.Users = c.users()
	m.Startup, m.StartupSpread = float64(c.startup.Milliseconds()), 0
	return m
}

// simulated is the profile with its lead-in.
func (p profile) simulated(lead time.Duration) workload.Profile {
	load := loadgen.Profile{{At: 0, RPS: p.first()}}
	for _, point := range p.load {
		load = append(load, loadgen.Point{At: lead + point.At, RPS: point.RPS})
	}
	return workload.Profile{Name: p.name, Load: rate{load}, Span: lab.Span{Lead: lead, Length: p.load.Duration()}}
}

// rate is a load of the simulator.
type rate struct{ loadgen.Profile }

// Rate implements [lab.Load].
func (r rate) Rate(t int64) float64 {
	end := len(r.Profile) - 1
	if at := time.Duration(t) * time.Millisecond; at < r.Profile[end].At {
		return r.Profile.Rate(at)
	}
	return r.Profile[end].RPS
}

func meanRow(profile, scaler string, runs []compare.Run) row {
	r := row{profile: profile, scaler: scaler, simulated: true, runs: len(runs)}
	for _, run := range runs {
		f, n := run.Figures, float64(len(runs))
		r.success += f.Success / n
		r.mean += f.Mean / n
		r.p50 += f.P50 / n
		r.p90 += f.P90 / n
		r.p99 += f.P99 / n
		r.sent += f.Sent / n
		r.failed += f.Errors / n
		r.dropped += f.Dropped / n
		r.podSeconds += f.Seconds / n
	}
	return r
}
