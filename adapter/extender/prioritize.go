package extender

import "math"

// leastWarmth is w of a node that became Ready just now. It is not 0: an empty node is better than one that overloads.
const leastWarmth = 0.2

// prioritize scores nodes.
func (q *question) prioritize(out []verdict) {
	if q.blind() {
		for i := range out {
			out[i].gap = gapView // and all scores are 0, so that the scheduler's own decide
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

// setApart leaves one node alone with the best score, and gives those that are as good by rounding one less. Eleven scores
// are few: of many nodes with the best one the scheduler's own plugins would choose, for pod after pod the same, and the
// ledger could not tell which. What is best before rounding is best of a burst's nodes in turn.
func setApart(out []verdict, first int) {
	top := out[first].score
	for i := range out {
		if i != first && out[i].score >= top {
			out[i].score, out[i].second = top-1, true
		}
	}
}

// best returns the node of the best score, which the scheduler will take if all else is equal: nil if that is 0, or if
// nothing is known of it.
func (q *question) best(verdicts []verdict) *node {
	var best *node
	top := int8(0)
	for i, n := range q.nodes {
		if verdicts[i].score > top {
			best, top = n, verdicts[i].score
		}
	}
	return best
}

// left returns the node that passed a filter if it is known and the only one. The scheduler takes it without asking for
// scores.
func (q *question) left(verdicts []verdict, r room) *node {
	var left *node
	passed := 0
	for i, n := range q.nodes {
		if r.refuses(&verdicts[i]) {
			continue
		}
		if passed++; passed > 1 {
			return nil
		}
		left = n
	}
	return left
}

// score works out the score of a node, and returns it before rounding.
func (q *question) score(n *node, v *verdict) float64 {
	u, c := 0.0, 1.0
	w := q.warmth(n)
	if n == nil {
		v.gap = gapNode // it came after the view was made, so that nothing runs on it yet
	} else {
		cpu, memory := q.amounts(n)
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

// used is the share of a node that is used with a pod of this size. Of what is not known to have room for anything no
// share is used.
func (a amount) used(pod int64) float64 {
	if a.allocatable <= 0 {
		return 0
	}
	if a.fresh {
		return (a.predicted + a.ledger + float64(pod)) / a.allocatable
	}
	return (a.requested + float64(pod)) / a.allocatable
}

// warmth is how much of its score a node is worth while it warms up.
func (q *question) warmth(n *node) float64 {
	created := q.view.at
	if n != nil {
		created = n.created
	}
	if q.rules.WarmUp <= 0 || q.pod.created.Before(created) {
		return 1
	}
	if n == nil || n.readySince.IsZero() {
		return leastWarmth
	}
	return min(max(float64(q.now.Sub(n.readySince))/float64(q.rules.WarmUp), leastWarmth), 1)
}
