package scheduling

import (
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// price gives each shape what its type costs at the least: in which zone a node is has other reasons.
func (p *packer) price(costs map[fleet.Offer]float64) {
	p.priced = len(costs) > 0
	least := map[string]float64{}
	for _, s := range p.shapes {
		usd, ok := costs[s.offer.Offer]
		if before, seen := least[s.offer.InstanceType]; ok && (!seen || usd < before) {
			least[s.offer.InstanceType] = usd
		}
	}
	for _, s := range p.shapes {
		s.cost = math.Inf(1)
		if usd, ok := least[s.offer.InstanceType]; ok {
			s.cost = usd
		}
	}
}

// worth returns what a new node costs for as much of the pods that have no place as it would take, those of a group first:
// the whole node, by the larger share of their requests in the first shape. nil: costs do not decide.
func (p *packer) worth(g *group) func(*shape) float64 {
	if !p.priced {
		return nil
	}
	known := map[string]float64{}
	return func(s *shape) float64 {
		out, ok := known[s.offer.InstanceType]
		if !ok {
			out = s.cost / p.filled(g, s)
			known[s.offer.InstanceType] = out
		}
		return out
	}
}

// mostGroups are looked at beside the first: what a node costs for a hundred kinds of pods is near enough.
const mostGroups = 100

// filled tells how much of the pods without a place an empty node would take, however they keep apart from others.
func (p *packer) filled(first *group, s *shape) float64 {
	free := slices.Clone(s.free)
	sum := 0.0
	add := func(g *group) {
		n := min(free.times(g.request), g.left)
		if g.picky() > 0 {
			n = min(n, 1)
		}
		free.take(g.request, n)
		sum += float64(n) * g.size
	}
	add(first)
	looked := 0
	for _, g := range p.groups[first.order+1:] { // those before have their places
		if looked == mostGroups {
			break
		}
		if g.role == pending && g.left > 0 && g.takes[s.index] {
			looked++
			add(g)
		}
	}
	return sum
}
