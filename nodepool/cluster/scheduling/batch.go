package scheduling

import (
	"cmp"
	"slices"
)

// batch is a group in a packing: where its pods could go, and how many of them have a place.
type batch struct {
	*group
	options
	rules *rules // nil: other pods do not matter to it
	size  float64
	order int // among the batches

	left  int // pods without a place
	room  int // pods with a place on an existing node
	new   int // pods with a place on an added node
	gone  int // of the pods that have a node, those that have left it
	late  int // pods without a place until the leaving nodes were deleted
	waits int // pending pods that wait for that, and for nothing else
}

// hasShape reports whether some new node of the pool could run its pods.
func (b *batch) hasShape() bool { return b.shapes > 0 }

// picky returns 1 for pods that cannot share a node with each other, or must be in certain domains:
// others fill up behind them.
func (b *batch) picky() int {
	if len(b.ports) > 0 || b.rules != nil && (b.rules.alone || b.rules.mutual()) {
		return 1
	}
	return 0
}

// matched returns the counters that count its pods.
func (b *batch) matched() []*counter {
	if b.rules == nil {
		return nil
	}
	return b.rules.matched
}

// unplaced returns the first pod that has no place, "" if all have one.
func (b *batch) unplaced() string {
	if b.left == 0 {
		return ""
	}
	return b.members[len(b.members)-b.left].name
}

// hardestFirst orders batches: first those that fewest shapes could run, then those that are picky, then large ones.
func hardestFirst(batches []*batch) {
	slices.SortStableFunc(batches, func(x, y *batch) int {
		return cmp.Or(cmp.Compare(x.shapes, y.shapes), cmp.Compare(y.picky(), x.picky()), cmp.Compare(y.size, x.size))
	})
}
