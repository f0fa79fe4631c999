package pipeline

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
)

// Pipeline runs forecasts. It reuses memory between runs but keeps no other state: a result depends only on its
// Input. It is not safe for concurrent use. All of its methods are in this file, except those that record a
// [Trace].
type Pipeline struct {
	params  Params
	options options
	*memory
}

// New returns a pipeline. Its error joins a *FieldError for each invalid parameter.
func New(params Params) (*Pipeline, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Pipeline{params: params, options: params.stageOptions(), memory: &Memory{}}, nil
}

// Params returns the parameters that the pipeline was made with.
func (p *Pipeline) Params() Params { return p.params }

// Run makes a forecast. It returns ErrNoData, ErrOverflow, a *StaleError, or an error for a duplicate instance
// ID or a Now that is out of range.
func (p *Pipeline) Run(in Input) (Forecast, error) {
	if in.Bounds != nil {
		return p.RunIn(p.memory, in)
	}
	return p.run(in)
}

// RunIn is Run with a memory that other pipelines may share, in place of the pipeline's own.
func (p *Pipeline) RunIn(m *Memory, in Input) (Forecast, error) {
	if b := in.Bounds; b != nil {
		bounded := Pipeline{params: p.params, options: p.options, memory: m}
		bounded.options.setBounds(b.Min, b.Max, b.Lateness)
		return bounded.run(in)
	}
	own := p.memory
	defer func() { p.memory = own }()
	p.memory = m
	return p.run(in)
}

// maxTime bounds times to integers that a float64 represents exactly: some 285,000 years.
const maxTime = int64(1) << 53

// run makes a forecast. The caller has already applied in.Bounds to p.options, which run may change.
func (p *Pipeline) run(in Input) (Forecast, error) {
	if in.Now < -maxTime || in.Now > maxTime {
		return Forecast{}, fmt.Errorf("now: %d: must be milliseconds between %d and %d", in.Now, -maxTime, maxTime)
	}
	defer p.releaseInput()
	p.oneTickErrors, p.loads = p.oneTickErrors[:0], series.Loads{}
	r := p.params.reach(&p.options.horizon, in.StartupTime)
	f := Forecast{
		Now: in.Now, Horizon: series.Duration(r.Ahead), HorizonNeeded: series.Duration(r.AheadNeeded),
		HorizonLimit: r.Limit(), Window: r.Window, WindowNeeded: r.WindowNeeded,
	}
	if err := p.alignSamples(in.Since, p.loadInstances(&in), &f); err != nil {
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
	p.recordTrace(loads)
	p.countInstances(&in, loads[len(loads)-1], &f)

	projection := p.project(p.ticksAhead(&f, r.Ahead))
	assessment := p.assess(&in, &f, &projection, p.ticksAhead(&f, r.Ahead))
	if !assessment.IsFinite() {
		return Forecast{}, ErrOverflow
	}
	f.copyAssessment(&assessment)
	p.decide(&in, &f, &assessment)
	if in.NodeStartupTime > 0 {
		f.NodeForecast = p.forecastForNode(&in, &f, projection, r.Ahead+series.Millis(in.NodeStartupTime))
	}
	return f, nil
}

// alignSamples aligns the samples of every instance to the grid of the window.
func (p *Pipeline) alignSamples(since int64, instances []Instance, f *Forecast) error {
	w := &p.window
	w.Grid = series.NewGrid(f.Now, f.Window.Milliseconds(), p.params.Interval.Milliseconds())
	if since != 0 {
		w.Grid = w.From(since)
	}
	if err := w.AssignRows(instances); err != nil {
		return err
	}
	f.Dropped += p.aligner.Fill(w, align.Limits{Latest: f.Now + w.Step, Lowest: p.params.Model.Lowest()})
	if w.Last < 0 {
		return ErrNoData
	}
	return nil
}

// loadInstances returns the instances whose samples add up to the load. A load that is measured as a whole is
// represented by one instance that is always active.
func (p *Pipeline) loadInstances(in *Input) []Instance {
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

// addDemand adds load that no instance carries yet to the effective load of each tick.
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

// countInstances sets the number of active instances at the newest tick, and the requested number.
func (p *Pipeline) countInstances(in *Input, newest series.Load, f *Forecast) {
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

// ticksAhead converts a horizon in ms from now into a number of ticks after the newest data (paper, section
// 7.10).
func (p *Pipeline) ticksAhead(f *Forecast, horizon float64) float64 {
	return (float64(f.Now-f.Tick) + horizon) / float64(p.window.Step)
}

// project extrapolates the loads by a number of ticks.
func (p *Pipeline) project(ahead float64) predict.Projection {
	if p.params.Method == Adaptive {
		return p.options.adaptive.Project(p.loads.Ticks, p.loads.Spacing, ahead, p.scratch)
	}
	projection, errs := p.options.holt.Project(p.loads.Ticks, p.oneTickErrors)
	p.oneTickErrors = errs
	return projection
}

// assess computes the need for instances of a projection, a number of ticks ahead.
func (p *Pipeline) assess(in *Input, f *Forecast, projection *predict.Projection, ahead float64) decide.Assessment {
	instances := f.Weight
	if instances == 0 {
		instances = float64(f.Active)
	}
	if p.params.Whole && instances == 0 {
		instances = float64(max(1, f.Target)) // the first instance would carry it
	}
	return decide.Assess(&p.options.decide, decide.Input{
		Level: projection.Present(), Error: projection.LevelError, Trend: projection.Slope,
		Growth: projection.Growth(ahead), TrendTotal: projection.Total(ahead), Noise: projection.Noise,
		Expected: in.Learned.Expect(&p.loads, p.options.learn, in.Now, ahead), Instances: instances, Target: f.Target,
	})
}

// decide sets the decision of a forecast, and applies bounds that the autoscaler does not know.
func (p *Pipeline) decide(in *Input, f *Forecast, assessment *decide.Assessment) {
	pending := f.Target > f.Active && decide.Within(in.Now, in.TargetRose, p.params.PendingExpiry)
	f.Decision = decide.Decide(&p.options.decide, assessment, pending)
	if in.Bounds != nil {
		f.Decision, f.ServedLoad = decide.ApplyBounds(&p.options.decide, f.Decision, assessment)
	}
	f.Holds = p.params.Model.Load(p.params.Threshold) * float64(f.Decision.Desired)
}

// forecastForNode extrapolates the trend of a run to a longer horizon (ms). It starts from the same loads, so
// it costs at most one more line fit.
func (p *Pipeline) forecastForNode(in *Input, f *Forecast, projection predict.Projection,
	horizon float64) NodeForecast {
	if b := in.Bounds; b != nil {
		p.options.setBounds(b.NodeMin, b.NodeMax, b.Lateness)
	}
	ahead := p.ticksAhead(f, horizon)
	if p.params.Method == Adaptive {
		near := p.ticksAhead(f, series.Millis(f.Horizon))
		projection = p.options.adaptive.Extend(projection, p.loads.Ticks, p.loads.Spacing, near, ahead, p.scratch)
	}
	assessment := p.assess(in, f, &projection, ahead)
	if !assessment.IsFinite() {
		return NodeForecast{}
	}
	return NodeForecast{
		Horizon: series.Duration(horizon), Total: assessment.Total,
		Desired:      decide.MinInstances(&p.options.decide, &assessment),
		WindowNeeded: p.options.horizon.WindowNeeded(horizon),
	}
}
