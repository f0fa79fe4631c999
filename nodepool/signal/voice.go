package signal

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/pipeline"
)

// voice is one signal.
type voice struct {
	config   Config
	pipeline *pipeline.Pipeline
	since    time.Time // since when it has desired more than there are
}

func newVoice(c Config, p pipeline.Params) (*voice, error) {
	made, err := pipeline.New(p)
	if err != nil {
		return nil, err
	}
	return &voice{config: c, pipeline: made}, nil
}

// reading is a forecast in terms of the pool.
type reading struct {
	now, predicted float64
	horizon        time.Duration
	want, fits     int
	needs          int // without the margin
}

// negligible is a load that no worker is needed for.
const negligible = 1e-6

// roundingSlack keeps rounding errors from turning 14.000000000001 workers into 15, as in the pipeline.
const roundingSlack = 1e-9

// run makes a forecast of the load of workers.
func (v *voice) run(m *pipeline.Memory, in pipeline.Input, t *tick) (reading, error) {
	in.Now, in.Target, in.TargetRose, in.StartupTime = t.now, t.Expected, t.roseAt, t.StartupTime
	f, err := v.pipeline.RunIn(m, in)
	if err != nil {
		return reading{}, err
	}
	r := reading{now: f.LoadNow, predicted: f.LoadPredicted, horizon: f.Horizon, want: f.Decision.Desired}
	if t.Expected == 0 { // for the pipeline a target is at least one
		r.want = int(max(0, math.Ceil(f.Required-roundingSlack)))
	}
	if max(f.Level, f.Damped) <= negligible {
		r.want = 0
	}
	r.fits, r.needs = v.fits(max(f.Level, f.Total)), v.needs(max(f.Level, f.Total))
	if r.want <= t.Expected { // for the pipeline a little too many are good enough
		r.want = min(r.want, r.fits)
	}
	return r, nil
}

// fits is how many workers must stay for a load, with the margin.
func (v *voice) fits(load float64) int {
	if load <= negligible {
		return 0
	}
	p := v.pipeline.Params()
	return int(min(math.Ceil(p.Model.Required(load, p.Threshold/(1+p.ScaleDownMargin))-roundingSlack), mostWorkers))
}

// needs is how many workers there must be for a load, without the margin.
func (v *voice) needs(load float64) int {
	if load <= negligible {
		return 0
	}
	p := v.pipeline.Params()
	return int(min(math.Ceil(p.Model.Required(load, p.Threshold)-roundingSlack), mostWorkers))
}

// larger is what both readings ask for, told by the one that wants more.
func larger(a, b reading) reading {
	fits, needs := max(a.fits, b.fits), max(a.needs, b.needs)
	if b.want > a.want || b.want == a.want && b.predicted > a.predicted {
		a = b
	}
	a.fits, a.needs = fits, needs
	return a
}

// tell returns what the plan is told, and notes since when the signal has asked.
func (v *voice) tell(r reading, err error, t *tick) plan.Signal {
	s := plan.Signal{
		Name: v.config.Name, Threshold: v.config.Threshold, Down: v.config.Down, For: v.config.For,
		Margin: v.pipeline.Params().ScaleDownMargin,
		CPU:    v.config.Name == CPU, Memory: v.config.Name == Memory,
		WithPending: slices.Contains([]string{Requests, CPU, Memory}, v.config.Name),
	}
	if err != nil {
		v.since = time.Time{}
		s.Err = err.Error()
		return s
	}
	switch {
	case r.want <= t.Expected:
		v.since = time.Time{}
	case v.since.IsZero() || v.since.After(t.Now):
		v.since = t.Now
	}
	s.Known, s.Now, s.Predicted, s.Horizon = true, r.now, r.predicted, r.horizon
	s.Want, s.Fits, s.Needs, s.Since = r.want, r.fits, r.needs, v.since
	return s
}

var errWarmingUp = errors.New("warming up: requests have been seen for less than three sample intervals")
