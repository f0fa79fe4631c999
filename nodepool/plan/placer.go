package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"
)

// MaxAlternatives bounds the further instance types of one launch. Each makes the journal longer
// until it is launched.
const MaxAlternatives = 9

// maxPriceOfAlternatives bounds the price of an alternative, as a factor of the price of the
// cheapest type. Most types of the same size are within it, and those of twice the size are not.
const maxPriceOfAlternatives = 1.5

func anything(fleet.Placement) bool { return true }

// placer chooses placements one after the other.
//
// A node is Spot if fewer than round(SpotRatio · m) workers are, where m is the number of workers,
// including it, above OnDemandBase. It is On-Demand if no Spot placement is left. The reverse never
// happens: the cloud must not be able to reclaim what should be On-Demand. Suspected placements
// come after all others, whatever the market.
//
// Of the zones with placements in its market the node goes to the one with the fewest workers,
// including those placed before. There it takes the first offer, or the cheapest in that market if
// prices are known.
type placer struct {
	ratio         float64
	base, workers int
	spot          int
	zones         map[string]int
	left          map[fleet.Market]*candidatePlacements
	usd           func(fleet.Placement) float64 // +Inf where it is unknown; nil: prices do not decide
}

// candidatePlacements are the remaining ones of one market, in order of preference.
type candidatePlacements struct{ trusted, suspected []fleet.Placement }

func newPlacer(c *census) *placer {
	p := &placer{
		ratio: share(c.Pool.SpotRatio), base: c.Pool.OnDemandBase, zones: map[string]int{},
		left: map[fleet.Market]*candidatePlacements{fleet.Spot: {}, fleet.OnDemand: {}},
	}
	for _, w := range c.staying {
		p.add(w.Placement)
	}
	for _, at := range c.plannedAt {
		p.add(at)
	}
	for _, o := range c.Offers {
		for market, list := range p.left {
			at := placementOf(o, market)
			cooling, suspected := c.cools(at)
			switch {
			case cooling:
			case suspected:
				list.suspected = append(list.suspected, at)
			default:
				list.trusted = append(list.trusted, at)
			}
		}
	}
	if c.Prices != nil {
		p.sortBy(c.usd)
	}
	return p
}

// sortBy moves the cheapest to the front and those without a price to the end. Otherwise it keeps
// the order.
func (p *placer) sortBy(usd func(fleet.Placement) float64) {
	p.usd = usd
	for _, left := range p.left {
		for _, list := range [][]fleet.Placement{left.trusted, left.suspected} {
			slices.SortStableFunc(list, func(a, b fleet.Placement) int { return cmp.Compare(usd(a), usd(b)) })
		}
	}
}

func (p *placer) clone() *placer {
	if p == nil {
		return nil
	}
	c := *p
	c.zones = maps.Clone(p.zones)
	return &c
}

// place appends placements until there are n, or no suitable one is left.
func (p *placer) place(out []fleet.Placement, n int, willDo func(fleet.Placement) bool) []fleet.Placement {
	for len(out) < n {
		next, ok := p.next(willDo)
		if !ok {
			break
		}
		out = append(out, next)
	}
	return out
}

func (p *placer) next(willDo func(fleet.Placement) bool) (fleet.Placement, bool) {
	above := max(0, p.workers+1-p.base)
	spot, onDemand := p.left[fleet.Spot], p.left[fleet.OnDemand]
	lists := [][]fleet.Placement{onDemand.trusted, onDemand.suspected}
	if p.spot < int(math.Round(p.ratio*float64(above))) {
		lists = [][]fleet.Placement{spot.trusted, onDemand.trusted, spot.suspected, onDemand.suspected}
	}
	for _, list := range lists {
		if at, ok := p.emptiest(list, willDo); ok {
			p.add(at)
			return at, true
		}
	}
	return fleet.Placement{}, false
}

// emptiest returns the first suitable placement in the zone with the fewest workers.
func (p *placer) emptiest(list []fleet.Placement, willDo func(fleet.Placement) bool) (fleet.Placement, bool) {
	best := -1
	for i, at := range list {
		if (best < 0 || p.zones[at.Zone] < p.zones[list[best].Zone]) && willDo(at) {
			best = i
		}
	}
	if best < 0 {
		return fleet.Placement{}, false
	}
	return list[best], true
}

func (p *placer) add(at fleet.Placement) { p.count(at, 1) }

func (p *placer) count(at fleet.Placement, n int) {
	p.workers += n
	p.zones[at.Zone] += n
	if at.Market == fleet.Spot {
		p.spot += n
	}
}

// inPlaceOf takes a worker out and places its replacement: in its zone, or elsewhere if nothing can
// be launched there.
func (p *placer) inPlaceOf(w *Instance) (fleet.Placement, bool) {
	p.count(w.Placement, -1)
	if at, ok := p.next(func(at fleet.Placement) bool { return at.Zone == w.Zone }); ok {
		return at, true
	}
	return p.next(anything)
}

// alternatives returns the instance types that may be launched instead of a placement, cheapest
// first, if prices decide: suitable ones in the same market and subnet that cost not much more. The
// zone stays the same to keep zones balanced, the subnet because an EC2 fleet takes one for each
// zone. Suspected ones are left out.
func (p *placer) alternatives(at fleet.Placement, willDo func(fleet.Placement) bool) []string {
	if p.usd == nil || math.IsInf(p.usd(at), 1) {
		return nil
	}
	maxPrice := maxPriceOfAlternatives * p.usd(at)
	market := fleet.OnDemand // also of one without a market
	if at.Market == fleet.Spot {
		market = fleet.Spot
	}
	var out []string
	for _, other := range p.left[market].trusted {
		if len(out) == MaxAlternatives || p.usd(other) > maxPrice {
			break
		}
		if other.Zone == at.Zone && other.Subnet == at.Subnet && other != at && willDo(other) {
			out = append(out, other.InstanceType)
		}
	}
	return out
}

// alternativesOf appends those of the placements that have none yet.
func (p *placer) alternativesOf(
	out [][]string, placements []fleet.Placement, willDo func(fleet.Placement) bool,
) [][]string {
	for _, at := range placements[len(out):] {
		out = append(out, p.alternatives(at, willDo))
	}
	return out
}
