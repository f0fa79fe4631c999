package pipeline

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
)

// Pipeline runs forecasts. It keeps memory between runs, and nothing else: results depend on the Input alone.
// It is not safe for concurrent use. Its methods are here, but for those that make a [Trace].
type Pipeline struct {
	params  Params
	options options
	*memory
}

// New returns a pipeline, or every broken precondition of the parameters (each a *FieldError, joined).
func New(params Params) (*Pipeline, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Pipeline{params: params, options: params.options(), memory: &Memory{}}, nil
}

// Params returns the parameters that the pipeline was made with.
func (p *Pipeline) Params() Params { return p.params }

// Run makes a forecast. It fails with ErrNoData, ErrOverflow, a *StaleError, or an error that names two instances of
// one ID or a Now that is out of range.
func (p *Pipeline) Run(in Input) (Forecast, error) {
	if in.Bounds != nil {
		return p.RunIn(p.memory, in)
	}
	return p.run(in)
}

// RunIn is Run in a memory that other pipelines may use as well, instead of its own.
func (p *Pipeline) RunIn(m *Memory, in Input) (Forecast, error) {
	if b := in.Bounds; b != nil {
		bounded := Pipeline{params: p.params, options: p.options, memory: m}
		bounded.options.bound(b.Min, b.Max, b.Lateness)
		return bounded.run(in)
	}
	own := p.memory
	defer func() { p.memory = own }()
	p.memory = m
	return p.run(in)
}

// maxTime bounds times to what a float64 holds exactly, some 285,000 years.
const maxTime = int64(1) << 53

// run makes a forecast. With bounds in the input the options have them already, and may be changed.
func (p *Pipeline) run(in Input) (Forecast, error) {
	if in.Now < -maxTime || in.Now > maxTime {
		return Forecast{}, fmt.Errorf("now: %d: must be milliseconds between %d and %d", in.Now, -maxTime, maxTime)
	}
	defer p.forget()
	p.missed, p.loads = p.missed[:0], series.Loads{}
	r := p.params.reach(&p.options.horizon, in.StartupTime)
	f := Forecast{
		Now: in.Now, Horizon: series.Duration(r.Ahead), HorizonNeeded: series.Duration(r.AheadNeeded),
		HorizonLimit: r.Limit(), Window: r.Window, WindowNeeded: r.WindowNeeded,
	}
	if err := p.fill(in.Since, p.carriers(&in), &f); err != nil {
		return Forecast{}, err
	}
	f.Tick = p.window.Tick(p.window.Last)
	lag := time.Duration(in.Now-f.Tick) * time.Millisecond
	if lag > p.params.StaleAfter {
		return Forecast{}, &StaleError{Age: lag, Limit: p.params.StaleAfter}
	}
	p.imputer.Fill(&p.window)
	loads := p.redistribute()
	p.addDemand(in.Demand, loads, &f)
	p.loads = p.window.Loads(loads)
	p.keep(loads)
	p.count(&in, loads[len(loads)-1], &f)

	o := p.project(p.ahead(&f, r.Ahead))
	outlook := p.assess(&in, &f, &o, p.ahead(&f, r.Ahead))
	if !outlook.Finite() {
		return Forecast{}, ErrOverflow
	}
	f.take(&outlook)
	p.decide(&in, &f, &outlook)
	if in.NodeStartupTime > 0 {
		f.Farther = p.farther(&in, &f, o, r.Ahead+series.Millis(in.NodeStartupTime))
	}
	return f, nil
}

// fill aligns the samples of every instance onto the grid of the window.
func (p *Pipeline) fill(since int64, instances []Instance, f *Forecast) error {
	w := &p.window
	w.Grid = series.NewGrid(f.Now, f.Window.Milliseconds(), p.params.Interval.Milliseconds())
	if since != 0 {
		w.Grid = w.From(since)
	}
	if err := w.Seat(instances); err != nil {
		return err
	}
	f.Dropped += p.aligner.Fill(w, align.Limits{Latest: f.Now + w.Step, Lowest: p.params.Model.Lowest()})
	if w.Last < 0 {
		return ErrNoData
	}
	return nil
}

// carriers returns the instances whose samples add up to the load. A load that is measured as a whole is that of one
// instance, which is always active.
func (p *Pipeline) carriers(in *Input) []Instance {
	if !p.params.Whole {
		return in.Instances
	}
	p.whole[0] = Instance{Start: Never, Samples: in.Total}
	return p.whole[:]
}

// redistribute returns the load of each tick.
func (p *Pipeline) redistribute() []series.Load {
	p.scratch = series.Resize(p.scratch, p.window.N)
	if p.params.Method == Adaptive {
		return p.total.Sum(&p.window, &p.options.redistribute)
	}
	return p.weighted.Sum(&p.window, &p.options.redistribute)
}

