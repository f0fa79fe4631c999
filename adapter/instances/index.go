package instances

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// label is one label with one value.
type label struct{ name, value string }

// buckets finds things by a label.
type buckets[T comparable] map[label]map[T]struct{}

func (b buckets[T]) add(l label, x T) {
	bucket := b[l]
	if bucket == nil {
		bucket = map[T]struct{}{}
		b[l] = bucket
	}
	bucket[x] = struct{}{}
}

func (b buckets[T]) remove(l label, x T) {
	delete(b[l], x)
	if len(b[l]) == 0 {
		delete(b, l)
	}
}

// fleetIndex finds the fleets of one namespace that select a pod without trying all of them: a fleet whose selector
// asks for one value of some label is looked up by that, and only the others are tried on each pod.
type fleetIndex struct {
	byLabel buckets[*Fleet]
	others  map[*Fleet]struct{}
}

func newFleetIndex() fleetIndex {
	return fleetIndex{byLabel: buckets[*Fleet]{}, others: map[*Fleet]struct{}{}}
}

func (x *fleetIndex) add(f *Fleet) {
	f.indexed = x.choose(f.selector)
	if f.indexed == nil {
		x.others[f] = struct{}{}
		return
	}
	x.byLabel.add(*f.indexed, f)
}

func (x *fleetIndex) remove(f *Fleet) {
	if f.indexed == nil {
		delete(x.others, f)
		return
	}
	x.byLabel.remove(*f.indexed, f)
}

func (x *fleetIndex) empty() bool { return len(x.byLabel) == 0 && len(x.others) == 0 }

// choose returns the required label that the fewest other fleets are found by, nil if the selector requires none.
func (x *fleetIndex) choose(s labels.Selector) *label {
	requirements, _ := s.Requirements()
	var best *label
	for _, r := range requirements {
		values := r.Values()
		exact := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		if !exact || len(values) != 1 {
			continue
		}
		candidate := label{name: r.Key(), value: values.UnsortedList()[0]}
		if best == nil || len(x.byLabel[candidate]) < len(x.byLabel[*best]) {
			best = &candidate
		}
	}
	return best
}

// selecting yields the fleets that select a pod.
func (x *fleetIndex) selecting(p *pod) iter.Seq[*Fleet] {
	return func(yield func(*Fleet) bool) {
		for name, value := range p.status.labels {
			if !yieldSelecting(x.byLabel[label{name, value}], p, yield) {
				return
			}
		}
		yieldSelecting(x.others, p, yield)
	}
}

func yieldSelecting(fleets map[*Fleet]struct{}, p *pod, yield func(*Fleet) bool) bool {
	for f := range fleets {
		if f.selects(p) && !yield(f) {
			return false
		}
	}
	return true
}
