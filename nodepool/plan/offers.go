package plan

import (
	"math"

	"github.com/foresail/foresail/nodepool/fleet"
)

// cools reports whether a placement must not be tried, and whether it is suspected.
func (s Snapshot) cools(p fleet.Placement) (cooling, suspected bool) {
	return fleet.Cools(s.Record.Cooling, p, s.Quotas[p.InstanceType], s.Now)
}

// Unlaunchable returns the offers that cannot be launched now, in whichever market the pool would
// have them.
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

// Refused returns the offers that could not be launched when they were tried last, in whichever
// market the pool would have them: those that are cooling now or were until recently. Nothing waits
// for pods that only these could run.
func (s Snapshot) Refused() map[fleet.Offer]bool {
	s.Now = s.Now.Add(-fleet.RefusedFor)
	return s.Unlaunchable()
}

// usd returns the price of an hour of a placement, +Inf if it is not known.
func (s Snapshot) usd(p fleet.Placement) float64 {
	price := s.Prices[fleet.Offer{Zone: p.Zone, Subnet: p.Subnet, InstanceType: p.InstanceType}].Of(p.Market)
	if price == nil {
		return math.Inf(1)
	}
	return *price
}

// Costs returns the expected cost of an hour of each offer, as the pool mixes Spot and On-Demand,
// where it is known. A Spot instance without a price is taken to cost as much as On-Demand, which
// is the most that it does.
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
