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
type ramp struct{ timeout, shape float64 }

func (r ramp) at(age float64) float64 {
	switch x := age / r.timeout; {
	case age >= r.timeout:
		return 1
	case age <= 0:
		return 0
	case math.Abs(r.shape) < 1e-9:
		return x
	default:
		return math.Expm1(r.shape*x) / math.Expm1(r.shape)
	}
}

// redistribute writes to loads one aggregate for each tick of [w.first, w.last] (paper, sections 6.4 to 6.8).
// A new instance is counted by a weight that grows with its age, and while the weighted sum falls below the level
// already reached, as much more of it as is needed to hold that level: load that moves from old instances to new ones
// then neither rises nor falls, and load that has really gone shows at once in the raw sum.
func (w *window) redistribute(m Model, r ramp, loads []load) []load {
	w.markNewcomers()
	for k := w.first; k <= w.last; k++ {
		row := w.row(k)
		var now load
		weighted := 0.0
		for i, v := range row {
			if !w.active(i, k) {
				continue
			}
			weight := 1.0
			if w.newcomer[i] {
				age := float64(w.tick(k)) - float64(w.instances[i].Start)
				weight = r.at(age)
				if k > w.first && w.active(i, k-1) {
					now.delta += (weight - r.at(age-float64(w.step))) * m.Load(w.row(k - 1)[i])
				}
			}
			g := m.Load(v)
			now.active++
			now.raw += g
			now.weight += weight
			weighted += weight * g
		}
		now.effective = weighted
		if k > w.first {
			if previous := loads[len(loads)-1].effective; previous > weighted {
				now.effective = min(now.raw, previous)
			}
		}
		if k == w.first || now.effective != weighted {
			now.delta = 0
		}
		loads = append(loads, now)
	}
	return loads
}

// markNewcomers marks the instances that had, at their start, another to take load over from: one that had started
// before and was still active. The others count in full from the start.
func (w *window) markNewcomers() {
	w.newcomer = resize(w.newcomer, len(w.instances))
	w.byStart = resize(w.byStart, len(w.instances))
	byStart := w.byStart
	for i := range byStart {
		byStart[i] = i
	}
	slices.SortFunc(byStart, func(a, b int) int { return cmp.Compare(w.instances[a].Start, w.instances[b].Start) })
	latestEnd := int64(math.MinInt64) // of those that started before the group at hand
	for group := 0; group < len(byStart); {
		start, groupEnd := w.instances[byStart[group]].Start, latestEnd
		for ; group < len(byStart) && w.instances[byStart[group]].Start == start; group++ {
			i := byStart[group]
			w.newcomer[i] = latestEnd > start
			groupEnd = max(groupEnd, w.instances[i].end())
		}
		latestEnd = groupEnd
	}
}
