package scheduling

import "slices"

// maxGroups is the number of groups whose pods are taken into account in addition to the first: what a node costs for a
// hundred groups is precise enough.
const maxGroups = 100

// worth returns the cost of a new node for the pods without a place that it would take, those of the first batch before
// others: for the sum of their sizes. Nodes that take more cost less by it.
func worth(batches []*batch, first *batch) func(*shape) float64 {
	known := map[string]float64{}
	return func(s *shape) float64 {
		out, ok := known[s.offer.InstanceType]
		if !ok {
			out = s.cost / sizeTaken(batches, first, s)
			known[s.offer.InstanceType] = out
		}
		return out
	}
}

// sizeTaken returns the sum of the sizes of the pods without a place that an empty node would take,
// whatever rules keep them apart from others.
func sizeTaken(batches []*batch, first *batch, s *shape) float64 {
	free := slices.Clone(s.free)
	sum := 0.0
	add := func(b *batch) {
		n := min(free.times(b.request), b.left)
		if b.picky() > 0 {
			n = min(n, 1)
		}
		free.take(b.request, n)
		sum += float64(n) * b.size
	}
	add(first)
	looked := 0
	for _, b := range batches[first.order+1:] { // those before have their places
		if looked == maxGroups {
			break
		}
		if b.role == pending && b.left > 0 && b.takes[s.index] {
			looked++
			add(b)
		}
	}
	return sum
}
