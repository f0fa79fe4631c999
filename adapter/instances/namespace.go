package instances

import (
	"iter"
	"maps"
)

// namespace is the pods of one namespace, and the fleets that select among them.
type namespace struct {
	pods    map[string]*pod // by name
	byLabel buckets[*pod]
	fleets  fleetIndex
}

func newNamespace() *namespace {
	return &namespace{pods: map[string]*pod{}, byLabel: buckets[*pod]{}, fleets: newFleetIndex()}
}

func (ns *namespace) empty() bool { return len(ns.pods) == 0 && ns.fleets.empty() }

// update takes a version of a pod.
func (ns *namespace) update(p *pod, s podStatus) {
	if ns.pods[p.key.Name] != p || !maps.Equal(p.status.labels, s.labels) {
		ns.unindex(p)
		for name, value := range s.labels {
			ns.byLabel.add(label{name, value}, p)
		}
	}
	ns.pods[p.key.Name] = p
	p.update(s)
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

// selectedBy yields the pods that a fleet selects.
func (ns *namespace) selectedBy(f *Fleet) iter.Seq[*pod] {
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
