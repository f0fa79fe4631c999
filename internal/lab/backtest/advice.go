package backtest

import (
	"context"
	"math"
	"time"

	"github.com/foresail/foresail/pipeline"
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

// dimensions are what the search tries: what every method reads, and what the one that is searched for does.
func dimensions(threshold float64, method pipeline.Method) []dimension {
	own := smoothing
	if method == pipeline.Adaptive {
		own = noise
	}
	return append(own(), common(threshold)...)
}

// vary is a dimension of values of one field.
func vary[T any](field string, set func(s *Setting, value T), values ...T) dimension {
	d := dimension{field: field}
	for _, value := range values {
		d.set = append(d.set, func(s *Setting) { set(s, value) })
	}
	return d
}

func common(threshold float64) []dimension {
	targets := make([]float64, 0, 5)
	for _, by := range []float64{-0.15, -0.1, -0.05, 0.05, 0.1} {
		if target := math.Round((threshold+by)*1000) / 1000; target >= 0.1 && target < 1 {
			targets = append(targets, target)
		}
	}
	const s = time.Second
	return []dimension{
		vary("threshold", func(s *Setting, v float64) { s.Target = v }, targets...),
		vary("horizon.multiplier", func(s *Setting, v float64) { s.Params.HorizonMultiplier = v }, 0.6, 0.9, 1.2, 1.6),
		vary("horizon.reactionDelay", func(s *Setting, v time.Duration) { s.Params.ReactionDelay = v }, 0, 15*s, 30*s),
		vary("redistribution.timeout", func(s *Setting, v time.Duration) { s.Params.RedistributionTimeout = v }, 5*s, 30*s),
		vary("metric", func(s *Setting, v Metric) { s.Metric = v }, Utilization, Requests),
	}
}

// smoothing is what Holt's method alone reads. Level and trend fall by a weight of no more than 0.1.
func smoothing() []dimension {
	type weights struct{ level, trend float64 }
	return []dimension{vary("smoothing", func(s *Setting, w weights) {
		s.Params.LevelUp, s.Params.LevelDown, s.Params.TrendUp, s.Params.TrendDown = w.level, min(w.level, 0.1), w.trend, min(w.trend, 0.1)
	}, weights{0.1, 0.05}, weights{0.05, 0.02}, weights{0.2, 0.1}, weights{0.2, 0.2})}
}

// noise is what the adaptive method reads and Holt's does not, or what it reads otherwise.
func noise() []dimension {
	return []dimension{
		vary("forecast.noiseMargin", func(s *Setting, v float64) { s.Params.NoiseMargin = v }, 0, 0.4, 1.2, 1.6),
		vary("window", func(s *Setting, v time.Duration) { s.Params.Window = v }, 2*time.Minute, 8*time.Minute),
		vary("decision.scaleDownMargin", func(s *Setting, v float64) { s.Params.ScaleDownMargin = v }, 0, 0.1, 0.2),
	}
}

// Advice is what a search for settings found, and what came of it elsewhere.
type Advice struct {
	Scaler        string
	Tried         int
	Default, Best Setting
	Tuned, Judged Comparison
	ViolationCost float64 // pod-hours that 60 seconds in violation are worth
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
		for _, d := range dimensions(p.Threshold, a.Default.Params.Method) {
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
