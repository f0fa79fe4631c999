package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Forecast is the outcome of one run, with all the numbers that its decision was made from. Loads without a unit in
// their comment are aggregates; "per instance" means in units of the metric.
type Forecast struct {
	Now  int64 // ms
	Tick int64 // t_last, the newest tick at which any instance is known (ms)

	Level   float64 // A_now, the smoothed load
	Error   float64 // the standard error of Level, where the method knows it
	Trend   float64 // its change per tick
	Horizon time.Duration
	Total   float64 // A_H, the load at the horizon
	Damped  float64 // A_ω, the same with the trend discounted by the risk of acting on it

	Weight float64 // N^w, instances counted by how far they take part
	Active int     // instances active at Tick
	Target int     // N_target

	LoadNow       float64 // P_now, per instance
	LoadPredicted float64 // P_H, per instance of the target count
	Required      float64 // N(A_ω, τ), instances, as a real number
	Serve         float64 // S_H = τ·N(A_ω, τ): what an average over instances with target τ scales on

	Dropped  int // samples refused: not finite, out of the model's range, or from the future
	Decision Decision
}

// ErrNoData says that at no tick of the window any instance is known.
var ErrNoData = errors.New("no tick of the window has a value: at least two samples of one active instance are needed")

// ErrOverflow says that the samples are so large that their sum is not a number.
var ErrOverflow = errors.New("the samples add up to more than a number can hold")

// maxTime bounds times to what a float64 holds exactly, some 285,000 years.
const maxTime = int64(1) << 53

// StaleError says that the newest tick is older than data may be.
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
	window  window
	samples []Sample // scratch of clean
	missed  []float64
}

// Missed returns what the load of each tick of the last run, but the first, was above what had been forecast of it a tick
// before; negative: below. It is in order of time, empty if the run failed early, and changed by the next run.
func (m *Memory) Missed() []float64 { return m.missed }

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

// Run makes a forecast. It fails with ErrNoData, a *StaleError, or an error that names two instances of one ID.
func (p *Pipeline) Run(in Input) (Forecast, error) {
	if in.Now < -maxTime || in.Now > maxTime {
		return Forecast{}, fmt.Errorf("now: %d: must be milliseconds between %d and %d", in.Now, -maxTime, maxTime)
	}
	defer p.window.forget()
	p.missed = p.missed[:0]
	f := Forecast{Now: in.Now}
	w, err := p.fill(&in, &f)
	if err != nil {
		return Forecast{}, err
	}
	f.Tick = w.tick(w.last)
	lag := time.Duration(in.Now-f.Tick) * time.Millisecond
	if lag > p.params.StaleAfter {
		return Forecast{}, &StaleError{Age: lag, Limit: p.params.StaleAfter}
	}
	w.impute()
	loads := p.loads(w)
	p.addDemand(in.Demand, &f)

	newest := loads[len(loads)-1]
	f.Weight, f.Active = newest.weight, newest.active
	f.Target = max(1, in.Target)
	if in.Target == 0 {
		f.Target = max(1, newest.active)
	}
	o := p.outlook(loads, w)
	p.extrapolate(&f, o, &in)
	if !f.finite() {
		return Forecast{}, ErrOverflow
	}
	pending := f.Target > f.Active && within(in.Now, in.TargetRose, p.params.PendingExpiry)
	if p.params.Method == Adaptive {
		f.Decision = p.params.settle(&f, pending)
	} else {
		f.Decision = p.params.decide(&f, pending)
	}
	return f, nil
}

// RunIn is Run in a memory that other pipelines may use as well, and not in one of its own.
func (p *Pipeline) RunIn(m *Memory, in Input) (Forecast, error) {
	shared := Pipeline{params: p.params, memory: m}
	return shared.Run(in)
}

// fill aligns the samples of every instance onto the grid of the window.
func (p *Pipeline) fill(in *Input, f *Forecast) (*window, error) {
	w := &p.window
	step := p.params.Interval.Milliseconds()
	w.grid = newGrid(in.Now, p.params.Window.Milliseconds(), step)
	if in.Since != 0 {
		w.grid = w.from(in.Since)
	}
	if err := w.seat(in.Instances); err != nil {
		return nil, err
	}
	w.first, w.last = w.n, -1
	ok := limits{latest: in.Now + step, lowest: p.params.Model.lowest()}
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

// loads gives the aggregate of each tick, as the method sees it.
func (p *Pipeline) loads(w *window) []load {
	if p.params.Method == Adaptive {
		return w.total(&p.params)
	}
	return w.redistribute(p.params.Model, p.params.ramp())
}

// outlook is what the method makes of the loads.
func (p *Pipeline) outlook(loads []load, w *window) outlook {
	if p.params.Method == Adaptive {
		return adapt(loads, w.spacing(), w.scratch)
	}
	state, missed := p.params.predict(loads, p.missed)
	p.missed = missed
	return outlook{trend: state, lasts: math.Inf(1), most: math.Inf(1)}
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

// extrapolate carries the trend to the horizon, counted from now and not from the newest data (paper, section 7.10).
func (p *Pipeline) extrapolate(f *Forecast, o outlook, in *Input) {
	initTimeout := in.InitTimeout
	if initTimeout <= 0 {
		initTimeout = p.params.InitTimeout
	}
	h := p.params.horizon(millis(initTimeout))
	f.Horizon = duration(h)
	f.Level, f.Error, f.Trend = o.present(), o.levelError, o.slope
	ticks := (float64(in.Now-f.Tick) + h) / float64(p.window.step)
	f.Total = o.total(ticks)
	f.Damped = p.params.damped(f, &o, o.growth(ticks))

	present := f.Weight
	if present == 0 {
		present = float64(f.Active)
	}
	m := p.params.Model
	f.LoadNow = m.PerInstance(f.Level, present)
	f.LoadPredicted = m.PerInstance(f.Total, float64(f.Target))
	f.Required = m.Required(f.Damped, p.params.Threshold)
	f.Serve = p.params.Threshold * f.Required
	if p.params.Method == Adaptive {
		f.Serve = p.params.steady(f)
	}
}

// damped is A_ω. The adaptive method has left out of its trend what cannot be trusted; it takes nothing away before the load
// has fallen, and adds what the load is off the line by, as noise does not wait for instances to start.
func (p *Params) damped(f *Forecast, o *outlook, growth float64) float64 {
	switch {
	case p.Method == Adaptive:
		return max(f.Level, f.Total) + p.NoiseMargin*o.noise
	case growth > 0 && f.Level > 0:
		return f.Level + growth*p.RiskFactor/(p.RiskFactor+growth/f.Level)
	default:
		return f.Total
	}
}

func (f *Forecast) finite() bool {
	for _, x := range []float64{f.Level, f.Error, f.Trend, f.Total, f.Damped, f.LoadNow, f.LoadPredicted, f.Required, f.Serve} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
