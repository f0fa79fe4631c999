package nodepool

import (
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/binpack"
	"github.com/foresail/foresail/nodepool/plan"
)

// fit has a decision be what can be done: see [tick.shape] and [tick.spend].
func (t *tick) fit(d plan.Decision) plan.Decision {
	return t.spend(t.shape(d))
}

// spend launches nothing while as many instances as the pool may have workers are kept to be looked at, as their nodes did
// not join: while nobody looks, there would be more and more of them.
func (t *tick) spend(d plan.Decision) plan.Decision {
	kept := 0
	for _, c := range t.record.Condemned {
		if _, listed := t.instances[c.InstanceID]; listed && c.Reason == condemnedJoinFailed && t.spec.Join.KeepFailed {
			kept++
		}
	}
	if d.Step != plan.ScaleUp || kept == 0 || kept < t.spec.Plan.Max {
		return d
	}
	return hold(d, fmt.Sprintf("%d instances that did not join are kept to be looked at, and the maximum is %d: terminate some, or set join.keepFailed to false", kept, t.spec.Plan.Max))
}

// hold has a decision to launch do nothing.
func hold(d plan.Decision, why string) plan.Decision {
	d.Step, d.Reason, d.Urgent, d.Want, d.Placements = plan.Hold, plan.InsufficientCapacity, false, d.Workers, nil
	d.Message = fmt.Sprintf("No change to %d workers: %s", d.Workers, why)
	return d
}

// shape has a scale-up for pending pods launch what these pods can run on, where not every offer will do. If none of that can
// be launched, nothing is: a node that helps nobody would be followed by another.
func (t *tick) shape(d plan.Decision) plan.Decision {
	if d.Step != plan.ScaleUp || d.Reason != plan.PodsPending || len(t.shapes) == 0 {
		return d
	}
	placements := shaped(t.snapshot, t.shapes, len(d.Placements))
	if len(placements) == 0 {
		return hold(d, "every kind of instance that the pending pods could run on is cooling after errors")
	}
	d.Placements, d.Want = placements, d.Want+len(placements)-len(d.Placements)
	return d
}

// shaped places n nodes: first those that must have a shape, then as many as may have any.
func shaped(s plan.Snapshot, shapes []binpack.Shape, n int) []plan.Placement {
	var out []plan.Placement
	s.Workers = slices.Clone(s.Workers)
	place := func(offers []plan.Offer, nodes int) {
		for range nodes {
			one := s
			one.Offers = offers
			for _, p := range plan.Place(one, 1) {
				out = append(out, p)
				s.Workers = append(s.Workers, plan.Worker{Placement: p})
			}
		}
	}
	rest := n
	for _, shape := range shapes {
		nodes := min(shape.Nodes, rest)
		rest -= nodes
		place(suitable(shape, s.Offers), nodes)
	}
	place(s.Offers, rest)
	return out
}

func suits(s binpack.Shape, o plan.Offer) bool {
	return (s.Zone == "" || s.Zone == o.Zone) && (s.InstanceType == "" || s.InstanceType == o.InstanceType)
}

func suitable(s binpack.Shape, offers []plan.Offer) []plan.Offer {
	return slices.DeleteFunc(slices.Clone(offers), func(o plan.Offer) bool { return !suits(s, o) })
}
