package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"
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
	window    window
	whole     [1]Instance // stands for all, if the load is measured as a whole
	samples   []Sample    // scratch of clean
	missed    []float64
	steps     []float64 // of the past and the window
	described []load    // of a description
	scratch   []float64 // of its line

	traced     *Trace // of the run under way, nil if nobody asked for it
	tracedMost int
}

// Missed returns the errors of the last run's forecasts of one tick ahead, load less forecast, in order of time. It is empty with
// Adaptive and if the run failed early, and changed by the next run.
func (m *Memory) Missed() []float64 { return m.missed }

// forget lets go of what is the caller's.
func (m *Memory) forget() {
	m.window.forget()
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
	p.missed = p.missed[:0]
	r := p.params.reach(in.StartupTime)
	f := Forecast{
		Now: in.Now, Horizon: duration(r.horizon), HorizonNeeded: duration(r.horizonNeeded), HorizonLimit: r.limit(),
		Window: r.window, WindowNeeded: r.windowNeeded,
	}
	w, err := p.fill(in.Since, p.carriers(&in), &f)
	if err != nil {
		return Forecast{}, err
	}
	f.Tick = w.tick(w.last)
	lag := time.Duration(in.Now-f.Tick) * time.Millisecond
	if lag > p.params.StaleAfter {
		return Forecast{}, &StaleError{Age: lag, Limit: p.params.StaleAfter}
	}
	w.impute()
	w.spaced = w.spacing()
	m := p.params.method()
	loads := m.loads(w)
	p.addDemand(in.Demand, &f)
	p.keep(loads)

	p.count(&in, loads[len(loads)-1], &f)
	// Counted from the newest data, as now is later (paper, section 7.10).
	ahead := (float64(in.Now-f.Tick) + r.horizon) / float64(w.step)
	o := m.project(loads, w, ahead, p.memory)
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
		f.Farther = p.farther(f, m, o, loads, &in, r.horizon+millis(in.NodeStartupTime))
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
func (p *Pipeline) count(in *Input, newest load, f *Forecast) {
	f.Weight, f.Active, f.Target = newest.weight, newest.active, in.Target
	if p.params.Whole {
		f.Active = 0
		for i := range in.Instances {
			if x := &in.Instances[i]; x.Start <= f.Tick && f.Tick < x.end() {
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
func (p *Pipeline) fill(since int64, instances []Instance, f *Forecast) (*window, error) {
	w := &p.window
	step := p.params.Interval.Milliseconds()
	w.grid = newGrid(f.Now, f.Window.Milliseconds(), step)
	if since != 0 {
		w.grid = w.from(since)
	}
	if err := w.seat(instances); err != nil {
		return nil, err
	}
	w.first, w.last = w.n, -1
	ok := limits{latest: f.Now + step, lowest: p.params.Model.lowest()}
	for i := range w.series {
		s := &w.series[i]
		known, used := p.align(s.Samples, ok, s.active, s.values, f)
		s.known, s.spacing = known, w.grid.spacing(used)
		if !s.known.empty() {
			w.first, w.last = min(w.first, s.known.from), max(w.last, s.known.to-1)
		}
	}
	if w.last < 0 {
		return nil, ErrNoData
	}
	return w, nil
}

// align aligns samples that may have to be cleaned first, and counts what is dropped. It returns the samples that it used.
func (p *Pipeline) align(samples []Sample, ok limits, active ticks, out []float64, f *Forecast) (known ticks, used []Sample) {
	known, isClean := align(samples, ok, p.window.grid, active, out)
	if isClean {
		return known, samples
	}
	cleaned, dropped := clean(samples, ok, p.samples)
	p.samples = cleaned
	f.Dropped += dropped
	known, _ = align(cleaned, ok, p.window.grid, active, out)
	return known, cleaned
}

// addDemand adds load that no instance carries yet to the effective aggregate of each tick.
func (p *Pipeline) addDemand(demand []Sample, f *Forecast) {
	w := &p.window
	ok := limits{latest: f.Now + w.step, lowest: Model{}.lowest()}
	known, demand := p.align(demand, ok, w.span(), w.scratch, f)
	if len(demand) == 0 {
		return
	}
	newest := demand[len(demand)-1]
	held := w.index(newest.T)
	for k := known.from; k < min(known.to, held); k++ {
		w.loads[k].effective += w.scratch[k]
	}
	for k := max(held, w.first); k <= w.last; k++ {
		w.loads[k].effective += newest.V
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
		if !finite(x) {
			return false
		}
	}
	return true
}

// finite is false for NaN.
func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
