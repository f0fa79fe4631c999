package nodepool

import (
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// priced makes the pool launch Spot, of types with prices: t3.medium is the cheapest, and the
// others cost not much more.
func (r *rig) priced() {
	r.spec.Plan.SpotRatio = 1
	var offers []provider.Offer
	for i, kind := range []string{"t3.medium", "t3a.medium", "m5.large"} {
		for _, o := range r.world.offers {
			o.InstanceType = kind
			o.Labels = map[string]string{corev1.LabelTopologyZone: o.Zone, corev1.LabelInstanceTypeStable: kind}
			o.Price = fleet.Price{Spot: new(1 + float64(i)/10), OnDemand: new(3 + float64(i)/10)}
			offers = append(offers, o)
		}
	}
	r.world.offers = offers
}

// shortOf removes the capacity of some types in all zones.
func shortOf(kinds ...string) func(provider.Launch) error {
	return func(l provider.Launch) error {
		if slices.Contains(kinds, l.InstanceType) {
			return refused(provider.Capacity)
		}
		return nil
	}
}

// cooled returns the cooling placements.
func cooled(r state.Record) []fleet.Placement {
	var out []fleet.Placement
	for _, c := range r.Cooling {
		out = append(out, fleet.Placement{Zone: c.Zone, InstanceType: c.InstanceType, Market: c.Market})
	}
	return out
}

func TestAnotherTypeIsLaunchedInTheSameCall(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	r.world.capacity = shortOf("t3.medium")
	planned := []string(nil)
	r.store.before = func(record state.Record) error {
		if a := record.Action; a != nil && planned == nil {
			require.Empty(t, r.world.instances, "requests are recorded before")
			planned = a.Slots[0].Alternatives
		}
		return nil
	}
	r.tick()
	require.Equal(t, []string{"t3a.medium", "m5.large"}, planned)
	record := r.record()
	require.Len(t, record.Action.Slots, 1)
	s := record.Action.Slots[0]
	require.Equal(t, state.SlotLaunched, s.State)
	require.Equal(t, fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3a.medium", Market: fleet.Spot},
		s.Placement)
	require.Empty(t, s.Alternatives)
	require.Equal(t, []fleet.Placement{{Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot}},
		cooled(record), "in the same cycle")
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Zero(t, r.count(journal.EventLaunchFailed))
}

func TestAllTypesOfAZoneCoolAtOnce(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	r.world.capacity = func(l provider.Launch) error {
		if l.Zone == "a" {
			return refused(provider.Capacity)
		}
		return nil
	}
	r.tick()
	require.Len(t, cooled(r.record()), 3)
	first := r.record().Action.Slots[0]
	require.Equal(t, state.SlotFailed, first.State)
	require.Empty(t, first.Alternatives)
	r.clock.advance(minPause)
	r.tick()
	slots := r.record().Action.Slots
	require.Len(t, slots, 1)
	require.Equal(t, fleet.Placement{Zone: "b", Subnet: "subnet-b", InstanceType: "t3.medium", Market: fleet.Spot},
		slots[0].Placement)
	require.NotEqual(t, first.Token, slots[0].Token)
}

// The call with a token that launched nothing, for an unknown reason, will never launch
// anything. Once it is clear that there is no instance, the type alone is launched.
func TestATokenThatIsUsedUpIsFollowedByOneType(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	var launches []provider.Launch
	r.world.capacity = func(l provider.Launch) error {
		launches = append(launches, l)
		if len(l.Alternatives) > 0 {
			return refused(provider.TokenMismatch)
		}
		return nil
	}
	r.until("it has joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	first, last := launches[0], launches[len(launches)-1]
	require.Equal(t, first.Placement, last.Placement)
	require.NotEqual(t, first.Token, last.Token)
	require.Empty(t, last.Alternatives)
	require.Empty(t, r.record().Cooling)
}

// The answer to a launch is lost, and the process ends. The next one finds the instance by its
// tags, whichever type it is of.
func TestAnotherTypeIsAdopted(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	r.world.capacity = shortOf("t3.medium")
	r.world.lost = func(provider.Launch) error { return errLost }
	r.world.joins = func(provider.Launch) bool { return r.count(journal.EventLaunched) > 0 }
	r.tick()
	require.Equal(t, state.SlotPlanned, r.record().Action.Slots[0].State)
	require.NotEmpty(t, r.record().Action.Slots[0].Alternatives)
	r.world.capacity = func(provider.Launch) error { require.Fail(t, "launched again"); return nil }
	clear(r.world.tokens)
	r.restart()
	r.until("it is adopted", 2*time.Minute, func() bool { return r.count(journal.EventLaunched) == 1 })
	s := r.record().Action.Slots[0]
	require.Equal(t, "t3a.medium", s.InstanceType)
	require.Empty(t, s.Alternatives)
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
}

// The same before it is listed: the call with the token is repeated, with the same types.
func TestAnotherTypeIsFoundByItsToken(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	r.world.capacity, r.world.visibility = shortOf("t3.medium"), time.Minute
	lost := false
	r.world.lost = func(provider.Launch) error { lost = true; return errLost }
	r.tick()
	require.True(t, lost)
	r.world.lost = nil
	for i := range r.world.offers {
		r.world.offers[i].Price.Spot = new(float64(10 - i)) // what is cheap now would be another launch
	}
	r.restart()
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
}
