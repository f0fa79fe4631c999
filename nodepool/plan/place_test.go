package plan_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/plan"
)

func TestPlace(t *testing.T) {
	soon := noon.Add(3 * time.Minute)
	for _, c := range []struct {
		name    string
		workers []string // zones
		change  func(*plan.Snapshot)
		n       int
		want    []string
	}{
		{"the least-filled zone each time", []string{"a", "a", "b"},
			func(s *plan.Snapshot) { s.Offers = offers("a", "b", "c") }, 4,
			[]string{"c t3.medium OnDemand", "b t3.medium OnDemand", "c t3.medium OnDemand", "a t3.medium OnDemand"}},
		{"a worker of a zone that nothing is offered in", []string{"z"}, func(*plan.Snapshot) {}, 1,
			[]string{"a t3.medium OnDemand"}},
		{"what leaves or failed is in no zone", []string{"a", "a", "b"}, func(s *plan.Snapshot) {
			s.Instances[0].Leaving, s.Instances[1].Failed = true, true
		}, 1, []string{"a t3.medium OnDemand"}},
		{"what is on its way is", []string{"a", "a", "b"}, func(s *plan.Snapshot) {
			s.Instances[0].Node.Ready, s.Instances[0].Node.Name = false, ""
		}, 1, []string{"b t3.medium OnDemand"}},
		{"what the cloud takes back is not", []string{"a", "a", "b"},
			func(s *plan.Snapshot) { s.Record.Interruptions = interruptions("i-000", "i-001") }, 1,
			[]string{"a t3.medium OnDemand"}},
		{"seven of ten are Spot", nil, func(s *plan.Snapshot) { s.Pool.SpotRatio = 0.7 }, 10, []string{
			"a t3.medium Spot", "b t3.medium OnDemand", "a t3.medium Spot", "b t3.medium Spot", "a t3.medium Spot",
			"b t3.medium OnDemand", "a t3.medium Spot", "b t3.medium Spot", "a t3.medium OnDemand", "b t3.medium Spot"}},
		{"the first are On-Demand", nil, func(s *plan.Snapshot) { s.Pool.SpotRatio, s.Pool.OnDemandBase = 1, 2 }, 4,
			[]string{"a t3.medium OnDemand", "b t3.medium OnDemand", "a t3.medium Spot", "b t3.medium Spot"}},
		{"Spot that was lost is Spot again", []string{"a", "b", "a", "b"}, func(s *plan.Snapshot) {
			s.Pool.SpotRatio = 0.7
			s.Instances[0].Leaving, s.Instances[1].Market = true, fleet.OnDemand
		}, 1, []string{"a t3.medium Spot"}},
		{"one type is cooling in a zone", nil, func(s *plan.Snapshot) {
			s.Pool.SpotRatio = 1
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot, Until: soon}}
		}, 2, []string{"b t3.medium Spot", "a t3.large Spot"}},
		{"Spot is cooling in a zone: there is Spot in another", []string{"b", "b"}, func(s *plan.Snapshot) {
			s.Pool.SpotRatio = 1
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", Market: fleet.Spot, Until: soon}}
		}, 1, []string{"b t3.medium Spot"}},
		{"Spot is cooling everywhere", nil, func(s *plan.Snapshot) {
			s.Pool.SpotRatio = 1
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", Market: fleet.Spot, Until: soon},
				{Zone: "b", Market: fleet.Spot, Until: soon}}
		}, 2, []string{"a t3.medium OnDemand", "b t3.medium OnDemand"}},
		{"a zone that is suspected comes last, whatever the market", []string{"b", "b"}, func(s *plan.Snapshot) {
			s.Offers, s.Pool.SpotRatio = offers("a", "b"), 1
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", Until: soon, Suspected: true},
				{Zone: "b", Market: fleet.Spot, Until: soon}}
		}, 1, []string{"b t3.medium OnDemand"}},
		{"a zone that is suspected is tried where nothing else is left", []string{"b", "b"}, func(s *plan.Snapshot) {
			s.Offers, s.Pool.SpotRatio = offers("a", "b"), 1
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", Until: soon, Suspected: true}, {Zone: "b", Until: soon}}
		}, 1, []string{"a t3.medium Spot"}},
		{"what is suspected and cooling is cooling", nil, func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Until: soon, Suspected: true}, {Until: soon}}
		}, 1, nil},
		{"On-Demand is cooling everywhere: that is not Spot instead", nil, func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Market: fleet.OnDemand, Until: soon}}
		}, 2, nil},
		{"fewer where the rest would have to be On-Demand", nil, func(s *plan.Snapshot) {
			s.Pool.SpotRatio = 0.7
			s.Record.Cooling = []fleet.Cooling{{Market: fleet.OnDemand, Until: soon}}
		}, 3, []string{"a t3.medium Spot"}},
		{"a cooling that has ended, and one of a clock that was set back", nil, func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Zone: "a", Until: noon}, {Zone: "b", Until: noon.Add(time.Hour + 1)}}
		}, 2, []string{"a t3.medium OnDemand", "b t3.medium OnDemand"}},
		{"none", nil, func(*plan.Snapshot) {}, 0, nil},
		{"fewer than none", nil, func(*plan.Snapshot) {}, -1, nil},
		{"no offers", nil, func(s *plan.Snapshot) { s.Offers = nil }, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := steady()
			s.Pool.SpotRatio = 0
			s.Instances = workersIn(c.workers...)
			c.change(&s)
			assert.Equal(t, c.want, places(plan.Place(s, c.n)))
		})
	}
}

