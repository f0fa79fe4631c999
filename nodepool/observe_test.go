package nodepool

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/observe"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Only nodes that will soon take pods keep pending pods from getting another node.
func TestUnusableWorkersDoNotHideDemand(t *testing.T) {
	for name, spoil := range map[string]func(*fakeNode){
		"its node is not ready": func(n *fakeNode) { n.ready = false },
		"its node is cordoned":  func(n *fakeNode) { n.cordon = true },
	} {
		t.Run("old, "+name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(1)
			spoil(r.world.nodes["node-i-old0"])
			r.pend(2)
			r.until("a node is launched for them", 2*time.Minute, func() bool { return r.world.launches == 1 })
		})
		t.Run("new, "+name, func(t *testing.T) {
			r := newRig(t)
			r.pend(2)
			r.until("its node has joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
			spoil(r.world.nodes["node-i-1"])
			r.until("another one is launched", 10*time.Minute, func() bool { return r.world.launches == 2 })
		})
	}
}

// A Node that has not been Ready yet is expected to be soon, and so is one that has not joined.
func TestWorkersOnTheirWayAreWaitedFor(t *testing.T) {
	r := newRig(t)
	r.pend(2)
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("a node is launched", 2*time.Minute, func() bool { return r.world.launches == 1 })
	r.tick()
	require.Zero(t, r.last.Snapshot.Pending.Nodes)
	require.Equal(t, 2, r.last.Snapshot.Pending.Due)
	r.world.addNode(r.world.instances["i-1"], r.clock.now())
	r.world.nodes["node-i-1"].ready = false
	r.pass(5 * time.Minute)
	require.Zero(t, r.last.Snapshot.Pending.Nodes)
}

// Instances that the cloud no longer lists, as when they have lost their tags, count while their Nodes exist.
func TestReadyNodesOutrankTheList(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.CooldownUp = 4, 4, time.Minute
	r.tick()
	for _, i := range r.world.instances {
		i.hidden = true
	}
	r.pass(2 * time.Hour)
	require.Zero(t, r.world.launches)
	require.Equal(t, 4, r.last.Decision.Workers)
	require.Len(t, r.world.nodes, 4)
	require.Equal(t, 4, r.count(journal.EventUnlisted), "once each")
	for w := range plan.Workers(r.last.Snapshot.Instances) {
		require.NotEmpty(t, w.Blocked)
	}

	for _, ready := range []bool{false, true} { // all are out of touch for a moment
		for _, n := range r.world.nodes {
			n.ready = ready
		}
		r.pass(time.Minute)
	}
	require.Len(t, r.world.nodes, 4)
	require.Zero(t, r.world.launches)
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.until("one that is gone is replaced", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.NotContains(t, r.nodeNames(), "node-i-old0")
	delete(r.world.instances, "i-old1")
	r.world.nodes["node-i-old1"].silent = true
	r.pass(observe.HeartbeatWithin / 2)
	require.Equal(t, 1, r.world.launches, "kubelets update their Nodes every five minutes")
	r.until("one that the cloud denies, and whose kubelet has stopped unnoticed, is replaced",
		15*time.Minute, func() bool {
			return r.count(journal.EventScaledUp) == 2
		})
	for _, i := range r.world.instances {
		i.hidden = false
	}
	r.pass(time.Hour)
	require.Equal(t, 2, r.world.launches)
	require.Equal(t, 4, r.count(journal.EventUnlisted))
}

// TestNodesOfRunningInstancesAreNotDeleted: an instance that has lost its tags runs on when its
// Node is not Ready. The Node stays, so that no process ever loses the instance, and goes with it
// once it has its tags again.
func TestNodesOfRunningInstancesAreNotDeleted(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.launchedBy("up-long-ago")
	r.repairs(30*time.Minute, 4)
	r.tick()
	lost := r.world.instances["i-old0"]
	lost.untagged = true
	r.pass(3 * time.Minute)
	r.world.nodes["node-i-old0"].ready = false
	r.pass(2 * time.Hour)
	require.Contains(t, r.nodeNames(), "node-i-old0")
	require.Empty(t, r.world.terminated)
	require.Equal(t, 1, r.count(journal.EventUnlisted), "once")
	require.Contains(t, r.findings(plan.Unlisted), "its tag pool is missing")
	require.Equal(t, 1, r.world.launches, "another has taken its place, as of any worker that is broken")

	r.restart()
	r.clock.advance(journal.LeaseTerm)
	r.pass(10 * time.Minute)
	require.Contains(t, r.nodeNames(), "node-i-old0")
	require.Equal(t, 2, r.count(journal.EventUnlisted), "another process finds it by its Node")
	require.Equal(t, 1, r.world.launches)

	lost.untagged = false
	r.until("it is repaired", time.Hour, func() bool { return slices.Contains(r.world.terminated, "i-old0") })
	r.ends()
	require.NotContains(t, r.nodeNames(), "node-i-old0")
}

// TestUnfoundInstancesAreNotGone: while the cloud does not answer for an instance, and while it denies
// all that it is asked about and lists none, as with the credentials of another account, no Node is
// deleted.
func TestUnfoundInstancesAreNotGone(t *testing.T) {
	for name, blind := range map[string]func(*rig){
		"it does not answer": func(r *rig) {
			r.world.findErr = errDown
			r.world.instances["i-old0"].hidden, r.world.instances["i-old1"].hidden = true, true
		},
		"it knows none of them": func(r *rig) { clear(r.world.instances) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(2)
			r.tick()
			require.NoError(t, r.pool.Release(t.Context()))
			r.restart()
			blind(r)
			for _, n := range r.world.nodes {
				n.ready = false
			}
			r.pass(time.Hour)
			require.Len(t, r.world.nodes, 2)
			require.Equal(t, 2, r.count(journal.EventUnlisted))
			r.spec.Plan.Deleting = true
			r.pass(time.Hour)
			require.Zero(t, r.releaseFinalizer)
			require.Len(t, r.last.Deletion.Held, 2, "it says which Nodes it waits for")
		})
	}
}

