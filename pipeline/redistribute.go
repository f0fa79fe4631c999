package pipeline

import (
	"cmp"
	"math"
	"slices"
)

// load is the aggregate at one tick, in units of the model's aggregate.
type load struct {
	effective float64 // Ā, what the prediction follows
	raw       float64 // Â, every instance in full
	delta     float64 // Δ, the part of the change of Ā since the tick before that weights alone have made
	weight    float64 // N^w, the instances counted by weight
	active    int
	clipped   bool // the adaptive method: what is effective is a lower bound of the load
}

// ramp is the weight of a new instance by its age: w(a) = (e^{κa/T_R} − 1)/(e^κ − 1), 1 from T_R on (paper, section 6.3).
type ramp struct {
	timeout, shape float64
	whole          float64 // e^κ − 1
}

func (p *Params) ramp() ramp {
	shape := p.RedistributionShape
	return ramp{timeout: millis(p.RedistributionTimeout), shape: shape, whole: math.Expm1(shape)}
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

// weights gives the weights of instances tick by tick, and remembers the latest: where starts are whole seconds, as those
// of pods are, all new instances pass through the same ages.
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

// redistribute returns one aggregate for each tick of [w.first, w.last] (paper, sections 6.4 to 6.8). A new instance is
// counted by a weight that grows with its age, and while the weighted sum falls below the level already reached, as much
// more of it as is needed to hold that level: load that moves from old instances to new ones then neither rises nor
// falls, and load that has really gone shows at once in the raw sum.
func (w *window) redistribute(m Model, r ramp) []load {
	w.markNewcomers()
	weighted := w.growing(r)
	w.weights = weights{ramp: r, step: w.step, known: w.weights.known[:0]}
	w.loads, w.raw = zeroed(w.loads, w.n+1), zeroed(w.raw, w.n)
	w.scratch = resize(w.scratch, w.n)
	for i := range w.series {
		s := &w.series[i]
		at := s.active.and(w.span())
		if at.empty() {
			continue
		}
		w.loads[at.from].active++ // a change; absorb adds them up
		w.loads[at.to].active--
		g := m.loads(s.values, at, w.scratch)
		w.addRaw(at, g)
		w.addGrowing(s, g)
		w.addGrown(weighted.and(ticks{max(at.from, s.growing.to), at.to}), g)
	}
	w.absorb(weighted)
	return w.loads[w.first : w.last+1]
}

// growing finds out at which ticks the weight of each instance grows, up to the first at which it has for one tick been 1,
// and returns the ticks from the first to the last at which any does. At all others every weight is 1.
func (w *window) growing(r ramp) ticks {
	hull := ticks{w.n, 0}
	for i := range w.series {
		s := &w.series[i]
		s.growing = ticks{}
		if !s.newcomer {
			continue
		}
		grown := w.index(s.Start + w.step + int64(math.Ceil(r.timeout)))
		s.growing = s.active.and(w.span()).and(ticks{0, grown})
		if !s.growing.empty() {
			hull = ticks{min(hull.from, s.growing.from), max(hull.to, s.growing.to)}
		}
	}
	return hull
}

// addRaw adds an instance in full to the raw sums; addGrowing and addGrown add it to the weighted ones.
func (w *window) addRaw(at ticks, g []float64) {
	raw := w.raw[at.from:at.to]
	for k, v := range g[at.from:at.to] {
		raw[k] += v
	}
}

func (w *window) addGrowing(s *series, g []float64) {
	at := s.growing
	if at.empty() {
		return
	}
	weights := w.weights.from(w.tick(at.from)-s.Start, at.to-at.from)
	sums, g := w.loads[at.from:at.to], g[at.from:at.to]
	for k, weight := range weights {
		sum := &sums[k]
		sum.weight += weight
		sum.effective += weight * g[k]
		if k > 0 {
			sum.delta += (weight - weights[k-1]) * g[k-1]
		}
	}
}

func (w *window) addGrown(at ticks, g []float64) {
	if at.empty() {
		return
	}
	sums := w.loads[at.from:at.to]
	for k, v := range g[at.from:at.to] {
		sums[k].weight++
		sums[k].effective += v
	}
}

// absorb completes the aggregates: what is effective falls only where the raw sum does too.
func (w *window) absorb(weighted ticks) {
	active, loads, raw := 0, w.loads, w.raw
	for k := w.first; k <= w.last; k++ {
		now := &loads[k]
		active += now.active
		now.active, now.raw = active, raw[k]
		if !weighted.contain(k) {
			now.weight, now.effective = float64(active), now.raw
		}
		if k == w.first {
			now.delta = 0
			continue
		}
		sum, previous := now.effective, loads[k-1].effective
		if previous > sum {
			now.effective = min(now.raw, previous)
		}
		if now.effective != sum {
			now.delta = 0
		}
	}
}

// markNewcomers marks the instances that had, at their start, another to take load over from: one that had started
// before and was still active. The others count in full from the start.
func (w *window) markNewcomers() {
	first, last, end := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
	for i := range w.series {
		s := &w.series[i]
		if s.Start < first {
			first, end = s.Start, s.end()
		}
		last = max(last, s.Start)
	}
	if end <= last {
		w.markNewcomersInOrder()
		return
	}
	for i := range w.series { // one of the first is still active, as mostly
		w.series[i].newcomer = w.series[i].Start > first
	}
}

// markNewcomersInOrder is markNewcomers for any fleet.
func (w *window) markNewcomersInOrder() {
	w.byStart = w.byStart[:0]
	for i := range w.series {
		w.byStart = append(w.byStart, &w.series[i])
	}
	slices.SortFunc(w.byStart, func(a, b *series) int { return cmp.Compare(a.Start, b.Start) })
	latestEnd := int64(math.MinInt64) // of those that started before the group at hand
	for group := w.byStart; len(group) > 0; {
		start, groupEnd := group[0].Start, latestEnd
		for len(group) > 0 && group[0].Start == start {
			group[0].newcomer = latestEnd > start
			groupEnd = max(groupEnd, group[0].end())
			group = group[1:]
		}
		latestEnd = groupEnd
	}
}
