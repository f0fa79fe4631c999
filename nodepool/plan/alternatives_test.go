package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// priced is a pool without workers that launches one node, and may choose among types of a zone.
func priced() plan.Snapshot {
	s := steady()
	s.Instances, s.Offers, s.Pool.SpotRatio, s.Pool.Min = nil, nil, 1, 1
	for _, kind := range []string{"cheapest", "second", "third", "dear"} {
		for _, zone := range []string{"a", "b"} {
			s.Offers = append(s.Offers, fleet.Offer{Zone: zone, Subnet: "subnet-" + zone, InstanceType: kind})
		}
	}
	usd(&s, "", "cheapest", 3, 1)
	usd(&s, "", "third", 1, 1.5)
	usd(&s, "", "second", 2, 1.2)
	usd(&s, "", "dear", 4, 1.51)
	for i := range s.Signals {
		s.Signals[i].Desired = 1
	}
	return s
}

func TestAlternatives(t *testing.T) {
	cooling := func(c fleet.Cooling) func(*plan.Snapshot) {
		return func(s *plan.Snapshot) {
			c.Until = noon.Add(time.Minute)
			s.Record.Cooling = []fleet.Cooling{c}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*plan.Snapshot)
		chosen string
		want   []string
	}{
		{"those of the zone and market that cost at most half as much again", func(*plan.Snapshot) {}, "a cheapest Spot",
			[]string{"second", "third"}},
		{"the prices of the market decide", func(s *plan.Snapshot) { s.Pool.SpotRatio = 0 }, "a third OnDemand", nil},
		{"without prices the order of the pool decides", func(s *plan.Snapshot) { s.Prices = nil }, "a cheapest Spot", nil},
		{"what has no price is none", func(s *plan.Snapshot) { delete(s.Prices, s.Offers[2]) },
			"a cheapest Spot", []string{"third"}},
		{"what cools is none", cooling(fleet.Cooling{Zone: "a", InstanceType: "second", Market: fleet.Spot}),
			"a cheapest Spot", []string{"third"}},
		{"nor what is suspected", cooling(fleet.Cooling{Zone: "a", InstanceType: "third", Suspected: true}),
			"a cheapest Spot", []string{"second"}},
		{"the next is chosen if the cheapest cools", cooling(fleet.Cooling{InstanceType: "cheapest", Market: fleet.Spot}),
			"a second Spot", []string{"third", "dear"}},
		{"another subnet of the zone is none", func(s *plan.Snapshot) {
			s.Offers[2].Subnet = "other"
			usd(s, "", "second", 2, 1.2)
		}, "a cheapest Spot", []string{"third"}},
		{"pods that need a type get one that they can run on", func(s *plan.Snapshot) {
			pends(s, 1)
			s.Pending.Shapes = []fleet.Shape{{Nodes: 1,
				Kinds: []fleet.Kind{{Zone: "a", InstanceType: "second"}, {Zone: "a", InstanceType: "dear"},
					{Zone: "b", InstanceType: "third"}}}}
		}, "a second Spot", []string{"dear"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := priced()
			c.change(&s)
			d := plan.Decide(s)
			require.Equal(t, []string{c.chosen}, places(d.Placements), d.Message)
			assert.Equal(t, [][]string{c.want}, d.Alternatives)
		})
	}
}

func TestAlternativesAreBounded(t *testing.T) {
	s := priced()
	for i := range 50 {
		kind := fmt.Sprintf("kind-%02d", i)
		s.Offers = append(s.Offers, fleet.Offer{Zone: "a", Subnet: "subnet-a", InstanceType: kind})
		usd(&s, "", kind, 1, 1+float64(i)/1000)
	}
	d := plan.Decide(s)
	require.Equal(t, []string{"a cheapest Spot"}, places(d.Placements))
	require.Len(t, d.Alternatives[0], plan.MaxAlternatives)
	assert.Equal(t, "kind-00", d.Alternatives[0][0])
	assert.Equal(t, "kind-08", d.Alternatives[0][8])
}

// Each node of a batch has those of its own zone, and pods that need a type leave them to the others.
func TestAlternativesOfABatch(t *testing.T) {
	s := priced()
	s.Pool.MaxBatchUp = 3
	pends(&s, 30)
	s.Pending.Shapes = []fleet.Shape{only("b", "dear", 1)}
	d := plan.Decide(s)
	require.Equal(t, []string{"b dear Spot", "a cheapest Spot", "a cheapest Spot"}, places(d.Placements))
	assert.Equal(t, [][]string{nil, {"second", "third"}, {"second", "third"}}, d.Alternatives)
}

func TestAlternativesOfSubstitutes(t *testing.T) {
	at := fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "cheapest", Market: fleet.Spot}
	for _, c := range []struct {
		name string
		lost state.Slot
		want []plan.Substitute
	}{
		{"another type, and what does not cool", lost(state.Slot{Placement: at}, true),
			[]plan.Substitute{{Placement: fleet.Placement{Zone: "b", Subnet: "subnet-b", InstanceType: "cheapest",
				Market: fleet.Spot}, Alternatives: []string{"second"}}}},
		{"the same, with an unknown outcome", lost(state.Slot{Placement: at}, false),
			[]plan.Substitute{{Placement: at}}},
		{"in place of an outdated worker just what was decided on", lost(state.Slot{Placement: at, Outdated: true}, true),
			[]plan.Substitute{{Placement: fleet.Placement{Zone: "a", Subnet: "subnet-a",
				InstanceType: "second", Market: fleet.Spot}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := priced()
			s.Record.Action = opened(state.ActionUp, c.lost)
			s.Record.Cooling = []fleet.Cooling{{Zone: "b", Subnet: "subnet-b", InstanceType: "third", Market: fleet.Spot,
				Until: noon.Add(time.Minute)}}
			s.Instances = workersIn("a")
			assert.Equal(t, c.want, plan.Decide(s).Substitutes)
		})
	}
}

func TestAlternativesOfReplacements(t *testing.T) {
	s := priced()
	s.Record.Action, s.Instances = opened(state.ActionUp), workersIn("a")
	s.Record.Interruptions = interruptions("i-000")
	r := plan.Decide(s).Replacements
	require.Len(t, r, 1)
	assert.Equal(t, "cheapest", r[0].InstanceType)
	assert.Equal(t, []string{"second", "third"}, r[0].Alternatives)
}