// A broken worker is reported and replaced, unless replacements would never end.
func TestBrokenWorkersDoNotCount(t *testing.T) {
	r := newRig(t)
	r.world.add(9)
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.CooldownUp = 9, 9, time.Minute
	r.tick()
	r.world.nodes["node-i-old0"].ready = false
	r.pass(10 * time.Minute)
	require.Zero(t, r.world.launches, "it may come back")
	r.until("it is reported", 5*time.Minute, func() bool { return r.count(journal.EventBroken) == 1 })
	r.until("another one has joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 9, r.last.Decision.Workers)
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, 1, r.count(journal.EventBroken), "once")
	require.Empty(t, r.world.terminated)

	for _, name := range []string{"node-i-old1", "node-i-old2", "node-i-old3"} {
		r.world.nodes[name].ready = false
	}
	r.until("all are reported", time.Hour, func() bool { return r.count(journal.EventBroken) == 4 })
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches, "at the maximum one is replaced beyond it")
	r.spec.Plan.Max = 11
	r.pass(time.Hour)
	require.Equal(t, 3, r.world.launches, "of four one counts")

	for _, n := range r.world.nodes {
		n.ready = true
	}
	r.tick()
	require.Equal(t, 12, r.last.Decision.Workers, "they work again, and some may go")
}

func TestManyBrokenWorkersAreNotReplaced(t *testing.T) {
	r := newRig(t)
	r.world.add(6)
	r.spec.Plan.Min = 6
	r.tick()
	for _, n := range r.world.nodes {
		n.ready = false
	}
	r.pass(2 * time.Hour)
	require.Zero(t, r.world.launches)
	require.Equal(t, 6, r.count(journal.EventBroken))
}

// The observed capacity of nodes overrides the announced one.
func TestNodesSmallerThanAnnounced(t *testing.T) {
	for name, promise := range map[string]func(*provider.Offer, *corev1.Pod){
		"smaller": func(o *provider.Offer, pod *corev1.Pod) {
			o.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
				corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110")}
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		},
		"with a smaller disk": func(o *provider.Offer, pod *corev1.Pod) {
			o.Allocatable = maps.Clone(o.Allocatable)
			o.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("100Gi")
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("50Gi")
		},
		"without a label": func(o *provider.Offer, pod *corev1.Pod) {
			o.Labels = maps.Clone(o.Labels)
			o.Labels[corev1.LabelTopologyRegion] = "here"
			pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyRegion: "here"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.dress = func(n *fakeNode) { n.give(corev1.ResourceEphemeralStorage, "17Gi") }
			r.pend(1)
			for i := range r.world.offers {
				promise(&r.world.offers[i], r.world.pending[0].Pod)
			}
			r.pass(3 * time.Hour)
			require.Equal(t, 1, r.world.launches)
			require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
		})
	}
}

