package pipeline_test

import (
	"fmt"
	"math"
	"time"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/series/seriestest"
)

// fleets makes random parameters and inputs. Everything comes from its seed.
type fleets struct{ seriestest.Random }

func newFleets(seed uint64) fleets { return fleets{seriestest.NewRandom(seed)} }

func pick[T any](r fleets, of ...T) T { return seriestest.Pick(r, of...) }

// params returns random valid parameters.
func (r fleets) params() pipeline.Params {
	p := pipeline.HoltParams()
	p.Threshold = pick(r, 0.7, 0.75, 1, r.Between(0.1, 200))
	p.Model = pick(r, pipeline.Model{}, pipeline.Model{Kind: pipeline.Linear}, pipeline.Model{Kind: pipeline.Quadratic},
		pipeline.Model{Kind: pipeline.Overhead, Baseline: p.Threshold * r.Between(0, 0.2)})
	p.Min = 1 + r.IntN(4)
	p.Max = p.Min + r.IntN(25)
	p.Interval = time.Duration(pick(r, 1000, 1000, 100, 250, 333, 1500, 10_000)) * time.Millisecond
	p.Window = p.Interval*time.Duration(2+r.IntN(60)) + r.Millis(0, 400)
	if r.Chance(0.2) {
		return r.narrow(p) // everything else by default
	}
	p.RedistributionTimeout = time.Duration(r.Between(0, 1.5) * float64(p.Window))
	p.RedistributionShape = pick(r, 0.0, 1, r.Between(-6, 6))
	for _, share := range []*float64{&p.LevelUp, &p.LevelDown, &p.TrendUp, &p.TrendDown} {
		*share = pick(r, 0.0, 1, 0.1, 0.2, r.Float64(), r.Float64(), r.Float64())
	}
	if r.Chance(0.4) {
		p.Saturation = pipeline.Saturation{Enabled: true, Max: p.Threshold * r.Between(1.01, 2),
			Zone: pick(r, 0, 0.02, r.Between(0, 0.4))}
	}
	p.StartupTime = r.Millis(0, 60_000)
	p.HorizonMultiplier = r.Between(0.1, 3)
	p.HorizonMin = r.Millis(0, 20_000)
	p.HorizonMax = p.HorizonMin + r.Millis(0, 40_000)
	p.ReactionDelay = r.Millis(0, 30_000)
	p.TrendAngle = r.Between(0, 30)
	p.RiskFactor = r.Between(0.01, 6)
	p.ScaleDownMargin = r.Between(0, 1.5)
	p.Spillover = r.Between(0, 0.99)
	p.MaxStep = r.IntN(7)
	p.PendingExpiry = r.Millis(0, 120_000)
	return r.narrow(p)
}

// narrow makes data stale in some of the fleets.
func (r fleets) narrow(p pipeline.Params) pipeline.Params {
	p.StaleAfter = p.Window
	if r.Chance(0.1) {
		p.StaleAfter = time.Duration(r.Between(0.01, 0.5) * float64(p.Window))
	}
	return p
}

// input returns an input of at most a dozen instances that come, go and report as they like.
func (r fleets) input(p pipeline.Params) pipeline.Input {
	in := pipeline.Input{Now: pick[int64](r, 0, -5_000_000, 1_700_000_000_000) + r.Span(-20_000, 1_000_000),
		TargetRose: pipeline.Never}
	window, step := p.Window.Milliseconds(), p.Interval.Milliseconds()
	last := in.Now - window - r.Span(0, window)
	for n := r.IntN(13); n > 0; n-- {
		i := pipeline.Instance{ID: fmt.Sprintf("%c%d", 'a'+r.IntN(26), n), Start: in.Now - r.Span(-step, 2*window)}
		if r.Chance(0.3) {
			i.Start = last // together with another, or just as another ends
		}
		if r.Chance(0.4) {
			i.End = i.Start + r.Span(0, 2*window)
		}
		i.Samples = r.samples(p, in.Now, i.Start)
		in.Instances = append(in.Instances, i)
		last = pick(r, i.Start, i.Start, i.End)
		if last == 0 {
			last = i.Start
		}
	}
	if r.Chance(0.3) {
		in.Demand = r.samples(p, in.Now, in.Now-2*window)
	}
	if r.Chance(0.1) {
		in.Since = in.Now - r.Span(0, window)
	}
	if r.Chance(0.6) {
		in.Target = 1 + r.IntN(p.Max+2)
	}
	if r.Chance(0.5) {
		in.TargetRose = in.Now - r.Span(0, 150_000)
	}
	if r.Chance(0.5) {
		in.StartupTime = r.Millis(1, 60_000)
	}
	return in
}

// samples returns a series from about start until some time before now: a walk, a constant, a ramp or a clipped ramp,
// with gaps, duplicates, samples that are no numbers, samples from the future and samples out of order.
func (r fleets) samples(p pipeline.Params, now, start int64) []pipeline.Sample {
	step := p.Interval.Milliseconds()
	period := max(1, int64(r.Between(0.3, 3)*float64(step)))
	end := now + r.Span(-p.Window.Milliseconds()/2, 3*step)
	value, slope := p.Threshold*r.Between(0, 1.3), 0.0
	noise := pick(r, 0.0, 0.05, 0.3) * p.Threshold
	if r.Chance(0.4) {
		slope = p.Threshold * r.Between(-0.1, 0.1)
	}
	clip := math.Inf(1)
	if p.Saturation.Enabled && r.Chance(0.7) {
		clip, slope = p.Saturation.Max, p.Threshold*r.Between(0, 0.2)
	}
	onGrid := r.Chance(0.3)
	var samples []pipeline.Sample
	for t := max(start, now-2*p.Window.Milliseconds()) - r.Span(-step, 2*step); t <= end; t += period {
		at := t + r.Span(-period/3, period/3)
		if onGrid {
			at = t / step * step
		}
		value += slope + r.Between(-noise, noise)
		v := min(clip, value)
		switch {
		case r.Chance(0.02):
			v = pick(r, math.NaN(), math.Inf(1), math.Inf(-1))
		case r.Chance(0.02):
			v = -v * r.Float64()
		case r.Chance(0.02):
			v = 0
		}
		samples = append(samples, pipeline.Sample{T: at, V: v})
		if r.Chance(0.03) {
			samples = append(samples, pipeline.Sample{T: at, V: v * r.Float64()})
		}
		if r.Chance(0.02) {
			t += r.Span(0, 10*period)
		}
	}
	if r.Chance(0.3) {
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	}
	return samples
}
