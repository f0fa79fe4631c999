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
	params  Params
	window  window
	loads   []load
	samples []Sample  // scratch of clean
	demand  []float64 // scratch of addDemand
}

// New returns a pipeline, or every broken precondition of the parameters (each a *FieldError, joined).
func New(params Params) (*Pipeline, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Pipeline{params: params}, nil
}

// Params returns the parameters that the pipeline was made with.
func (p *Pipeline) Params() Params { return p.params }

// Run makes a forecast. It fails with ErrNoData, a *StaleError, or an error that names two instances of one ID.
func (p *Pipeline) Run(in Input) (Forecast, error) {
	if in.Now < -maxTime || in.Now > maxTime {
		return Forecast{}, fmt.Errorf("now: %d: must be milliseconds between %d and %d", in.Now, -maxTime, maxTime)
	}
	defer p.window.forget()
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
	p.loads = w.redistribute(p.params.Model, p.params.ramp(), p.loads)
	p.addDemand(in.Demand, &f)

	newest := p.loads[len(p.loads)-1]
	f.Weight, f.Active = newest.weight, newest.active
	f.Target = max(1, in.Target)
	if in.Target == 0 {
		f.Target = max(1, newest.active)
	}
	p.extrapolate(&f, p.params.predict(p.loads), &in)
	if !f.finite() {
		return Forecast{}, ErrOverflow
	}
	pending := f.Target > f.Active && within(in.Now, in.TargetRose, p.params.PendingExpiry)
	f.Decision = p.params.decide(&f, pending)
	return f, nil
}

// fill aligns the samples of every instance onto the grid of the window.
func (p *Pipeline) fill(in *Input, f *Forecast) (*window, error) {
	w := &p.window
	step := p.params.Interval.Milliseconds()
	w.grid = newGrid(in.Now, p.params.Window.Milliseconds(), step)
	if in.Since != 0 {
		w.grid = w.grid.from(in.Since)
	}
	if err := w.seat(in.Instances); err != nil {
		return nil, err
	}
	w.first, w.last = w.n, -1
	for i := range w.series {
		s := &w.series[i]
		samples, scratch, dropped := clean(s.Samples, p.params.Model, in.Now+step, p.samples)
		p.samples = scratch
		f.Dropped += dropped
		s.known = w.between(samples).and(s.active)
		if s.known.empty() {
			continue
		}
		align(samples, w.grid, s.known, s.values)
		w.first, w.last = min(w.first, s.known.from), max(w.last, s.known.to-1)
	}
	if w.last < 0 {
		return nil, ErrNoData
	}
	return w, nil
}

// addDemand adds load that no instance carries yet to the effective aggregate of each tick.
func (p *Pipeline) addDemand(demand []Sample, f *Forecast) {
	demand, scratch, dropped := clean(demand, Model{}, f.Now+p.params.Interval.Milliseconds(), p.samples)
	p.samples = scratch
	f.Dropped += dropped
	if len(demand) == 0 {
		return
	}
	w := &p.window
	newest := demand[len(demand)-1]
	held := w.index(newest.T)
	p.demand = resize(p.demand, w.n)
	known := ticks{w.index(demand[0].T), held}.and(w.span())
	align(demand, w.grid, known, p.demand)
	for k := known.from; k < known.to; k++ {
		p.loads[k-w.first].effective += p.demand[k]
	}
	for k := max(held, w.first); k <= w.last; k++ {
		p.loads[k-w.first].effective += newest.V
	}
}

// extrapolate carries the trend to the horizon, counted from now and not from the newest data (paper, section 7.10).
func (p *Pipeline) extrapolate(f *Forecast, t trend, in *Input) {
	initTimeout := in.InitTimeout
	if initTimeout <= 0 {
		initTimeout = p.params.InitTimeout
	}
	h := p.params.horizon(millis(initTimeout))
	f.Horizon = duration(h)
	f.Level, f.Trend = t.level, t.slope
	growth := t.slope * (float64(in.Now-f.Tick) + h) / float64(p.window.step)
	f.Total = max(0, f.Level+growth)
	f.Damped = f.Total
	if growth > 0 && f.Level > 0 {
		k := p.params.RiskFactor
		f.Damped = f.Level + growth*k/(k+growth/f.Level)
	}

	present := f.Weight
	if present == 0 {
		present = float64(f.Active)
	}
	m := p.params.Model
	f.LoadNow = m.PerInstance(f.Level, present)
	f.LoadPredicted = m.PerInstance(f.Total, float64(f.Target))
	f.Required = m.Required(f.Damped, p.params.Threshold)
	f.Serve = p.params.Threshold * f.Required
}

func (f *Forecast) finite() bool {
	for _, x := range []float64{f.Level, f.Trend, f.Total, f.Damped, f.LoadNow, f.LoadPredicted, f.Required, f.Serve} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
