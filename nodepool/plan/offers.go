package plan

import (
	"math"

	"github.com/foresail/foresail/nodepool/fleet"
)

// cools reports whether a placement must not be tried, and whether it is suspected to fail.
func (s Snapshot) cools(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(s.Record.Cooling, p, s.Quotas[p.InstanceType], s.Now)
}

// Unlaunchable returns the offers that cannot be launched now in any market that the pool uses.
func (s Snapshot) Unlaunchable() map[fleet.Offer]bool {
	out := map[fleet.Offer]bool{}
	for _, o := range s.Offers {
		onDemand, _ := s.cools(placementOf(o, fleet.OnDemand))
		spot, _ := s.cools(placementOf(o, fleet.Spot))
		if onDemand && (spot || s.Pool.SpotRatio <= 0) {
			out[o] = true
		}
	}
	return out
}

// Refused returns the offers that could not be launched when they were last tried, in any market
// that the pool uses: those that are cooling or were until recently. Nothing waits for pods that
// fit only on these.
func (s Snapshot) Refused() map[fleet.Offer]bool {
	s.Now = s.Now.Add(-fleet.RefusedFor)
	return s.Unlaunchable()
}

// usd returns the hourly price of a placement, +Inf if it is unknown.
func (s Snapshot) usd(p fleet.Placement) float64 {
	price := s.Prices[fleet.Offer{Zone: p.Zone, Subnet: p.Subnet, InstanceType: p.InstanceType}].Of(p.Market)
	if price == nil {
		return math.Inf(1)
	}
	return *price
}

// Costs returns the expected hourly cost of each offer with a price, for the pool's mix of Spot and
// On-Demand. Without a Spot price the On-Demand price is used, which is an upper bound.
func (s Snapshot) Costs() map[fleet.Offer]float64 {
	ratio := share(s.Pool.SpotRatio)
	out := map[fleet.Offer]float64{}
	for offer, price := range s.Prices {
		onDemand, spot := price.OnDemand, price.Spot
		if spot == nil {
			spot = onDemand
		}
		switch {
		case onDemand != nil:
			out[offer] = ratio**spot + (1-ratio)**onDemand
		case spot != nil && ratio == 1:
			out[offer] = *spot
		}
	}
	return out
}

func placementOf(o fleet.Offer, m fleet.Market) fleet.Placement {
	return fleet.Placement{Zone: o.Zone, Subnet: o.Subnet, InstanceType: o.InstanceType, Market: m}
}