// Placing one by one, each new worker among the others, equals placing all at once.
func TestPlaceOneByOne(t *testing.T) {
	for seed := range uint64(2000) {
		s := random(seed)
		all := plan.Place(s, 12)
		for i, want := range all {
			got := plan.Place(s, 1)
			if !assert.Equal(t, []fleet.Placement{want}, got, "seed %d, node %d", seed, i) {
				return
			}
			s.Instances = append(slices.Clip(s.Instances), launched("new", got[0], noon))
		}
		if len(all) < 12 {
			assert.Empty(t, plan.Place(s, 1), "seed %d", seed)
		}
	}
}

// A second implementation, as simple as possible, for one node.
func TestPlaceIsAsPlainlySaid(t *testing.T) {
	placed := map[fleet.Market]int{}
	for seed := range uint64(5000) {
		s := random(seed)
		want, ok := plainly(s)
		got := plan.Place(s, 1)
		if !ok {
			assert.Empty(t, got, "seed %d", seed)
			continue
		}
		placed[want.Market]++
		if !assert.Equal(t, []fleet.Placement{want}, got, "seed %d", seed) {
			return
		}
	}
	assert.Greater(t, placed[fleet.Spot], 500)
	assert.Greater(t, placed[fleet.OnDemand], 500)
}

func plainly(s plan.Snapshot) (fleet.Placement, bool) {
	workers := staying(s)
	for _, at := range s.Record.PlannedAt() {
		workers = append(workers, launched("", at, noon))
	}
	spot := 0
	for _, w := range workers {
		if w.Market == fleet.Spot {
			spot++
		}
	}
	markets := []fleet.Market{fleet.OnDemand}
	share := s.Pool.SpotRatio * math.Max(0, float64(len(workers)+1-s.Pool.OnDemandBase))
	if float64(spot) < math.Floor(share+0.5) {
		markets = []fleet.Market{fleet.Spot, fleet.OnDemand}
	}
	for _, market := range markets {
		var best fleet.Placement
		fewest, least := math.MaxInt, math.Inf(1)
		for _, o := range s.Offers {
			l := fleet.Placement{Zone: o.Zone, Subnet: o.Subnet, InstanceType: o.InstanceType, Market: market}
			cooling := false
			for _, c := range s.Record.Cooling {
				in := (c.Zone == "" || c.Zone == o.Zone) && (c.InstanceType == "" || c.InstanceType == o.InstanceType) &&
					(c.Market == "" || c.Market == market)
				cooling = cooling || in && s.Now.Before(c.Until) && !c.Until.After(s.Now.Add(time.Hour))
			}
			there := 0
			for _, w := range workers {
				if w.Zone == o.Zone {
					there++
				}
			}
			usd := math.Inf(1)
			if price := s.Prices[o].Of(market); price != nil {
				usd = *price
			}
			if !cooling && (there < fewest || there == fewest && usd < least) {
				best, fewest, least = l, there, usd
			}
		}
		if fewest < math.MaxInt {
			return best, true
		}
	}
	return fleet.Placement{}, false
}

// In an open scale-up, too, the replacement of an instance that the cloud reclaims is one that
// its pods can run on. If that cannot be launched it is anything.
func TestReplacementsAreWhatThePodsNeed(t *testing.T) {
	s := steady()
	s.Instances = workersIn("a", "b", "b", "b")
	s.Record.Action = opened(state.ActionUp)
	s.Record.Interruptions = interruptions("i-001", "i-002")
	s.Pending.Replacing = []fleet.Shape{{Kinds: []fleet.Kind{{Zone: "b", InstanceType: "t3.medium"}}, Nodes: 1}}
	zones := func() (out []string) {
		for _, r := range plan.Decide(s).Replacements {
			out = append(out, r.Zone)
		}
		return out
	}
	assert.Equal(t, []string{"b", "a"}, zones())
	s.Pending.Replacing[0].Kinds[0].Zone = "c"
	assert.Equal(t, []string{"a", "b"}, zones())
}

// A launch for another reason is none in their place.
func TestOnlyReplacementsAreInPlaceOfWorkers(t *testing.T) {
	zones := func(s plan.Snapshot) (out []string) {
		d := plan.Decide(s)
		assert.Equal(t, plan.ScaleUp, d.Step, d.Message)
		for _, p := range d.Placements {
			out = append(out, p.Zone)
		}
		return out
	}
	s := steady()
	s.Pool.SpotRatio = 0
	s.Record.Interruptions = interruptions("i-002")
	s.Pending.Replacing = []fleet.Shape{only("a", "t3.large", 1)}
	d := plan.Decide(s)
	assert.Equal(t, []string{"a t3.large OnDemand"}, places(d.Placements), d.Message)
	s.Record.Interruptions, s.Pool.Min, s.Instances = nil, 4, workersIn("a", "a", "b")
	assert.Equal(t, []string{"b"}, zones(s), "the minimum")
	s = steady()
	s.Pool.SpotRatio = 0
	pends(&s, 20)
	s.Pending.Replacing = []fleet.Shape{only("c", "t3.large", 2)}
	assert.Len(t, zones(s), 2, "pods")
}
