// Package backtest plays scalers against a recorded load, and reports what each would have cost,
// how long its pods would have been above the threshold, how good the forecast was, and which
// settings would have done better.
//
// A trace is played in sections of some hours, each in a world of its own after a lead-in of what
// came before it, so that many can be played at once and none takes much memory. What needs many
// runs (the frontier, the search for settings) plays hours from all over the trace.
package backtest

import (
	"context"
	"math"
	"slices"
	"time"
)

// How much of a trace is played by what needs many runs.
const (
	frontierBudget = 24 * time.Hour
	searchBudget   = 12 * time.Hour
	judgeBudget    = 24 * time.Hour
)

// Row is a scaler as it is set, and its figures.
type Row struct {
	Setting
	Figures
}

// Rows are those of a table.
type Rows []Row

// of returns the row of a scaler.
func (rows Rows) of(name string) (Row, bool) {
	return rows.first(func(row Row) bool { return row.Scaler == name })
}

// with returns the row of a scaler with a target.
func (rows Rows) with(name string, target float64) (Row, bool) {
	return rows.first(func(row Row) bool { return row.Scaler == name && row.Target == target })
}

func (rows Rows) first(is func(Row) bool) (Row, bool) {
	i := slices.IndexFunc(rows, is)
	if i < 0 {
		return Row{}, false
	}
	return rows[i], true
}

// read interpolates one measure on the frontier of a scaler at a value of another; false beyond the
// targets that were tried.
func (rows Rows) read(name string, value float64, of, desired func(Figures) float64) (float64, bool) {
	least, found := math.Inf(1), false
	var before *Row
	for i := range rows {
		row := &rows[i]
		if row.Scaler != name {
			continue
		}
		if before != nil {
			a, b := of(before.Figures), of(row.Figures)
			if a != b && (a-value)*(b-value) <= 0 {
				from, to := desired(before.Figures), desired(row.Figures)
				least, found = min(least, from+(to-from)*(value-a)/(b-a)), true
			}
		}
		before = row
	}
	return least, found
}

// Result is all that a backtest found.
type Result struct {
	Options  *Options
	Summary  Rows // each scaler over the whole trace
	Frontier Rows // each scaler with each target, over FrontierHours
	Advice   *Advice

	FrontierHours float64
	BeyondMax     float64   // minutes in which all pods that there may be would have been too few
	Timeline      *Timeline // with a frontier only
}

// Sampled reports whether runs that need many settings play only some hours of the trace.
func (r *Result) Sampled() bool { return r.Options.Trace.Length() > frontierBudget }

// Run plays the scalers against the trace. It is a function of its options.
func Run(ctx context.Context, o *Options) (*Result, error) {
	p := newPlayer(o)
	r := &Result{Options: o}
	settings := make([]Setting, 0, len(o.Scalers))
	for _, name := range o.Scalers {
		settings = append(settings, o.setting(name))
	}
	var err error
	if r.Summary, err = p.rows(ctx, settings, p.whole().sections(longestSection)); err != nil {
		return nil, err
	}
	r.BeyondMax = p.beyondMax()
	if len(o.Targets) > 0 {
		some := p.whole().sample(frontierBudget, o.Seeds[0])
		r.FrontierHours = length(some).Hours()
		if r.Frontier, err = p.frontier(ctx, settings, some); err != nil {
			return nil, err
		}
		if r.Timeline, err = playTimeline(ctx, p); err != nil {
			return nil, err
		}
	}
	if o.Advise {
		if r.Advice, err = advise(ctx, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// whole is all of the trace.
func (p *player) whole() section {
	return section{0, p.Trace.Length().Truncate(time.Second).Milliseconds()}
}

// parts are what settings may be searched on, and what they are judged on. The cut is at a line of
// the trace: between two of them the interpolated load would depend on the second one.
func (p *player) parts() (tuned, judged section) {
	end := p.whole().to
	step := max(second, p.Trace.Step.Truncate(time.Second).Milliseconds())
	cut := int64(tunedShare*float64(end)) / step * step
	return section{0, cut}, section{cut, end}
}

func (p *player) rows(ctx context.Context, settings []Setting, on []section) ([]Row, error) {
	figures, err := p.play(ctx, settings, on)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(settings))
	for i := range rows {
		rows[i] = Row{settings[i], figures[i]}
	}
	return rows, nil
}

// frontier plays each scaler with each target. Those that others are compared with at as many pods
// are also played between the targets: their frontier is hollow, and a straight line across it
// would flatter the others.
func (p *player) frontier(ctx context.Context, settings []Setting, on []section) ([]Row, error) {
	var all []Setting
	for _, s := range settings {
		targets := p.Targets
		if s.Scaler == rival || s.Scaler == equal {
			targets = between(targets)
		}
		for _, target := range targets {
			s.Target = target
			all = append(all, s)
		}
	}
	return p.rows(ctx, all, on)
}

// between adds three targets between each two, to the thousandth.
func between(targets []float64) []float64 {
	out := slices.Clone(targets[:1])
	for i, target := range targets[1:] {
		before := targets[i]
		for k := range 3 {
			out = append(out, math.Round(1000*(before+(target-before)*float64(k+1)/4))/1000)
		}
		out = append(out, target)
	}
	return out
}
