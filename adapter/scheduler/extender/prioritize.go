package extender

import (
	"math"
)

// minWarmth is w of a node that became Ready just now. It is above 0: an empty node is better than one that overloads.
const minWarmth = 0.2

// prioritize scores nodes.
func (q *evaluation) prioritize(out []verdict) {
	if q.snapshot.blind(q.now) {
		for i := range out {
			out[i].gap = gapSnapshot // all scores stay 0: the scheduler's plugins decide
		}
		return
	}
	first, most := -1, 0.0
	for i, n := range q.nodes {
		if worth := q.score(n, &out[i]); n != nil && worth > most {
			first, most = i, worth
		}
	}
	if first >= 0 && out[first].score > 0 {
		setApart(out, first)
	}
}

// setApart leaves the best score to one node, and reduces that of equal ones by one. Among many nodes with the
// best score the scheduler's own plugins choose, always the same one for a burst, and the extender could not
// know which.
func setApart(out []verdict, first int) {
	top := out[first].score
	for i := range out {
		if i != first && out[i].score >= top {
			out[i].score, out[i].second = top-1, true
		}
	}
}

// best returns the node with the best score, nil if that is 0 or the node is unknown.
func (q *evaluation) best(verdicts []verdict) *node {
	var best *node
	top := int8(0)
	for i, n := range q.nodes {
		if verdicts[i].score > top {
			best, top = n, verdicts[i].score
		}
	}
	return best
}

// left returns the only node that passed the filter, if it is known. The scheduler takes it without asking for scores.
func (q *evaluation) left(verdicts []verdict, r outcome) *node {
	var left *node
	passed := 0
	for i, n := range q.nodes {
		if r.filters(&verdicts[i]) {
			continue
		}
		if passed++; passed > 1 {
			return nil
		}
		left = n
	}
	return left
}

// score sets the score of a node, and returns it before rounding.
func (q *evaluation) score(n *node, v *verdict) float64 {
	u, c := 0.0, 1.0
	w := q.warmth(n)
	if n == nil {
		v.gap = gapNode // it came after the snapshot was made, so that nothing runs on it yet
	} else {
		cpu, memory := amountsOf(n, &q.rules, q.now)
		v.cpu, v.memory = cpu.share(), memory.share()
		v.gap = max(cpu.gap(), memory.gap())
		u = max(cpu.used(q.pod.scheduled.cpu), memory.used(q.pod.scheduled.memory))
		switch {
		case n.removing != "":
			v.pool, v.reason, c = n.removing, removing, 0
		case n.candidate != "":
			v.pool, c = n.candidate, 0
		}
	}
	worth := float64(maxScore) * pack(u, q.rules.Target) * c * w
	v.used, v.warmth, v.score = float32(u), float32(w), int8(math.Round(worth))
	return worth
}

// warmth returns w, the share of its score that a node keeps while it warms up.
func (q *evaluation) warmth(n *node) float64 {
	created := q.snapshot.at
	if n != nil {
		created = n.created
	}
	if q.rules.WarmUp <= 0 || q.pod.created.Before(created) {
		return 1
	}
	if n == nil || n.readySince.IsZero() {
		return minWarmth
	}
	return min(max(float64(q.now.Sub(n.readySince))/float64(q.rules.WarmUp), minWarmth), 1)
}

// pack returns how good it is that a share u of a node is in use: rising up to target, falling above it, and 0 above 1.
func pack(u, target float64) float64 {
	switch {
	case u <= target:
		return target + (1-target)*u/target
	case u <= 1:
		return target * (1 - u) / (1 - target)
	}
	return 0
}
