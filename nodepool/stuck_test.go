package nodepool

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// offer is a type with some CPUs in a subnet of a zone.
func offer(zone, subnet, instanceType, cpus string) provider.Offer {
	return provider.Offer{
		Offer: fleet.Offer{Zone: zone, Subnet: subnet, InstanceType: instanceType},
		Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		},
		Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: instanceType},
	}
}

// inZone makes the pending pods require a zone.
func (r *rig) inZone(zone string) {
	for _, p := range r.world.pending {
		p.Pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
	}
}

// TestPodsOfAZoneAreNotDrownedOut: pods that need a zone get a node there, although a signal recommends as
// many nodes, in any zone, and only one more is allowed.
func TestPodsOfAZoneAreNotDrownedOut(t *testing.T) {
	r := newRig(t)
	r.world.offers = append(r.world.offers, offer("c", "subnet-c", "t3.medium", "2"))
	r.world.add(3) // in zones a, b and a
	r.spec.Plan.Max = 4
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Now: 0.9, Predicted: 0.9,
		Threshold: 0.8, Desired: 4, Fits: 4}}
	r.pend(1)
	r.inZone("b")
	r.until("a node was launched", time.Minute, func() bool { return r.world.launches == 1 })
	require.Equal(t, "b", r.world.instances["i-1"].Zone)
}

// TestOtherSubnetsOfAZone: a subnet without addresses does not affect the others of its zone.
func TestOtherSubnetsOfAZone(t *testing.T) {
	r := newRig(t)
	r.world.offers = []provider.Offer{offer("a", "full", "t3.medium", "2"), offer("a", "free", "t3.medium", "2"),
		offer("b", "other", "t3.medium", "2")}
	r.world.capacity = func(l provider.Launch) error {
		if l.Subnet == "full" {
			return refused(provider.Address)
		}
		return nil
	}
	r.pend(1)
	r.inZone("a")
	r.until("a node was launched", time.Minute, func() bool { return r.world.launches == 1 })
	require.Equal(t, "free", r.world.instances["i-1"].Subnet)
}

// TestNodesCordonedByHandAreRemoved, and before others.
func TestNodesCordonedByHandAreRemoved(t *testing.T) {
	r := idle(t, 3)
	r.world.nodes["node-i-old1"].object.Spec.Unschedulable = true
	r.until("one was removed", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-old1"}, r.world.terminated)
}

// TestMinimumComesBackWithCapacity: after a shortage of any duration, the minimum is reached within minutes.
func TestMinimumComesBackWithCapacity(t *testing.T) {
	for class, within := range map[provider.Class]time.Duration{provider.Capacity: 4 * time.Minute,
		provider.Invalid: 6 * time.Minute} {
		t.Run(string(class), func(t *testing.T) {
			r := wanting(t, 2)
			r.world.capacity = func(provider.Launch) error { return refused(class) }
			r.pass(3 * time.Hour)
			r.world.capacity = nil
			r.until("a node has joined", within, func() bool { return len(r.world.nodes) > 0 })
		})
	}
}

// TestPodsWithRoomDoNotKeepNodes: a pod that the scheduler places nowhere although there is room keeps no idle node for
// longer than minutes, and the room that it has is kept.
func TestPodsWithRoomDoNotKeepNodes(t *testing.T) {
	r := idle(t, 4)
	for _, name := range r.nodeNames() {
		r.world.nodes[name].free = true
	}
	r.pend(1)
	r.until("idle nodes were removed", time.Hour, func() bool { return len(r.world.terminated) == 3 })
	r.pass(time.Hour)
	require.Zero(t, r.world.launches)
	require.Len(t, r.world.terminated, 3)
}

// TestAPodWithoutCapacityHoldsUpNothing: a pod whose only instance type the cloud has none of keeps no idle node
// and no outdated one, however often its launch is tried again.
func TestAPodWithoutCapacityHoldsUpNothing(t *testing.T) {
	r := idle(t, 4)
	r.spec.Plan.Idle.For = 10 * time.Minute
	r.world.offers = append(r.world.offers, offer("a", "subnet-a", "p5.48xlarge", "192"))
	tried := 0
	r.world.capacity = func(l provider.Launch) error {
		if l.InstanceType == "p5.48xlarge" {
			tried++
			return refused(provider.Capacity)
		}
		return nil
	}
	r.pend(1)
	r.world.pending[0].Pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.until("idle nodes are being removed", 30*time.Minute,
		func() bool { return r.count(journal.EventScaleDownStarted) > 0 })
	require.Equal(t, plan.PoolIdle, r.last.Decision.Reason)
	r.pass(4 * time.Minute)
	require.Zero(t, r.count(journal.EventScaleDownAborted), "for a launch that cannot succeed")
	r.world.nodes["node-i-old0"].pods = nil
	r.until("idle nodes were removed", 2*time.Hour, func() bool { return r.running() == 1 })
	r.ages()
	r.until("the outdated one is replaced", time.Hour, func() bool { return r.left() == 0 })
	before := tried
	r.pass(20 * time.Minute)
	require.Greater(t, tried, before, "it is still tried")
	require.Equal(t, plan.InsufficientCapacity, r.last.Decision.Reason)
	r.world.capacity = nil
	r.until("capacity comes back", 10*time.Minute, func() bool { return r.running() == 2 })
}

// TestRoomOfPendingPodsIsKept: if only one node has room for such a pod, that one stays.
func TestRoomOfPendingPodsIsKept(t *testing.T) {
	r := idle(t, 3)
	r.spec.Plan.Min = 0
	r.world.nodes["node-i-old0"].free = true
	r.pend(1)
	r.pass(2 * time.Hour)
	slices.Sort(r.world.terminated)
	require.Equal(t, []string{"i-old1", "i-old2"}, r.world.terminated)
	require.Zero(t, r.world.launches)
}

// TestUntouchedTargetsDoNotBackOff: a scale-down whose time is over backs off only the node that blocked it.
func TestUntouchedTargetsDoNotBackOff(t *testing.T) {
	r := idle(t, 5)
	r.spec.Plan.MaxBatchDown = 3
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.removing(state.RemovalDraining)
	r.world.drainErr = errors.New("refused by a webhook")
	r.until("it is given up", 30*time.Minute, func() bool { return r.count(journal.EventScaleDownAborted) > 0 })
	require.Len(t, r.record().DrainBackoff, 1)
	require.Contains(t, r.record().DrainBackoff, "i-old0")
}

// TestOnDemandBaseIsKept: the configured number of On-Demand workers stays while there are others.
func TestOnDemandBaseIsKept(t *testing.T) {
	r := idle(t, 5)
	r.spec.Plan.OnDemandBase, r.spec.Plan.SpotRatio = 2, 1
	for n := 2; n < 5; n++ {
		r.world.instances[fmt.Sprint("i-old", n)].Market = fleet.Spot
	}
	r.until("three were removed", 2*time.Hour, func() bool { return len(r.world.terminated) == 3 })
	slices.Sort(r.world.terminated)
	require.Equal(t, []string{"i-old2", "i-old3", "i-old4"}, r.world.terminated)
	r.until("one is the minimum", 2*time.Hour, func() bool { return r.running() == 1 })
}

// TestLargePacksGetLargeNodes: pods that were packed on one large node do not get a small one, on
// which one of them fits.
func TestLargePacksGetLargeNodes(t *testing.T) {
	r := newRig(t)
	r.world.offers = []provider.Offer{offer("a", "a", "c5.4xlarge", "16"), offer("b", "b", "c5.4xlarge", "16"),
		offer("a", "a", "c5.large", "2"), offer("b", "b", "c5.large", "2"), offer("c", "c", "c5.large", "2")}
	r.world.add(2)
	r.pend(12)
	r.until("nodes were launched", time.Minute, func() bool { return r.count(journal.EventLaunched) > 0 })
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, "c5.4xlarge", r.world.instances["i-1"].InstanceType)
}

