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

// redistribute returns one aggregate for each tick of [w.first, w.last], in the memory of loads (paper, sections 6.4 to
// 6.8). A new instance is counted by a weight that grows with its age, and while the weighted sum falls below the level
// already reached, as much more of it as is needed to hold that level: load that moves from old instances to new ones
// then neither rises nor falls, and load that has really gone shows at once in the raw sum.
func (w *window) redistribute(m Model, r ramp, loads []load) []load {
	w.markNewcomers()
	loads = resize(loads, w.last+1-w.first)
	clear(loads)
	w.loads = resize(w.loads, len(loads))
	for i := range w.series {
		s := &w.series[i]
		at := s.active.and(w.span())
		if at.empty() {
			continue
		}
		g := m.loads(s.values[at.from:at.to], w.loads[:at.to-at.from])
		sums := loads[at.from-w.first : at.to-w.first]
		growing := 0
		if s.newcomer {
			age := float64(w.tick(at.from)) - float64(s.Start)
			growing = r.add(g, sums, age, float64(w.step))
		}
		addInFull(g[growing:], sums[growing:])
	}
	absorb(loads)
	return loads
}

// addInFull counts an instance whose loads are g in full.
func addInFull(g []float64, sums []load) {
	for k, v := range g {
		sum := &sums[k]
		sum.active++
		sum.raw += v
		sum.weight++
		sum.effective += v
	}
}

// add counts an instance whose loads are g by its weight, at the first of them age old, for as long as the weight grows.
// It returns for how many ticks that was.
func (r ramp) add(g []float64, sums []load, age, step float64) int {
	before := 0.0
	for k, v := range g {
		if age-step >= r.timeout {
			return k
		}
		weight := r.at(age)
		sum := &sums[k]
		sum.active++
		sum.raw += v
		sum.weight += weight
		sum.effective += weight * v
		if k > 0 {
			sum.delta += (weight - before) * g[k-1]
		}
		before = weight
		age += step
	}
	return len(g)
}

// absorb turns the weighted sums into effective aggregates, which fall only where the raw sums do too.
func absorb(loads []load) {
	loads[0].delta = 0
	for k := 1; k < len(loads); k++ {
		now, previous := &loads[k], loads[k-1].effective
		if weighted := now.effective; previous > weighted {
			now.effective = min(now.raw, previous)
			if now.effective != weighted {
				now.delta = 0
			}
		}
	}
}

// markNewcomers marks the instances that had, at their start, another to take load over from: one that had started
// before and was still active. The others count in full from the start.
func (w *window) markNewcomers() {
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
