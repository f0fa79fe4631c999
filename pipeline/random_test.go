package pipeline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// fleets makes random parameters and inputs. Everything comes from its seed.
type fleets struct{ *rand.Rand }

func newFleets(seed uint64) fleets { return fleets{rand.New(rand.NewPCG(seed, 2026))} }

func (r fleets) chance(p float64) bool             { return r.Float64() < p }
func (r fleets) between(low, high float64) float64 { return low + (high-low)*r.Float64() }
func (r fleets) span(low, high int64) int64        { return low + r.Int64N(high-low+1) }
func (r fleets) millis(low, high int64) time.Duration {
	return time.Duration(r.span(low, high)) * time.Millisecond
}

func pick[T any](r fleets, of ...T) T { return of[r.IntN(len(of))] }

// params returns parameters that are valid, and anywhere in what is valid.
func (r fleets) params() pipeline.Params {
	p := pipeline.HoltParams()
	p.Threshold = pick(r, 0.7, 0.75, 1, r.between(0.1, 200))
	p.Model = pick(r, pipeline.Model{}, pipeline.Model{Kind: pipeline.Linear}, pipeline.Model{Kind: pipeline.Quadratic},
		pipeline.Model{Kind: pipeline.Overhead, Baseline: p.Threshold * r.between(0, 0.2)})
	p.Min = 1 + r.IntN(4)
	p.Max = p.Min + r.IntN(25)
	p.Interval = time.Duration(pick(r, 1000, 1000, 100, 250, 333, 1500, 10_000)) * time.Millisecond
	p.Window = p.Interval*time.Duration(2+r.IntN(60)) + r.millis(0, 400)
	if r.chance(0.2) {
		return r.narrow(p) // everything else by default
	}
	p.RedistributionTimeout = time.Duration(r.between(0, 1.5) * float64(p.Window))
	p.RedistributionShape = pick(r, 0.0, 1, r.between(-6, 6))
	for _, share := range []*float64{&p.LevelUp, &p.LevelDown, &p.TrendUp, &p.TrendDown} {
		*share = pick(r, 0.0, 1, 0.1, 0.2, r.Float64(), r.Float64(), r.Float64())
	}
	if r.chance(0.4) {
		p.Saturation = pipeline.Saturation{Enabled: true, Max: p.Threshold * r.between(1.01, 2), Zone: pick(r, 0, 0.02, r.between(0, 0.4))}
	}
	p.StartupTime = r.millis(0, 60_000)
	p.HorizonMultiplier = r.between(0.1, 3)
	p.HorizonMin = r.millis(0, 20_000)
	p.HorizonMax = p.HorizonMin + r.millis(0, 40_000)
	p.ReactionDelay = r.millis(0, 30_000)
	p.TrendAngle = r.between(0, 30)
	p.RiskFactor = r.between(0.01, 6)
	p.ScaleDownMargin = r.between(0, 1.5)
	p.Spillover = r.between(0, 0.99)
	p.MaxStep = r.IntN(7)
	p.PendingExpiry = r.millis(0, 120_000)
	return r.narrow(p)
}

// narrow makes data stale in some of the fleets.
func (r fleets) narrow(p pipeline.Params) pipeline.Params {
	p.StaleAfter = p.Window
	if r.chance(0.1) {
		p.StaleAfter = time.Duration(r.between(0.01, 0.5) * float64(p.Window))
	}
	return p
}

// input returns an input of at most a dozen instances that come, go and report as they like.
func (r fleets) input(p pipeline.Params) pipeline.Input {
	in := pipeline.Input{Now: pick[int64](r, 0, -5_000_000, 1_700_000_000_000) + r.span(-20_000, 1_000_000), TargetRose: pipeline.Never}
	window, step := p.Window.Milliseconds(), p.Interval.Milliseconds()
	last := in.Now - window - r.span(0, window)
	for n := r.IntN(13); n > 0; n-- {
		i := pipeline.Instance{ID: fmt.Sprintf("%c%d", 'a'+r.IntN(26), n), Start: in.Now - r.span(-step, 2*window)}
		if r.chance(0.3) {
			i.Start = last // together with another, or just as another ends
		}
		if r.chance(0.4) {
			i.End = i.Start + r.span(0, 2*window)
		}
		i.Samples = r.samples(p, in.Now, i.Start)
		in.Instances = append(in.Instances, i)
		last = pick(r, i.Start, i.Start, i.End)
		if last == 0 {
			last = i.Start
		}
	}
	if r.chance(0.3) {
		in.Demand = r.samples(p, in.Now, in.Now-2*window)
	}
	if r.chance(0.1) {
		in.Since = in.Now - r.span(0, window)
	}
	if r.chance(0.6) {
		in.Target = 1 + r.IntN(p.Max+2)
	}
	if r.chance(0.5) {
		in.TargetRose = in.Now - r.span(0, 150_000)
	}
	if r.chance(0.5) {
		in.StartupTime = r.millis(1, 60_000)
	}
	return in
}

// samples returns a series from about start until some time before now: a walk, a constant, a ramp or a clipped ramp,
// with gaps, duplicates, samples that are no numbers, samples from the future and samples out of order.
func (r fleets) samples(p pipeline.Params, now, start int64) []pipeline.Sample {
	step := p.Interval.Milliseconds()
	period := max(1, int64(r.between(0.3, 3)*float64(step)))
	end := now + r.span(-p.Window.Milliseconds()/2, 3*step)
	value, slope := p.Threshold*r.between(0, 1.3), 0.0
	noise := pick(r, 0.0, 0.05, 0.3) * p.Threshold
	if r.chance(0.4) {
		slope = p.Threshold * r.between(-0.1, 0.1)
	}
	clip := math.Inf(1)
	if p.Saturation.Enabled && r.chance(0.7) {
		clip, slope = p.Saturation.Max, p.Threshold*r.between(0, 0.2)
	}
	onGrid := r.chance(0.3)
	var samples []pipeline.Sample
	for t := max(start, now-2*p.Window.Milliseconds()) - r.span(-step, 2*step); t <= end; t += period {
		at := t + r.span(-period/3, period/3)
		if onGrid {
			at = t / step * step
		}
		value += slope + r.between(-noise, noise)
		v := min(clip, value)
		switch {
		case r.chance(0.02):
			v = pick(r, math.NaN(), math.Inf(1), math.Inf(-1))
		case r.chance(0.02):
			v = -v * r.Float64()
		case r.chance(0.02):
			v = 0
		}
		samples = append(samples, pipeline.Sample{T: at, V: v})
		if r.chance(0.03) {
			samples = append(samples, pipeline.Sample{T: at, V: v * r.Float64()})
		}
		if r.chance(0.02) {
			t += r.span(0, 10*period)
		}
	}
	if r.chance(0.3) {
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	}
	return samples
}
