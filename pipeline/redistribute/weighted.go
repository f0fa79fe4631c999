package redistribute

import (
	"math"

	"github.com/foresail/foresail/pipeline/series"
)

// Weighted is the redistribution of the paper. It reuses memory between calls but keeps no other state; the
// zero value is ready to use.
type Weighted struct {
	sums
	weights weights
}

// Sum returns one load for each tick of [First, Last] (paper, sections 6.4 to 6.8).
//
// A new instance counts with a weight that grows with its age. While the weighted sum is below the level
// already reached, new instances count for as much more as is needed to hold that level. So load that moves
// from old to new instances is neither a rise nor a fall. A real fall shows at once, because the result never
// exceeds the raw sum.
func (p *Weighted) Sum(w *series.Window, o *Options) []series.Load {
	p.begin(w)
	r := newRamp(o)
	weighted := p.growing(r)
	p.weights = weights{ramp: r, step: w.Step, known: p.weights.known[:0]}
	for i := range p.members {
		m := &p.members[i]
		at := m.Active.Intersect(w.Span())
		if at.Empty() {
			continue
		}
		p.loads[at.From].Active++ // a difference; holdDuringHandover adds them up
		p.loads[at.To].Active--
		g := o.Model.Loads(m.Values, at, p.scratch)
		p.addRaw(at, g)
		p.addGrowing(m, g)
		p.addGrown(weighted.Intersect(series.Ticks{From: max(at.From, m.growing.To), To: at.To}), g)
	}
	p.holdDuringHandover(weighted)
	return p.result()
}

// growing sets the ticks at which the weight of each instance grows, up to the first at which it has been 1 for
// one tick. It returns the range of ticks at which any weight grows; at all other ticks every weight is 1.
func (p *Weighted) growing(r ramp) series.Ticks {
	w := p.window
	hull := series.Ticks{From: w.N, To: 0}
	for i := range p.members {
		m := &p.members[i]
		if !m.newcomer {
			continue
		}
		grown := w.Index(m.Start + w.Step + int64(math.Ceil(r.timeout)))
		m.growing = m.Active.Intersect(w.Span()).Intersect(series.Ticks{From: 0, To: grown})
		if !m.growing.Empty() {
			hull = series.Ticks{From: min(hull.From, m.growing.From), To: max(hull.To, m.growing.To)}
		}
	}
	return hull
}

// addGrowing adds the loads g of an instance to the weighted sums at the ticks at which its weight grows.
func (p *Weighted) addGrowing(m *member, g []float64) {
	at := m.growing
	if at.Empty() {
		return
	}
	weights := p.weights.from(p.window.Tick(at.From)-m.Start, at.To-at.From)
	sums, g := p.loads[at.From:at.To], g[at.From:at.To]
	for k, weight := range weights {
		sum := &sums[k]
		sum.Weight += weight
		sum.Effective += weight * g[k]
		if k > 0 {
			sum.Delta += (weight - weights[k-1]) * g[k-1]
		}
	}
}

// addGrown adds the loads g of an instance to the weighted sums at ticks at which its weight is 1.
func (p *Weighted) addGrown(at series.Ticks, g []float64) {
	if at.Empty() {
		return
	}
	sums := p.loads[at.From:at.To]
	for k, v := range g[at.From:at.To] {
		sums[k].Weight++
		sums[k].Effective += v
	}
}

// holdDuringHandover completes the aggregates: the effective load falls only where the raw sum does too.
func (p *Weighted) holdDuringHandover(weighted series.Ticks) {
	active, loads, raw := 0, p.loads, p.raw
	for k := p.window.First; k <= p.window.Last; k++ {
		now := &loads[k]
		active += now.Active
		now.Active, now.Raw = active, raw[k]
		if !weighted.Contains(k) {
			now.Weight, now.Effective = float64(active), now.Raw
		}
		if k == p.window.First {
			now.Delta = 0
			continue
		}
		sum, previous := now.Effective, loads[k-1].Effective
		if previous > sum {
			now.Effective = min(now.Raw, previous)
		}
		if now.Effective != sum {
			now.Delta = 0
		}
	}
}

// ramp computes the weight of a new instance by its age (ms): w(a) = (e^{κa/T_R} − 1)/(e^κ − 1), and 1 from T_R
// on (paper, section 6.3).
type ramp struct {
	timeout, shape float64
	whole          float64 // e^κ − 1
}

func newRamp(o *Options) ramp {
	return ramp{timeout: series.Millis(o.Timeout), shape: o.Shape, whole: math.Expm1(o.Shape)}
}

func (r ramp) at(age float64) float64 {
	switch x := age / r.timeout; {
	case age >= r.timeout:
		return 1
	case age <= 0:
		return 0
	case math.Abs(r.shape) < 1e-9:
		return x
	default:
		return math.Expm1(r.shape*x) / r.whole
	}
}

// weights computes the weights of an instance tick by tick, and caches the latest ones: starts of pods are
// whole seconds, so all new instances pass through the same ages.
type weights struct {
	ramp
	age, step int64     // ms
	known     []float64 // at age, age + step, …
}

// from returns n weights, the first at the given age.
func (w *weights) from(age int64, n int) []float64 {
	skip := (age - w.age) / w.step
	if age < w.age || age != w.age+skip*w.step || skip > int64(len(w.known)) {
		w.age, w.known, skip = age, w.known[:0], 0
	}
	end := int(skip) + n
	for len(w.known) < end {
		w.known = append(w.known, w.at(float64(w.age+int64(len(w.known))*w.step)))
	}
	return w.known[skip:end]
}