// addDemand adds load that no instance carries yet to the effective aggregate of each tick.
func (p *Pipeline) addDemand(demand []Sample, loads []series.Load, f *Forecast) {
	w := &p.window
	ok := align.Limits{Latest: f.Now + w.Step, Lowest: Model{}.Lowest()}
	known, demand, dropped := p.aligner.Align(demand, ok, w.Grid, w.Span(), p.scratch)
	f.Dropped += dropped
	if len(demand) == 0 {
		return
	}
	newest := demand[len(demand)-1]
	held := w.Index(newest.T)
	for k := known.From; k < min(known.To, held); k++ {
		loads[k-w.First].Effective += p.scratch[k]
	}
	for k := max(held, w.First); k <= w.Last; k++ {
		loads[k-w.First].Effective += newest.V
	}
}

// count counts the instances at the newest tick, and those that are requested.
func (p *Pipeline) count(in *Input, newest series.Load, f *Forecast) {
	f.Weight, f.Active, f.Target = newest.Weight, newest.Active, in.Target
	if p.params.Whole {
		f.Active = 0
		for i := range in.Instances {
			if x := &in.Instances[i]; x.Start <= f.Tick && f.Tick < x.Until() {
				f.Active++
			}
		}
		f.Weight = float64(f.Active)
	}
	if f.Target == 0 {
		f.Target = f.Active
	}
	if !p.params.Whole {
		f.Target = max(1, f.Target)
	}
}

// ahead returns how many ticks after the newest data a horizon (ms from now) is, as now is later (paper, section 7.10).
func (p *Pipeline) ahead(f *Forecast, horizon float64) float64 {
	return (float64(f.Now-f.Tick) + horizon) / float64(p.window.Step)
}

// project returns how the loads go on for a number of ticks.
func (p *Pipeline) project(ahead float64) predict.Projection {
	if p.params.Method == Adaptive {
		return p.options.adaptive.Project(p.loads.Ticks, p.loads.Spacing, ahead, p.scratch)
	}
	o, missed := p.options.holt.Project(p.loads.Ticks, p.missed)
	p.missed = missed
	return o
}

// assess returns the outlook of a projection in a number of ticks.
func (p *Pipeline) assess(in *Input, f *Forecast, o *predict.Projection, ahead float64) decide.Outlook {
	carriers := f.Weight
	if carriers == 0 {
		carriers = float64(f.Active)
	}
	if p.params.Whole && carriers == 0 {
		carriers = float64(max(1, f.Target)) // the first of them would carry it
	}
	return decide.Assess(&p.options.decide, decide.Prospect{
		Level: o.Present(), Error: o.LevelError, Trend: o.Slope,
		Growth: o.Growth(ahead), Straight: o.Total(ahead), Noise: o.Noise,
		Learned: in.Past.Expect(&p.loads, p.options.learn, in.Now, ahead), Carriers: carriers, Target: f.Target,
	})
}

// decide completes a forecast with its decision.
func (p *Pipeline) decide(in *Input, f *Forecast, outlook *decide.Outlook) {
	pending := f.Target > f.Active && decide.Within(in.Now, in.TargetRose, p.params.PendingExpiry)
	f.Decision = decide.Decide(&p.options.decide, outlook, pending)
	if in.Bounds != nil {
		f.Decision, f.Serve = decide.Bound(&p.options.decide, f.Decision, outlook)
	}
	f.Holds = p.params.Model.Load(p.params.Threshold) * float64(f.Decision.Desired)
}

// farther carries the trend of a run on to a horizon (ms) beyond its own. It starts from the same loads, so that it
// costs one more line at the most.
func (p *Pipeline) farther(in *Input, f *Forecast, o predict.Projection, horizon float64) Farther {
	if b := in.Bounds; b != nil {
		p.options.bound(b.FartherMin, b.FartherMax, b.Lateness)
	}
	ahead := p.ahead(f, horizon)
	if p.params.Method == Adaptive {
		near := p.ahead(f, series.Millis(f.Horizon))
		o = p.options.adaptive.Extend(o, p.loads.Ticks, p.loads.Spacing, near, ahead, p.scratch)
	}
	outlook := p.assess(in, f, &o, ahead)
	if !outlook.Finite() {
		return Farther{}
	}
	return Farther{
		Horizon: series.Duration(horizon), Total: outlook.Total, Desired: decide.Fewest(&p.options.decide, &outlook),
		WindowNeeded: p.options.horizon.WindowNeeded(horizon),
	}
}
