package backtest

import (
	"context"
	"math"
	"time"
)

// tunedShare is the part of a trace, from its beginning, that settings are searched on. They are judged on the rest.
const tunedShare = 0.6

// noteworthy is by how much of the bill settings must do better, where they are judged, to be advised.
const noteworthy = 0.01

// dimension is something that can be set otherwise, one thing at a time.
type dimension struct {
	field string // as in a PredictedMetric
	set   []func(*Setting)
}

// dimensions are what the search tries.
func dimensions(threshold float64) []dimension {
	change := func(set ...func(*Setting)) []func(*Setting) { return set }
	targets := make([]func(*Setting), 0, 5)
	for _, by := range []float64{-0.15, -0.1, -0.05, 0.05, 0.1} {
		if target := math.Round((threshold+by)*1000) / 1000; target >= 0.1 && target < 1 {
			targets = append(targets, func(s *Setting) { s.Target = target })
		}
	}
	horizon := func(multiplier float64) func(*Setting) {
		return func(s *Setting) { s.Params.HorizonMultiplier = multiplier }
	}
	delay := func(d time.Duration) func(*Setting) { return func(s *Setting) { s.Params.ReactionDelay = d } }
	smooth := func(level, trend float64) func(*Setting) {
		return func(s *Setting) {
			s.Params.LevelUp, s.Params.LevelDown, s.Params.TrendUp, s.Params.TrendDown = level, min(level, 0.1), trend, min(trend, 0.1)
		}
	}
	redistribute := func(d time.Duration) func(*Setting) {
		return func(s *Setting) { s.Params.RedistributionTimeout = d }
	}
	metric := func(m Metric) func(*Setting) { return func(s *Setting) { s.Metric = m } }
	return []dimension{
		{"smoothing", change(smooth(0.1, 0.05), smooth(0.05, 0.02), smooth(0.2, 0.1), smooth(0.2, 0.2))},
		{"threshold", targets},
		{"horizon.multiplier", change(horizon(0.6), horizon(0.9), horizon(1.2), horizon(1.6))},
		{"horizon.reactionDelay", change(delay(0), delay(15*time.Second), delay(30*time.Second))},
		{"redistribution.timeout", change(redistribute(5*time.Second), redistribute(30*time.Second))},
		{"metric", change(metric(Utilization), metric(Requests))},
	}
}

// Advice is what a search for settings found, and what came of it elsewhere.
type Advice struct {
	Scaler        string
	Tried         int
	Default, Best Setting
	Tuned, Judged Comparison
	ViolationCost float64 // pod-hours that a minute of violation is worth
	Capacity      float64 // of a pod, requests per second
}

// Comparison has the figures of the two settings on one part of the trace.
type Comparison struct{ Default, Best Figures }

// Gain is the share of the bill that the best settings save; negative: that they add.
func (c Comparison) Gain(violationCost float64) float64 {
	return 1 - c.Best.Bill(violationCost)/c.Default.Bill(violationCost)
}

// Holds tells whether the settings are worth changing, by the part that they were not searched on.
func (a *Advice) Holds() bool {
	return a.Best != a.Default && a.Judged.Gain(a.ViolationCost) >= noteworthy
}

// advise searches for settings on the first part of the trace and judges them on the rest. The search never meets the rest.
func (p *player) advise(ctx context.Context) (*Advice, error) {
	const name = "foresail-total"
	tuned, judged := p.parts()
	a := &Advice{Scaler: name, Default: p.setting(name), ViolationCost: p.ViolationCost, Capacity: p.Capacity}
	if err := p.search(ctx, a, tuned.sample(searchBudget, p.Seeds[0])); err != nil {
		return nil, err
	}
	figures, err := p.play(ctx, []Setting{a.Default, a.Best}, judged.sample(judgeBudget, p.Seeds[0]))
	if err != nil {
		return nil, err
	}
	a.Judged = Comparison{figures[0], figures[1]}
	return a, nil
}

// search changes one thing after the other for what costs least, as long as that helps, twice over.
func (p *player) search(ctx context.Context, a *Advice, on []section) error {
	first, err := p.play(ctx, []Setting{a.Default}, on)
	if err != nil {
		return err
	}
	known := map[Setting]Figures{a.Default: first[0]}
	a.Best = a.Default
	for range 2 {
		begin := a.Best
		for _, d := range dimensions(p.Threshold) {
			var fresh []Setting
			candidates := d.of(a.Best)
			for _, c := range candidates {
				if _, ok := known[c]; !ok {
					fresh = append(fresh, c)
				}
			}
			figures, err := p.play(ctx, fresh, on)
			if err != nil {
				return err
			}
			for i, c := range fresh {
				known[c] = figures[i]
			}
			for _, c := range candidates {
				if known[c].Bill(p.ViolationCost) < known[a.Best].Bill(p.ViolationCost) {
					a.Best = c
				}
			}
		}
		if a.Best == begin {
			break
		}
	}
	a.Tried = len(known)
	a.Tuned = Comparison{known[a.Default], known[a.Best]}
	return nil
}

// of returns what the dimension makes of a setting.
func (d *dimension) of(s Setting) []Setting {
	out := make([]Setting, len(d.set))
	for i, set := range d.set {
		out[i] = s
		set(&out[i])
	}
	return out
}
