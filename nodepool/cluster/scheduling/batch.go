package scheduling

import (
	"cmp"
	"slices"
)

// batch is the state of a group in a packing: where its pods could run, and how many of them have a
// place.
type batch struct {
	*group
	options
	rules *rules // nil: no rule is about it
	size  float64
	order int // among the batches

	left  int // pods without a place
	room  int // pods with a place on an existing node
	new   int // pods with a place on an added node
	gone  int // of the pods that have a node, those that have left it
	late  int // pods that had no place before the leaving nodes were deleted
	waits int // pending pods that only wait for that
}

// hasShape reports whether some new node of the pool could run its pods.
func (b *batch) hasShape() bool { return b.shapes > 0 }

// picky returns 1 for pods that cannot share a node with each other, or need certain domains: other
// pods fill up behind them.
func (b *batch) picky() int {
	if len(b.ports) > 0 || b.rules != nil && (b.rules.alone || b.rules.mutual()) {
		return 1
	}
	return 0
}

// matched returns the counters of its pods.
func (b *batch) matched() []*counter {
	if b.rules == nil {
		return nil
	}
	return b.rules.matched
}

// unplaced returns the first pod without a place, "" if all have one.
func (b *batch) unplaced() string {
	if b.left == 0 {
		return ""
	}
	return b.members[len(b.members)-b.left].name
}

// hardestFirst sorts batches: first those that the fewest shapes could run, then picky ones, then
// large ones.
func hardestFirst(batches []*batch) {
	slices.SortStableFunc(batches, func(x, y *batch) int {
		return cmp.Or(cmp.Compare(x.shapes, y.shapes), cmp.Compare(y.picky(), x.picky()), cmp.Compare(y.size, x.size))
	})
}
