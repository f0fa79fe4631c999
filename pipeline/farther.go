package pipeline

import (
	"time"

	"github.com/foresail/foresail/pipeline/line"
	"github.com/foresail/foresail/pipeline/series"
)

// Farther is a second forecast of a run: of the time at which an instance could be ready that has to wait for a node which is
// ordered now. It is the zero value while it is not known.
type Farther struct {
	Horizon      time.Duration // Forecast.Horizon and the startup time of a node
	Total        float64       // the load then
	Desired      int           // instances needed then, between Params.Min and Params.Max or those of Input.Bounds
	WindowNeeded time.Duration // the shortest window that carries a trend so far; 0 with Holt, which needs none
}

// farther carries the trend of a run on to a horizon (ms) beyond its own. It starts from the same loads, so that it costs a line more
// at the most.
func (p *Pipeline) farther(f Forecast, m method, o projection, loads []series.Load, in *Input, horizon float64) Farther {
	if b := in.Bounds; b != nil {
		p.params.Min, p.params.Max = b.FartherMin, b.FartherMax
	}
	step := float64(p.window.Step)
	near := (float64(f.Now-f.Tick) + series.Millis(f.Horizon)) / step
	ahead := (float64(f.Now-f.Tick) + horizon) / step
	o = m.extend(o, loads, near, ahead, p.memory)
	o.past = p.recall(in, loads, ahead)
	p.extrapolate(&f, m, o, ahead)
	if !f.finite() {
		return Farther{}
	}
	return Farther{
		Horizon: series.Duration(horizon), Total: f.Total, Desired: p.params.needs(&f, m.least(f)),
		WindowNeeded: m.lookBack(reach{horizon: horizon}).windowNeeded,
	}
}

// needs returns how many instances a forecast needs, of which the method says the least that are good enough.
func (p *Params) needs(f *Forecast, least int) int {
	switch {
	case f.Idle:
		return 0
	case p.Min == 0:
		return clamp(least, 1, p.Max)
	}
	return clamp(least, p.Min, p.Max)
}

func (h holt) extend(o projection, _ []series.Load, _, _ float64, _ *Memory) projection { return o }

func (h holt) least(f Forecast) int { return h.scaleUpCount(&f) }

// extend fits a longer line if the one of the nearer horizon went through all the ticks that it was allowed: the trend may have lasted
// for longer, and then it is carried on for longer. near and ahead are in ticks from the newest one.
func (p adaptive) extend(o projection, loads []series.Load, near, ahead float64, m *Memory) projection {
	allowed := line.NewSampling(m.loads.Spacing, near)
	longer := line.NewSampling(m.loads.Spacing, ahead)
	wentThroughAll := o.lasts >= line.CarriedOn*float64(allowed.Longest) // lasts is CarriedOn times the ticks of the line
	if !wentThroughAll || longer.Longest <= allowed.Longest || len(loads) <= allowed.Longest {
		return o
	}
	return project(loads, longer, m.scratch)
}

func (p adaptive) least(f Forecast) int {
	least, _ := p.counts(&f)
	return least
}
