package backtest

import (
	"context"
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

// Result is all that a backtest found.
type Result struct {
	Options  *Options
	Summary  []Row // each scaler over the whole trace
	Frontier []Row // each scaler with each target, over FrontierHours
	Advice   *Advice

	FrontierHours float64
	BeyondMax     float64   // minutes in which all pods that there may be would have been too few
	Timeline      *Timeline // with a frontier only
}

// Exact tells whether as many requests arrive as the trace says: it counts seconds, and has its chance in it.
func (r *Result) Exact() bool { return r.Options.exact() }

// Sampled tells whether some hours stand for the whole trace where many runs were needed.
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
		if r.Timeline, err = p.timeline(ctx); err != nil {
			return nil, err
		}
	}
	if o.Advise {
		if r.Advice, err = p.advise(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// whole is all of the trace.
func (p *player) whole() section {
	return section{0, p.Trace.Length().Truncate(time.Second).Milliseconds()}
}

// parts are what settings may be searched on, and what they are judged on. The cut is at a line of the trace: between two of
// them the load would tell of the second.
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

// frontier plays each scaler with each target.
func (p *player) frontier(ctx context.Context, settings []Setting, on []section) ([]Row, error) {
	var all []Setting
	for _, s := range settings {
		for _, target := range p.Targets {
			s.Target = target
			all = append(all, s)
		}
	}
	return p.rows(ctx, all, on)
}
