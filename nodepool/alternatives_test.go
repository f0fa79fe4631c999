package nodepool

import (
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// priced has the pool launch Spot, of types that have prices: t3.medium is the cheapest, and the others cost not much more.
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

// shortOf has no capacity left of some types, wherever.
func shortOf(kinds ...string) func(provider.Launch) error {
	return func(l provider.Launch) error {
		if slices.Contains(kinds, l.InstanceType) {
			return refused(provider.Capacity)
		}
		return nil
	}
}

// cooled returns what cools.
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
			require.Empty(t, r.world.instances, "what is asked for is written down before")
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
	require.Equal(t, fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3a.medium", Market: fleet.Spot}, s.Placement)
	require.Empty(t, s.Alternatives)
	require.Equal(t, []fleet.Placement{{Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot}}, cooled(record), "in the same cycle")
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(EventScaledUp) == 1 })
	require.Zero(t, r.count(EventLaunchFailed))
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
	r.clock.advance(leastPause)
	r.tick()
	slots := r.record().Action.Slots
	require.Len(t, slots, 1)
	require.Equal(t, fleet.Placement{Zone: "b", Subnet: "subnet-b", InstanceType: "t3.medium", Market: fleet.Spot}, slots[0].Placement)
	require.NotEqual(t, first.Token, slots[0].Token)
}

// A refusal is learned at its scope: capacity for a type in a zone and market, a quota for the types that count
// against it and take as much, addresses for a subnet, and what every launch needs for all. A type that was launched
// by the same call is never covered. One that cannot be launched as it is requested is not named again for a while.
func TestRefusalsCoolWhatTheyConcern(t *testing.T) {
	at := fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3.medium", Market: fleet.Spot}
	of := func(kinds ...string) (out []fleet.Cooling) {
		for _, kind := range kinds {
			out = append(out, fleet.Cooling{Zone: "a", InstanceType: kind, Market: fleet.Spot})
		}
		return out
	}
	known := map[string]fleet.Quota{"t3.medium": {Group: "Standard", VCPUs: 2}, "m5.large": {Group: "Standard", VCPUs: 4}, "p3.2xlarge": {Group: "P", VCPUs: 8}}
	larger := []fleet.Cooling{{Market: fleet.Spot, Quota: "Standard", VCPUs: 4}}
	both := []fleet.Cooling{{Market: fleet.Spot, Quota: "Standard", VCPUs: 2}}
	for name, c := range map[string]struct {
		first, second provider.Class
		launched      []string
		quotas        map[string]fleet.Quota
		want          []fleet.Cooling
	}{
		"a quota of all types":                  {provider.Quota, provider.Quota, nil, nil, []fleet.Cooling{{Market: fleet.Spot}}},
		"a quota of the types before another":   {provider.Quota, provider.Quota, []string{"c5.large"}, nil, of("t3.medium", "m5.large")},
		"a quota of one, and another has none":  {provider.Quota, provider.Capacity, nil, nil, of("t3.medium", "m5.large")},
		"a quota of a group":                    {provider.Quota, provider.Quota, nil, known, both},
		"a quota of a group, which is not full": {provider.Unknown, provider.Quota, []string{"t3.medium"}, known, larger},
		"a quota of another group":              {provider.Unknown, provider.Quota, []string{"p3.2xlarge"}, known, larger},
		"a quota in doubt":                      {provider.Unknown, provider.Quota, []string{"m5.large"}, known, of("m5.large")},
		"a quota of one in a group":             {provider.Quota, provider.Capacity, nil, known, append(both, of("m5.large")...)},
		"addresses":                             {provider.Address, provider.Address, nil, nil, []fleet.Cooling{{Zone: "a", Subnet: "subnet-a"}}},
		"volumes of the zone":                   {provider.ZoneCapacity, provider.ZoneCapacity, nil, known, []fleet.Cooling{{Zone: "a"}}},
		"volumes of the account":                {provider.AccountQuota, provider.AccountQuota, nil, known, []fleet.Cooling{{}}},
		"what is invalid is suspected": {provider.Capacity, provider.Invalid, []string{"c5.large"}, nil,
			append(of("t3.medium"), fleet.Cooling{Zone: "a", InstanceType: "m5.large", Suspected: true})},
		"what is not known says nothing": {provider.Unknown, provider.Throttled, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.tick()
			e := executor{journal: &r.pool.journal}
			e.snapshot.Quotas = c.quotas
			e.refused(at, []provider.Refusal{
				{InstanceType: "t3.medium", Class: c.first, Reason: "no"}, {InstanceType: "m5.large", Class: c.second, Reason: "no"},
			}, c.launched...)
			for i := range e.record.Cooling {
				require.Equal(t, "no", e.record.Cooling[i].Reason)
				e.record.Cooling[i].Until, e.record.Cooling[i].Reason = time.Time{}, ""
			}
			require.Equal(t, c.want, e.record.Cooling)
		})
	}
}

// The call with a token that launched nothing, for reasons that nobody knows, will never launch anything. Once it is clear that
// there is no instance, the type alone is launched.
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
	r.until("it has joined", 5*time.Minute, func() bool { return r.count(EventScaledUp) == 1 })
	first, last := launches[0], launches[len(launches)-1]
	require.Equal(t, first.Placement, last.Placement)
	require.NotEqual(t, first.Token, last.Token)
	require.Empty(t, last.Alternatives)
	require.Empty(t, r.record().Cooling)
}

// The answer to a launch is lost, and the process ends. The next one finds the instance by its tags, whichever type it is of.
func TestAnotherTypeIsAdopted(t *testing.T) {
	r := wanting(t, 1)
	r.priced()
	r.world.capacity = shortOf("t3.medium")
	r.world.lost = func(provider.Launch) error { return errLost }
	r.world.joins = func(provider.Launch) bool { return r.count(EventLaunched) > 0 }
	r.tick()
	require.Equal(t, state.SlotPlanned, r.record().Action.Slots[0].State)
	require.NotEmpty(t, r.record().Action.Slots[0].Alternatives)
	r.world.capacity = func(provider.Launch) error { require.Fail(t, "launched again"); return nil }
	clear(r.world.tokens)
	r.restart()
	r.until("it is adopted", 2*time.Minute, func() bool { return r.count(EventLaunched) == 1 })
	s := r.record().Action.Slots[0]
	require.Equal(t, "t3a.medium", s.InstanceType)
	require.Empty(t, s.Alternatives)
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
}

// The same before it is listed: the token is asked again, with the same types.
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
	r.until("it has joined", 2*time.Minute, func() bool { return r.count(EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
}
