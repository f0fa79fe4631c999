package plan_test

import (
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/plan"
)

// usd gives the offers of a type in a zone a price.
func usd(s *plan.Snapshot, zone, instanceType string, onDemand, spot float64) {
	if s.Prices == nil {
		s.Prices = map[fleet.Offer]fleet.Price{}
	}
	for _, o := range s.Offers {
		if (o.Zone == zone || zone == "") && o.InstanceType == instanceType {
			s.Prices[o] = fleet.Price{OnDemand: new(onDemand), Spot: new(spot)}
		}
	}
}

func TestPlaceByPrice(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plan.Snapshot)
		want   []string
	}{
		{"without prices in their order", func(*plan.Snapshot) {}, []string{"a t3.medium OnDemand", "b t3.medium OnDemand"}},
		{"the cheapest", func(s *plan.Snapshot) {
			usd(s, "", "t3.medium", 2, 1)
			usd(s, "", "t3.large", 1, 2)
		}, []string{"a t3.large OnDemand", "b t3.large OnDemand"}},
		{"the cheapest of its market", func(s *plan.Snapshot) {
			usd(s, "", "t3.medium", 2, 1)
			usd(s, "", "t3.large", 1, 2)
			s.Pool.SpotRatio = 0.5
		}, []string{"a t3.medium Spot", "b t3.large OnDemand"}},
		{"the cheapest of its zone", func(s *plan.Snapshot) {
			usd(s, "", "t3.medium", 2, 2)
			usd(s, "b", "t3.large", 1, 1)
			usd(s, "a", "t3.large", 3, 3)
		}, []string{"b t3.large OnDemand", "a t3.medium OnDemand"}},
		{"without a price last", func(s *plan.Snapshot) { usd(s, "", "t3.large", 100, 100) },
			[]string{"a t3.large OnDemand", "b t3.large OnDemand"}},
		{"the cheapest is cooling", func(s *plan.Snapshot) {
			usd(s, "", "t3.medium", 2, 1)
			usd(s, "", "t3.large", 1, 2)
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", InstanceType: "t3.large", Market: fleet.OnDemand,
				Until: noon.Add(time.Minute)}}
		}, []string{"b t3.large OnDemand", "a t3.medium OnDemand"}},
		{"the cheapest is suspected", func(s *plan.Snapshot) {
			usd(s, "", "t3.medium", 2, 1)
			usd(s, "", "t3.large", 1, 2)
			s.Record.Cooling = []fleet.Cooling{{InstanceType: "t3.large", Until: noon.Add(time.Minute), Suspected: true}}
		}, []string{"a t3.medium OnDemand", "b t3.medium OnDemand"}},
	} {
		s := steady()
		s.Pool.SpotRatio, s.Instances = 0, nil
		c.change(&s)
		before := s.Offers
		assert.Equal(t, c.want, places(plan.Place(s, 2)), c.name)
		assert.Equal(t, before, s.Offers, "a snapshot is not changed")
	}
}

// Pods that need one of several kinds get the cheapest of them.
func TestShapesByPrice(t *testing.T) {
	s := steady()
	s.Pool.SpotRatio, s.Instances = 0, nil
	usd(&s, "", "t3.medium", 1, 1)
	usd(&s, "a", "t3.large", 2, 2)
	s.Offers = append(s.Offers[2:], s.Offers[:2]...)
	pends(&s, 20)
	s.Pending.Nodes = 1
	s.Pending.Shapes = []fleet.Shape{{Kinds: []fleet.Kind{{Zone: "a", InstanceType: "t3.large"},
		{Zone: "a", InstanceType: "t3.medium"}}, Nodes: 1}}
	d := plan.Decide(s)
	assert.Equal(t, 1, d.Pinned)
	assert.Equal(t, "a t3.medium OnDemand", places(d.Placements)[0])
}

func TestCosts(t *testing.T) {
	offer := func(name string) fleet.Offer { return fleet.Offer{Zone: "a", InstanceType: name} }
	s := plan.Snapshot{Prices: map[fleet.Offer]fleet.Price{
		offer("both"): {OnDemand: new(1.0), Spot: new(0.5)}, offer("on-demand"): {OnDemand: new(1.0)},
		offer("spot"): {Spot: new(0.5)}, offer("none"): {},
	}}
	for ratio, want := range map[float64]map[fleet.Offer]float64{
		0:   {offer("both"): 1, offer("on-demand"): 1},
		0.5: {offer("both"): 0.75, offer("on-demand"): 1},
		1:   {offer("both"): 0.5, offer("on-demand"): 1, offer("spot"): 0.5},
	} {
		s.Pool.SpotRatio = ratio
		assert.Equal(t, want, s.Costs(), ratio)
	}
	assert.Empty(t, plan.Snapshot{}.Costs())
}
