package scheduling

import "slices"

// maxGroups bounds the groups whose pods are considered in addition to the first: the cost of a
// node for a hundred groups is precise enough.
const maxGroups = 100

// worth returns a function for the cost of a new node in relation to the summed sizes of the
// unplaced pods that it would take, those of the first batch before others. A node that takes more
// is cheaper.
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

// sizeTaken returns the summed sizes of the unplaced pods that an empty node would take, ignoring
// rules about other pods.
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
	for _, b := range batches[first.order+1:] { // earlier ones have their places
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
