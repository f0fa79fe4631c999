package signal

import (
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// signalState is the state that all kinds of signals share.
type signalState struct {
	config   Config
	pipeline *pipeline.Pipeline
	past     *pipeline.Learned // what has been learned of the load, which requests and levels do not use
	since    time.Time         // since when it has recommended more workers than exist
}

func newSignalState(c Config, p pipeline.Params) (*signalState, error) {
	built, err := pipeline.New(p)
	if err != nil {
		return nil, err
	}
	return &signalState{config: c, pipeline: built, past: pipeline.NewLearned(&p)}, nil
}

// reading is a forecast as numbers of workers.
type reading struct {
	now, predicted float64
	horizon        time.Duration
	desired        int
	fits           int // workers that must stay, with the margin
	needs          int // without the margin
}

// negligible is a load that needs no worker.
const negligible = 1e-6

// roundingSlack keeps rounding errors from turning 14.000000000001 workers into 15, as in the pipeline.
const roundingSlack = 1e-9

// run forecasts the load of the workers from the samples of the window and the learned loads.
func (s *signalState) run(m *pipeline.Memory, in pipeline.Input, t *tick) (reading, error) {
	in.Now, in.Target, in.TargetRose, in.StartupTime, in.Learned = t.now, t.Expected, t.roseAt, t.StartupTime, s.past
	f, err := s.pipeline.RunIn(m, in)
	if err != nil {
		return reading{}, err
	}
	r := reading{now: f.LoadNow, predicted: f.LoadPredicted, horizon: f.Horizon, desired: f.Decision.Desired}
	if t.Expected == 0 { // the pipeline assumes a target of at least one
		r.desired = int(max(0, math.Ceil(f.Required-roundingSlack)))
	}
	if max(f.Level, f.PlannedLoad) <= negligible {
		r.desired = 0
	}
	planned := max(f.Level, f.Total)
	if s.pipeline.Params().Method == pipeline.Adaptive {
		planned = max(planned, f.Need.Load-f.Need.Margin) // what was learned can only raise what nodes are kept for
	}
	r.fits, r.needs = s.fits(planned), s.needs(planned)
	if r.desired <= t.Expected { // the pipeline tolerates slightly too many
		r.desired = min(r.desired, r.fits)
	}
	return r, nil
}

// learn adds the loads of the last run to the learned ones. Do not call it if a part of the load was unknown.
func (s *signalState) learn(m *pipeline.Memory) {
	p := s.pipeline.Params()
	s.past.Learn(m.Loads(), p.LearnOptions(), nil)
}

// fits returns how many workers must stay for a load, with the margin.
func (s *signalState) fits(load float64) int {
	if load <= negligible {
		return 0
	}
	p := s.pipeline.Params()
	return int(min(math.Ceil(p.Model.Required(load, p.Threshold/(1+p.ScaleDownMargin))-roundingSlack), maxWorkers))
}

// needs returns how many workers a load needs, without the margin.
func (s *signalState) needs(load float64) int {
	if load <= negligible {
		return 0
	}
	p := s.pipeline.Params()
	return int(min(math.Ceil(p.Model.Required(load, p.Threshold)-roundingSlack), maxWorkers))
}

// larger combines two readings: the one that recommends more, with the larger needs of both.
func larger(a, b reading) reading {
	fits, needs := max(a.fits, b.fits), max(a.needs, b.needs)
	if b.desired > a.desired || b.desired == a.desired && b.predicted > a.predicted {
		a = b
	}
	a.fits, a.needs = fits, needs
	return a
}

// report returns the signal for the plan, and records since when it has recommended more workers.
func (s *signalState) report(r reading, err error, t *tick) plan.Signal {
	out := plan.Signal{
		Name: s.config.Name, Threshold: s.config.Threshold, Down: s.config.Down, For: s.config.For,
		Margin: s.pipeline.Params().ScaleDownMargin,
		CPU:    s.config.Name == CPU, Memory: s.config.Name == Memory,
		WithPending: slices.Contains([]string{Requests, CPU, Memory}, s.config.Name),
	}
	if err != nil {
		s.since = time.Time{}
		out.Err = err.Error()
		return out
	}
	switch {
	case r.desired <= t.Expected:
		s.since = time.Time{}
	case s.since.IsZero() || s.since.After(t.Now):
		s.since = t.Now
	}
	out.Known, out.Now, out.Predicted, out.Horizon = true, r.now, r.predicted, r.horizon
	out.Desired, out.Fits, out.Needs, out.Since = r.desired, r.fits, r.needs, s.since
	return out
}
