package nodepool

import (
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/packing"
	"github.com/foresail/foresail/nodepool/plan"
)

// fit has a scale-up for pending pods launch what these pods can run on, where not every offer will do. If none of that can
// be launched, nothing is: a node that helps nobody would be followed by another.
func (t *tick) fit(d plan.Decision) plan.Decision {
	if d.Step != plan.ScaleUp || d.Reason != plan.PodsPending || len(t.shapes) == 0 {
		return d
	}
	placements := shaped(t.snapshot, t.shapes, len(d.Placements))
	if len(placements) == 0 {
		d.Step, d.Reason, d.Urgent, d.Want, d.Placements = plan.Hold, plan.NoRoom, false, d.Workers, nil
		d.Message = fmt.Sprintf("No change to %d workers: every kind of instance that the pending pods could run on is cooling after errors", d.Workers)
		return d
	}
	d.Placements, d.Want = placements, d.Workers+len(placements)
	return d
}

// shaped places n nodes: first those that must have a shape, then as many as may have any.
func shaped(s plan.Snapshot, shapes []packing.Shape, n int) []plan.Placement {
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

func suits(s packing.Shape, o plan.Offer) bool {
	return (s.Zone == "" || s.Zone == o.Zone) && (s.InstanceType == "" || s.InstanceType == o.InstanceType)
}

func suitable(s packing.Shape, offers []plan.Offer) []plan.Offer {
	return slices.DeleteFunc(slices.Clone(offers), func(o plan.Offer) bool { return !suits(s, o) })
}
