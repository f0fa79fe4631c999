package nodepool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// shortage makes the pool need n nodes of many types in three zones, none of which has capacity. The cloud returns a
// long message for each, which differs from call to call. It returns how often each placement was requested.
func (r *rig) shortage(n int) map[fleet.Placement]int {
	asked, calls := map[fleet.Placement]int{}, 0
	base := r.world.offers[0]
	r.world.offers = nil
	for _, zone := range []string{"a", "b", "c"} {
		for i := range 20 {
			o := base
			o.Zone, o.Subnet, o.InstanceType = zone, "subnet-"+zone, fmt.Sprintf("m%d.large", i)
			o.Price = fleet.Price{Spot: new(1 + float64(i)/100), OnDemand: new(3 + float64(i)/100)}
			r.world.offers = append(r.world.offers, o)
		}
	}
	r.spec.Plan.SpotRatio, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 0.7, 2*n, 0
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: n}}
	r.world.capacity = func(l provider.Launch) error {
		asked[l.Placement]++
		calls++
		return &provider.Error{Class: provider.Capacity, Op: "CreateFleet", Err: errors.New(
			fmt.Sprintf("request %036d: ", calls) + strings.Repeat("we currently do not have sufficient capacity; ", 20))}
	}
	return asked
}

// In a shortage the size of the record depends only on its slots, and a notice is still recorded.
func TestShortageLeavesRoomInTheRecord(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.tick()
	r.shortage(200)
	r.store.limit = 300_000
	largest := 0
	for range 60 {
		r.tick()
		if a := r.record().Action; a != nil {
			require.LessOrEqual(t, len(a.Slots), 200)
		}
		largest = max(largest, r.store.size)
		r.clock.advance(r.step())
	}
	require.Positive(t, largest)
	r.load("node-i-old1", &fakePod{name: "x", refused: "no"})
	r.take("i-old1")
	r.tick()
	require.Equal(t, 1, r.count(journal.EventInterrupted))
	require.Len(t, r.record().Interruptions, 1)
}

// A store that refuses the record gets it without everything that no process needs.
func TestRecordThatIsTooLarge(t *testing.T) {
	full := 0
	for _, limited := range []bool{false, true} {
		r := newRig(t)
		r.world.add(1)
		r.spec.Plan.Min = 1
		r.pass(10 * time.Second)
		r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
		if limited {
			r.store.limit = full - 200
		}
		r.world.capacity = func(provider.Launch) error {
			return &provider.Error{Class: provider.Unknown, Op: "Launch", Err: errors.New(strings.Repeat("down ", 100))}
		}
		r.take("i-old0")
		reported := false
		for range 10 {
			r.tick()
			reported = reported || errors.Is(r.health, state.ErrTooLarge)
			r.clock.advance(2 * time.Second)
		}
		full = r.store.size
		require.Len(t, r.record().Interruptions, 1)
		require.Len(t, r.record().Action.Slots, 1)
		require.Equal(t, limited, reported)
	}
}

// A zone without capacity is tried by one call, and slots planned there move elsewhere without another.
func TestZoneWithoutCapacityIsTriedOnce(t *testing.T) {
	r := newRig(t)
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 100, 200, 0
	tries := 0
	r.world.capacity = func(l provider.Launch) error {
		if l.Zone == "a" {
			tries++
			return refused(provider.Capacity)
		}
		return nil
	}
	r.until("all have joined elsewhere", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 1, tries)
	require.Equal(t, 100, r.world.launches)
	require.Equal(t, 1, r.count(journal.EventLaunchFailed), "one refusal is one event")
}

// A quota of one family is found with few calls, and the types of others are launched.
func TestQuotaOfAFamily(t *testing.T) {
	r := newRig(t)
	base := r.world.offers[0]
	r.world.offers = nil
	for _, kind := range []struct {
		name  string
		quota fleet.Quota
	}{{"p3.2xlarge", fleet.Quota{Group: "P", VCPUs: 8}}, {"p3.8xlarge", fleet.Quota{Group: "P", VCPUs: 32}},
		{"g5.xlarge", fleet.Quota{Group: "G and VT", VCPUs: 4}}} {
		for _, zone := range []string{"a", "b", "c"} {
			o := base
			o.Zone, o.Subnet, o.InstanceType, o.Quota = zone, "subnet-"+zone, kind.name, kind.quota
			r.world.offers = append(r.world.offers, o)
		}
	}
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 80, 200, 0
	tries := map[string]int{}
	r.world.lost = func(l provider.Launch) error { tries[l.InstanceType]++; return nil }
	r.world.capacity = func(l provider.Launch) error {
		if l.InstanceType[0] == 'p' {
			tries[l.InstanceType]++
			return refused(provider.Quota)
		}
		return nil
	}
	r.until("all have joined", 2*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 80, r.world.launches)
	require.LessOrEqual(t, tries["p3.2xlarge"], 2*3, "a call for many and a call for one, in each zone at the same time")
	require.Zero(t, tries["p3.8xlarge"], "it counts against the same quota, and takes more")
}

// A quota with room for some instances is used up with few calls.
func TestQuotaThatHasRoomForSome(t *testing.T) {
	r := newRig(t)
	r.world.offers = r.world.offers[:1]
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 40, 200, 0
	r.world.capacity = func(l provider.Launch) error {
		if begun := len(r.world.tokens[l.Token]) > 0; !begun && r.world.launches+l.Count > 13 {
			return refused(provider.Quota) // as a whole
		}
		return nil
	}
	r.until("there is no more", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 13, r.world.launches)
	require.Less(t, r.world.calls, 25)
}
