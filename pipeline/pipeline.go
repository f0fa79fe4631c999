package pipeline

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/pipeline/align"
	"github.com/foresail/foresail/pipeline/impute"
	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
)

// Forecast is the result of one run, with all numbers that its decision depends on. Loads without a unit in
// their comment are aggregates; "per instance" means in units of the metric.
type Forecast struct {
	Now  int64 // ms
	Tick int64 // t_last, the newest tick at which any instance is known (ms)

	Level   float64 // A_now, the smoothed load
	Error   float64 // the standard error of Level, where the method knows it
	Trend   float64 // its change per tick
	Horizon time.Duration
	Total   float64 // A_H, the load at the horizon
	Damped  float64 // A_ω, the load that instances are needed for: with Holt the trend discounted by the risk of acting on it, with Adaptive no less than Level and Total

	Weight float64 // N^w, instances counted by how far they take part
	Active int     // instances active at Tick
	Target int     // N_target

	LoadNow       float64 // P_now, per instance
	LoadPredicted float64 // P_H, per instance of the target count
	Required      float64 // N(A_ω, τ), instances, as a real number
	Serve         float64 // S_H: what an average over instances with target τ scales on. It is τ·Required, with Adaptive τ·Target while that is good enough; within Input.Bounds if there are any

	Learned bool // the margin in Damped is the one that kept to Params.Lateness; else it is Params.NoiseMargin
	Need    Need // what Decision counts instances for

	Idle bool // Params.Min is 0, and neither Level nor Total is above Params.Activation

	HorizonNeeded time.Duration // Horizon, had there been no HorizonMax
	HorizonLimit  HorizonLimit  // what keeps the forecast short of the startup time, if anything
	Window        time.Duration // how far back this forecast looked
	WindowNeeded  time.Duration // the shortest window that carries a trend to Horizon; 0 with Holt, which needs none

	Dropped  int // samples rejected: not finite, out of the model's range, or from the future
	Decision Decision
	Holds    float64 // the load that the instances of Decision hold at the threshold
	Farther  Farther // with Input.NodeStartupTime
}

// ErrNoData is returned if no instance is known at any tick of the window.
var ErrNoData = errors.New("no tick of the window has a value: at least two samples of one active instance are needed")

// ErrOverflow is returned if the samples are so large that their sum is not a finite number.
var ErrOverflow = errors.New("the samples add up to more than a number can hold")

// maxTime bounds times to what a float64 holds exactly, some 285,000 years.
const maxTime = int64(1) << 53

// StaleError is returned if the newest tick is older than Params.StaleAfter.
type StaleError struct{ Age, Limit time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the newest data is %s old, more than the limit of %s", e.Age, e.Limit)
}

// Pipeline runs forecasts. It keeps memory between runs, and nothing else: results depend on the Input alone.
// It is not safe for concurrent use.
type Pipeline struct {
	params Params
	*memory
}

// Memory is what runs work in: some kilobytes to megabytes by the size of window and fleet. Many pipelines may share one,
// as long as one run uses it at a time. The zero value is ready.
type Memory struct {
	window   series.Window
	aligner  align.Aligner
	imputer  impute.Imputer
	weighted redistribute.Weighted
	total    redistribute.Total
	loads    series.Loads // of the last run that got so far

	whole     [1]Instance // stands for all, if the load is measured as a whole
	missed    []float64
	scratch   []float64     // by tick
	steps     []float64     // of the past and the window
	described []series.Load // of a description
	line      []float64     // scratch of its line

	traced     *Trace // of the run under way, nil without one
	tracedMost int
}

// Missed returns the errors of the last run's forecasts of one tick ahead, load less forecast, in order of time. It is
// empty with Adaptive and if the run failed early, and changed by the next run.
func (m *Memory) Missed() []float64 { return m.missed }

// Loads returns the loads of the last run, tick by tick. They are empty if it failed early, and changed by the next run.
func (m *Memory) Loads() series.Loads { return m.loads }

// forget releases what belongs to the caller.
func (m *Memory) forget() {
	m.window.Forget()
	m.whole = [1]Instance{}
}

// memory keeps Memory from being a part of what a Pipeline exports.
type memory = Memory

// New returns a pipeline, or every broken precondition of the parameters (each a *FieldError, joined).
func New(params Params) (*Pipeline, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Pipeline{params: params, memory: &Memory{}}, nil
}

// Params returns the parameters that the pipeline was made with.
func (p *Pipeline) Params() Params { return p.params }

// Run makes a forecast. It fails with ErrNoData, ErrOverflow, a *StaleError, or an error that names two instances of one ID or
// a Now that is out of range.
func (p *Pipeline) Run(in Input) (Forecast, error) {
	if in.Bounds != nil {
		return p.RunIn(p.memory, in)
	}
	return p.run(in)
}

