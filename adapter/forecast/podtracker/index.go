package podtracker

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// label is one label with one value.
type label struct{ name, value string }

// buckets indexes things by label.
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

// targetIndex finds the targets of one namespace that select a pod without trying all. A target
// whose selector requires one value of a label is indexed by it; only the others are tried on each
// pod.
type targetIndex struct {
	byLabel buckets[*TargetPods]
	others  map[*TargetPods]struct{} // without a required label
}

func newTargetIndex() targetIndex {
	return targetIndex{byLabel: buckets[*TargetPods]{}, others: map[*TargetPods]struct{}{}}
}

func (x *targetIndex) add(f *TargetPods) {
	f.indexed = x.choose(f.selector)
	if f.indexed == nil {
		x.others[f] = struct{}{}
		return
	}
	x.byLabel.add(*f.indexed, f)
}

func (x *targetIndex) remove(f *TargetPods) {
	if f.indexed == nil {
		delete(x.others, f)
		return
	}
	x.byLabel.remove(*f.indexed, f)
}

func (x *targetIndex) empty() bool { return len(x.byLabel) == 0 && len(x.others) == 0 }

// choose returns the required label that the fewest other targets are indexed by, nil if the selector requires none.
func (x *targetIndex) choose(s labels.Selector) *label {
	requirements, _ := s.Requirements()
	var best *label
	for _, r := range requirements {
		values := r.Values()
		exact := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals ||
			r.Operator() == selection.In
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

// selecting yields the targets that select a pod.
func (x *targetIndex) selecting(p *pod) iter.Seq[*TargetPods] {
	return func(yield func(*TargetPods) bool) {
		for name, value := range p.status.labels {
			if !yieldSelecting(x.byLabel[label{name, value}], p, yield) {
				return
			}
		}
		yieldSelecting(x.others, p, yield)
	}
}

func yieldSelecting(targets map[*TargetPods]struct{}, p *pod, yield func(*TargetPods) bool) bool {
	for f := range targets {
		if f.selects(p) && !yield(f) {
			return false
		}
	}
	return true
}

// namespace is the pods of one namespace, and the targets that select among them.
type namespace struct {
	pods    map[string]*pod // by name
	byLabel buckets[*pod]
	targets targetIndex
}

func newNamespace() *namespace {
	return &namespace{pods: map[string]*pod{}, byLabel: buckets[*pod]{}, targets: newTargetIndex()}
}

func (ns *namespace) empty() bool { return len(ns.pods) == 0 && ns.targets.empty() }

// update takes a version of a pod.
func (ns *namespace) update(p *pod, r *record) {
	if ns.pods[p.key.Name] != p || !maps.Equal(p.status.labels, r.status.labels) {
		ns.unindex(p)
		for name, value := range r.status.labels {
			ns.byLabel.add(label{name, value}, p)
		}
	}
	ns.pods[p.key.Name] = p
	p.update(r.status, r.wait)
}

func (ns *namespace) remove(p *pod) {
	ns.unindex(p)
	delete(ns.pods, p.key.Name)
}

func (ns *namespace) unindex(p *pod) {
	for name, value := range p.status.labels {
		ns.byLabel.remove(label{name, value}, p)
	}
}

// selectedBy yields the pods that a target selects.
func (ns *namespace) selectedBy(f *TargetPods) iter.Seq[*pod] {
	return func(yield func(*pod) bool) {
		if f.indexed == nil {
			for _, p := range ns.pods {
				if f.selects(p) && !yield(p) {
					return
				}
			}
			return
		}
		for p := range ns.byLabel[*f.indexed] {
			if f.selects(p) && !yield(p) {
				return
			}
		}
	}
}