// TestSmallNodesWhereThereAreNoLarge: if the packed nodes cannot be launched, the pods are packed again.
func TestSmallNodesWhereThereAreNoLarge(t *testing.T) {
	r := newRig(t)
	r.spec.Plan.MaxBatchUp = 10
	r.world.offers = []provider.Offer{offer("a", "a", "c5.4xlarge", "16"), offer("a", "a", "c5.large", "2")}
	r.world.capacity = func(l provider.Launch) error {
		if l.InstanceType == "c5.4xlarge" {
			return refused(provider.Capacity)
		}
		return nil
	}
	r.pend(12)
	r.until("nodes were launched", 2*time.Minute, func() bool { return r.count(journal.EventLaunched) == 6 })
	require.Equal(t, 6, r.world.launches)
}

// TestMaximumBoundsInstances: instances that did not join take places while they are kept, and lose
// them early if these are needed.
func TestMaximumBoundsInstances(t *testing.T) {
	r := wanting(t, 4)
	r.spec.Plan.Max, r.spec.Join.KeepFailedFor = 4, 6*time.Hour
	failing := 3
	r.world.joins = func(l provider.Launch) bool { return l.Slot >= failing }
	most := 0
	for range 120 {
		r.pass(30 * time.Second)
		most = max(most, r.running())
		if r.count(journal.EventJoinFailed) >= 3 {
			failing = 0
		}
	}
	require.LessOrEqual(t, most, 4)
	require.Len(t, r.world.nodes, 4)
}

// TestSmallMinimumWithManyZones: a pool whose minimum is smaller than the number of its zones gets there.
func TestSmallMinimumWithManyZones(t *testing.T) {
	for _, least := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("a minimum of ", least), func(t *testing.T) {
			r := newRig(t)
			r.world.add(4)
			r.spec.Plan.Min, r.spec.Plan.Idle.For = least, time.Minute
			r.until("it is reached", 2*time.Hour, func() bool { return r.running() == least })
			zones := map[string]bool{}
			for _, i := range r.world.instances {
				if i.endedAt.IsZero() {
					zones[i.Zone] = true
				}
			}
			require.Len(t, zones, least, "one in each zone, as far as the minimum allows")
		})
	}
}

// TestReplacementsOfSpotGoElsewhere: the replacement of a Spot instance is not of the type, zone
// and market that the cloud is reclaiming.
func TestReplacementsOfSpotGoElsewhere(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.Plan.Min, r.spec.Plan.SpotRatio = 2, 1
	for _, i := range r.world.instances {
		i.Market = fleet.Spot
	}
	r.pass(time.Minute)
	r.take("i-old0")
	r.until("its replacement was launched", time.Minute, func() bool { return r.world.launches == 1 })
	got := r.world.instances["i-1"]
	require.NotEqual(t, fleet.Placement{Zone: "a", Subnet: got.Subnet, InstanceType: "t3.medium", Market: fleet.Spot},
		got.Placement)
	require.Equal(t, fleet.Spot, got.Market)
}