// run makes a forecast. Of an input with bounds the parameters have them already, and may be changed.
func (p *Pipeline) run(in Input) (Forecast, error) {
	if in.Now < -maxTime || in.Now > maxTime {
		return Forecast{}, fmt.Errorf("now: %d: must be milliseconds between %d and %d", in.Now, -maxTime, maxTime)
	}
	defer p.forget()
	p.missed, p.loads = p.missed[:0], series.Loads{}
	r := p.params.reach(in.StartupTime)
	f := Forecast{
		Now: in.Now, Horizon: series.Duration(r.horizon), HorizonNeeded: series.Duration(r.horizonNeeded), HorizonLimit: r.limit(),
		Window: r.window, WindowNeeded: r.windowNeeded,
	}
	w, err := p.fill(in.Since, p.carriers(&in), &f)
	if err != nil {
		return Forecast{}, err
	}
	f.Tick = w.Tick(w.Last)
	lag := time.Duration(in.Now-f.Tick) * time.Millisecond
	if lag > p.params.StaleAfter {
		return Forecast{}, &StaleError{Age: lag, Limit: p.params.StaleAfter}
	}
	p.imputer.Fill(w)
	m := p.params.method()
	loads := m.loads(p.memory)
	p.scratch = series.Resize(p.scratch, w.N)
	p.addDemand(in.Demand, loads, &f)
	p.loads = w.Loads(loads)
	p.keep(loads)

	p.count(&in, loads[len(loads)-1], &f)
	// Counted from the newest data, as now is later (paper, section 7.10).
	ahead := (float64(in.Now-f.Tick) + r.horizon) / float64(w.Step)
	o := m.project(loads, ahead, p.memory)
	o.past = p.recall(&in, loads, ahead)
	p.extrapolate(&f, m, o, ahead)
	if !f.finite() {
		return Forecast{}, ErrOverflow
	}
	pending := f.Target > f.Active && within(in.Now, in.TargetRose, p.params.PendingExpiry)
	f.Decision = p.params.wake(&f, m.decide(f, pending), pending)
	if in.Bounds != nil {
		p.params.bound(&f)
	}
	f.Holds = p.params.Model.Load(p.params.Threshold) * float64(f.Decision.Desired)
	if in.NodeStartupTime > 0 {
		f.Farther = p.farther(f, m, o, loads, &in, r.horizon+series.Millis(in.NodeStartupTime))
	}
	return f, nil
}

// carriers returns the instances whose samples add up to the load. A load that is measured as a whole is that of one instance, which
// is always there.
func (p *Pipeline) carriers(in *Input) []Instance {
	if !p.params.Whole {
		return in.Instances
	}
	p.whole[0] = Instance{Start: Never, Samples: in.Total}
	return p.whole[:]
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

// RunIn is Run in a memory that other pipelines may use as well, and not in one of its own.
func (p *Pipeline) RunIn(m *Memory, in Input) (Forecast, error) {
	if b := in.Bounds; b != nil {
		bounded := Pipeline{params: p.params, memory: m}
		bounded.params.Min, bounded.params.Max, bounded.params.Lateness = b.Min, b.Max, b.Lateness
		return bounded.run(in)
	}
	own := p.memory
	defer func() { p.memory = own }()
	p.memory = m
	return p.run(in)
}

// fill aligns the samples of every instance onto the grid of the window.
func (p *Pipeline) fill(since int64, instances []Instance, f *Forecast) (*series.Window, error) {
	w := &p.window
	w.Grid = series.NewGrid(f.Now, f.Window.Milliseconds(), p.params.Interval.Milliseconds())
	if since != 0 {
		w.Grid = w.From(since)
	}
	if err := w.Seat(instances); err != nil {
		return nil, err
	}
	f.Dropped += p.aligner.Fill(w, align.Limits{Latest: f.Now + w.Step, Lowest: p.params.Model.Lowest()})
	if w.Last < 0 {
		return nil, ErrNoData
	}
	return w, nil
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

// extrapolate carries the trend to the horizon, which is some ticks ahead of the newest data.
func (p *Pipeline) extrapolate(f *Forecast, m method, o projection, ticks float64) {
	f.Level, f.Error, f.Trend = o.present(), o.levelError, o.slope
	f.Total = o.total(ticks)
	if o.past.known {
		f.Total = o.past.total
	}
	plan := m.planned(*f, o, ticks)
	f.Damped, f.Learned, f.Need = plan.load, plan.learned, Need{Margin: plan.margin, Basis: plan.basis}

	present := f.Weight
	if present == 0 {
		present = float64(f.Active)
	}
	if p.params.Whole && present == 0 {
		present = float64(max(1, f.Target)) // what the first of them would carry
	}
	model := p.params.Model
	f.LoadNow = model.PerInstance(f.Level, present)
	f.LoadPredicted = model.PerInstance(f.Total, float64(max(1, f.Target)))
	f.Required = model.Required(f.Damped, p.params.Threshold)
	if f.Idle = p.params.idle(f, o.total(ticks)); f.Idle {
		f.Required = 0
	} else if p.params.Min == 0 {
		f.Required = max(f.Required, leastShare)
	}
	f.Serve = m.served(*f)
	f.Need = m.need(*f)
}

func (f *Forecast) finite() bool {
	for _, x := range []float64{f.Level, f.Error, f.Trend, f.Total, f.Damped, f.LoadNow, f.LoadPredicted, f.Required, f.Serve} {
		if !series.Finite(x) {
			return false
		}
	}
	return true
}
