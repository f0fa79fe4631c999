package pipeline

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/series"
)

// method is one way to forecast: it turns the loads of the window into a forecast and a decision. Its arguments are values
// where pointers would make a run allocate.
type method interface {
	// loads returns the aggregate of each tick of the window, oldest first.
	loads(m *Memory) []series.Load
	// project returns the trend of the loads, which is needed for some ticks ahead. It may write to m.
	project(loads []series.Load, ahead float64, m *Memory) projection
	// planned returns A_ω, the load that instances are needed for at the horizon, which is some ticks from the newest one.
	planned(f Forecast, o projection, ticks float64) plan
	// need returns what decide counts instances for.
	need(f Forecast) Need
	// served returns S_H of a forecast that is complete but for this.
	served(f Forecast) float64
	// decide returns the decision. Pending: requested instances have not started.
	decide(f Forecast, pending bool) Decision
	// extend returns the projection of the same loads for a number of ticks beyond those that o was needed for.
	extend(o projection, loads []series.Load, near, ahead float64, m *Memory) projection
	// least returns the fewest instances that are good enough for a forecast.
	least(f Forecast) int
	// lookBack returns r with its window, and the window that its horizon needs.
	lookBack(r reach) reach
	// gap is Params.ReplacementGap.
	gap() time.Duration
}

func (p *Params) method() method {
	if p.Method == Adaptive {
		return adaptive{p}
	}
	return holt{p}
}

// ReplacementGap is for how long the samples do not add up to the load after all instances have been replaced at one moment:
// those that have ended are not read any more, and the others have not taken over yet. It is 0 with a method that holds the
// load meanwhile.
func (p *Params) ReplacementGap() time.Duration { return p.method().gap() }

// plan is the load that instances are needed for.
type plan struct {
	load    float64 // with the margin
	margin  float64
	basis   Basis
	learned bool // the margin was learned
}

// projection is the load of the newest tick and how it goes on from there.
type projection struct {
	trend
	lasts       float64 // for how many ticks the trend goes on
	hidden      float64 // for how many it has gone on unseen, since the level could last be read
	shown       float64 // what a clipped fleet reads
	least, most float64 // bounds of the load at the horizon; most holds while the level is below it

	levelError float64 // standard error of the level
	noise      float64 // standard deviation of loads around the line

	past recalled
}

// growth is how far the load rises or falls from the level in a number of ticks from the newest.
func (o *projection) growth(ticks float64) float64 {
	return o.slope * min(o.hidden+ticks, o.lasts)
}

// present is the load now: of a clipped fleet no less than it shows.
func (o *projection) present() float64 {
	if o.hidden == 0 {
		return o.level
	}
	return min(max(o.level+o.growth(0), o.shown), max(o.most, o.shown))
}

// total is the load in a number of ticks from the newest.
func (o *projection) total(ticks float64) float64 {
	total := max(0, o.level+o.growth(ticks), o.least)
	if o.level < o.most {
		return min(total, o.most)
	}
	return total
}

// holt is the paper's method (sections 6 to 8).
type holt struct{ *Params }

func (h holt) loads(m *Memory) []series.Load {
	o := h.redistribution()
	return m.weighted.Sum(&m.window, &o)
}

func (h holt) project(loads []series.Load, _ float64, m *Memory) projection {
	state, missed := h.predict(loads, m.missed)
	m.missed = missed
	return projection{trend: state, lasts: math.Inf(1), most: math.Inf(1)}
}

// planned discounts a rise by the risk of acting on it.
func (h holt) planned(f Forecast, o projection, ticks float64) plan {
	if growth := o.growth(ticks); growth > 0 && f.Level > 0 {
		return plan{load: f.Level + growth*h.RiskFactor/(h.RiskFactor+growth/f.Level)}
	}
	return plan{load: f.Total}
}

func (h holt) served(f Forecast) float64 { return h.Threshold * f.Required }

func (h holt) lookBack(r reach) reach { return r }

func (h holt) gap() time.Duration { return h.RedistributionTimeout }