func TestLoadOfTerminatingNodesIsForecast(t *testing.T) {
	r := idle(t, 3)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	r.tick()
	last := r.signals.seen
	require.Len(t, last.Leaving, 1)
	require.Equal(t, "node-i-old0", last.Leaving[0].Object.Name)
	require.Len(t, last.Workers, 2)
	require.Equal(t, 2, last.Expected)
	r.world.nodes["node-i-old0"].pods = nil
	r.until("it has gone", time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	r.tick()
	last = r.signals.seen
	require.Empty(t, last.Leaving)
	require.Len(t, last.Workers, 2)
}

func TestPodsWithRoomAreReported(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.world.nodes["node-i-old0"].free = true
	r.pend(1)
	r.clock.advance(time.Minute)
	r.pend(1)
	r.world.pending[1].Pod.Name = "huge"
	r.world.pending[1].Pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100")
	r.world.pending[0].Since, r.world.pending[1].Since = r.world.pending[1].Since, r.world.pending[0].Since
	r.clock.advance(time.Minute)
	r.tick()
	pending := r.last.Snapshot.Pending
	require.Equal(t, plan.Pending{Known: true, Pods: 1, Due: 1, Room: 1, OldestFor: time.Minute,
		Unhelped: pending.Unhelped}, pending)
	require.Len(t, pending.Unhelped, 1)
	require.Equal(t, "shop/huge", pending.Unhelped[0].Pod)
}

// If the cloud does not report what new instances are, that is reported once, and blocks nothing.
func TestDriftThatIsNotKnownIsReportedOnce(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.pass(time.Minute)
	require.Zero(t, r.count(journal.EventDriftUnknown))
	unknown := func(why string) {
		for _, i := range r.world.instances {
			i.OutdatedErr = why
		}
	}
	unknown("DescribeLaunchTemplates: Invalid: request 1")
	r.tick()
	last := r.last.Events
	require.Len(t, last, 1)
	require.True(t, last[0].Warning)
	require.Equal(t, "Which instances are outdated is unknown: DescribeLaunchTemplates: Invalid: request 1",
		last[0].Message)
	require.Equal(t, plan.Rollout{Unknown: 2,
		Message: "whether 2 workers must be replaced is unknown: DescribeLaunchTemplates: Invalid: request 1"},
		r.last.Decision.Rollout)
	unknown("DescribeLaunchTemplates: Invalid: request 2")
	r.pass(time.Minute)
	r.world.listErr = errLost
	r.tick()
	r.world.listErr = nil
	r.pass(time.Minute)
	require.NoError(t, r.health)
	require.Equal(t, 1, r.count(journal.EventDriftUnknown))

	unknown("")
	r.tick()
	require.Zero(t, r.last.Decision.Rollout)
	unknown("DescribeLaunchTemplates: Throttled: request 3")
	r.tick()
	require.Equal(t, 2, r.count(journal.EventDriftUnknown), "it had been known again")
}

// If the cloud does not report prices, that is reported once, and blocks nothing.
func TestPricesThatAreNotKnownAreReportedOnce(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	unknown := func(why string) {
		for i := range r.world.offers {
			r.world.offers[i].PriceErr = why
		}
		r.pass(observe.OffersFor + time.Minute)
	}
	unknown("")
	require.Zero(t, r.count(journal.EventPricesUnknown))
	unknown("GetProducts: Invalid: request 1")
	unknown("GetProducts: Invalid: request 2")
	require.NoError(t, r.health)
	require.Equal(t, 1, r.count(journal.EventPricesUnknown))
	unknown("")
	unknown("GetProducts: Throttled: request 3")
	require.Equal(t, 2, r.count(journal.EventPricesUnknown), "they had been known again")
}

// The nodes that pods wait for are the cheapest for them, whatever their order.
func TestPodsGetTheCheapestNodes(t *testing.T) {
	r := newRig(t)
	large := slices.Clone(r.world.offers)
	for i := range large {
		large[i].InstanceType, large[i].Allocatable = "m5.4xlarge", maps.Clone(large[i].Allocatable)
		large[i].Allocatable[corev1.ResourceCPU] = resource.MustParse("16")
		large[i].Price = fleet.Price{OnDemand: new(0.5)}
		r.world.offers[i].Price = fleet.Price{OnDemand: new(0.1)}
	}
	r.world.offers = append(large, r.world.offers...)
	r.pend(12)
	r.until("a node was launched", 2*time.Minute, func() bool { return r.world.launches > 0 })
	r.pass(time.Minute)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, "m5.4xlarge", r.world.instances["i-1"].InstanceType,
		"for twelve pods that is cheaper than twelve small ones")

	r = newRig(t)
	large[0].Price, large[1].Price = fleet.Price{OnDemand: new(0.5)}, fleet.Price{OnDemand: new(0.5)}
	for i := range r.world.offers {
		r.world.offers[i].Price = fleet.Price{OnDemand: new(0.1)}
	}
	r.world.offers = append(large, r.world.offers...)
	r.pend(1)
	r.until("a node was launched", 2*time.Minute, func() bool { return r.world.launches > 0 })
	require.NotEqual(t, "m5.4xlarge", r.world.instances["i-1"].InstanceType)
}
