package nodepool

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// claim adds a Node with a provider id.
func (r *rig) claim(name, providerID string) *fakeNode {
	n := &fakeNode{ready: true, since: r.clock.now(), object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(r.clock.now()),
			Labels: map[string]string{corev1.LabelTopologyZone: "a"},
		},
		Spec:   corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Allocatable: shape.DeepCopy(), Capacity: shape},
	}}
	r.world.nodes[name] = n
	return n
}

// reports makes a Node report an address.
func (n *fakeNode) reports(address string) {
	n.object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
}

// TestNodesAreDeletedAfterTheirInstances: an ordered termination does not mean that an instance is
// gone. Its Node stays until the cloud reports that, and nothing else waits for it.
func TestNodesAreDeletedAfterTheirInstances(t *testing.T) {
	for name, remove := range map[string]func(*rig){
		"scale-down": func(r *rig) {
			r.spec.Plan.Min, r.spec.Plan.Idle.For = 9, time.Minute
			r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest}
		},
		"repair": func(r *rig) {
			r.load("node-i-old0", &fakePod{name: "db-0"})
			r.breakNode("node-i-old0")
		},
		"interruption": func(r *rig) { r.take("i-old0") },
		"deletion":     func(r *rig) { r.spec.Plan.Deleting = true },
		"upkeep": func(r *rig) {
			r.world.instances["i-old0"].Stopped, r.world.nodes["node-i-old0"].ready = true, false
			r.spec.Plan.Repair.Disabled = true
		},
		"by hand": func(r *rig) { r.world.instances["i-old0"].endedAt = r.clock.now() },
	} {
		t.Run(name, func(t *testing.T) {
			r := repairing(t)
			r.launchedBy("up-long-ago")
			r.oneZone()
			r.world.leaving = time.Hour
			remove(r)
			ended := func() time.Time { return r.world.instances["i-old0"].endedAt }
			r.until("it ends", 2*time.Hour, func() bool { return !ended().IsZero() })
			r.until("the journal has no other work", 30*time.Minute, func() bool {
				record := r.record()
				return record.Action == nil && len(record.Interruptions)+len(record.Repairs) == 0
			})
			r.pass(ended().Add(time.Hour - time.Minute).Sub(r.clock.now()))
			require.Contains(t, r.nodeNames(), "node-i-old0")
			if r.record().Ending("i-old0") != nil {
				require.Equal(t, 1, r.count(journal.EventStillEnding)/max(1, len(r.record().Endings)), "each once")
			}
			r.restart()
			r.clock.advance(journal.LeaseTerm)
			r.until("its Node is deleted", 5*time.Minute, func() bool { return !slices.Contains(r.nodeNames(), "node-i-old0") })
			require.GreaterOrEqual(t, r.clock.now().Sub(ended()), time.Hour)
		})
	}
}

// TestNothingWaitsForAnInstanceThatEnds: an instance that hangs while it shuts down does not
// keep pods from getting nodes, or other nodes from being removed.
func TestNothingWaitsForAnInstanceThatEnds(t *testing.T) {
	r := idle(t, 3)
	r.world.leaving, r.spec.Plan.CooldownUp = time.Hour, 0
	r.until("two have been removed", 30*time.Minute, func() bool { return len(r.world.terminated) == 2 })
	require.Len(t, r.world.nodes, 3)
	require.Len(t, r.record().Endings, 2)
	r.pend(2)
	r.until("a node is launched", time.Minute, func() bool { return r.world.launches == 1 })
}

// TestAmbiguousNodesAreLeftAlone: two Nodes have one provider id, or one has the former id of another.
// It is unclear which of them runs on the instance, so neither the instance nor a Node is removed
// for any reason.
func TestAmbiguousNodesAreLeftAlone(t *testing.T) {
	confused := map[string]func(*rig){
		"two Nodes have the provider id": func(r *rig) { r.claim("node-x", "fake:///i-old0") },
		"of other forms":                 func(r *rig) { r.claim("a-node", "fake://zone/i-old0") },
		"the Node of another name has it now": func(r *rig) {
			delete(r.world.nodes, "node-i-old0")
			r.claim("node-x", "fake:///i-old0")
		},
		"its Node has the address of an instance without a Node": func(r *rig) {
			r.world.instances["i-old1"].Addresses = []string{"10.0.0.1"}
			r.world.nodes["node-i-old0"].reports("10.0.0.1")
			delete(r.world.nodes, "node-i-old1")
		},
	}
	for name, remove := range map[string]func(*rig){
		"scale-down": func(r *rig) { r.spec.Plan.Min, r.spec.Plan.Max = 1, 1 },
		"repair": func(r *rig) {
			for _, n := range r.world.nodes {
				if n.object.Spec.ProviderID != "fake:///i-old1" && provider.IDOf(n.object.Spec.ProviderID) == "i-old0" {
					n.ready = false
				}
			}
		},
		"interruption": func(r *rig) { r.take("i-old0") },
		"deletion":     func(r *rig) { r.spec.Plan.Deleting = true },
		"a stop": func(r *rig) {
			r.world.instances["i-old0"].Stopped = true
			r.world.past["i-old0"] = true
		},
	} {
		for what, confuse := range confused {
			t.Run(name+", "+what, func(t *testing.T) {
				r := newRig(t)
				r.world.add(10)
				r.launchedBy("up-long-ago")
				r.oneZone()
				r.repairs(30*time.Minute, 10)
				r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest}
				r.tick()
				confuse(r)
				nodes := len(r.world.nodes)
				for _, n := range r.world.nodes {
					if provider.IDOf(n.object.Spec.ProviderID) == "i-old0" {
						n.pods = []*fakePod{{name: "db-0"}}
					}
				}
				remove(r)
				r.pass(3 * time.Hour)
				require.NotContains(t, r.world.terminated, "i-old0")
				require.GreaterOrEqual(t, r.count(journal.EventAmbiguous), 1)
				for name, n := range r.world.nodes {
					if provider.IDOf(n.object.Spec.ProviderID) == "i-old0" {
						require.Len(t, n.pods, 1, name)
						require.Zero(t, n.pods[0].leaves, "the pods of %s stay", name)
						nodes--
					}
				}
				require.Less(t, nodes, 10, "no Node of it is deleted")
			})
		}
	}
}

// TestAmbiguityEndsWithItsCause: once the other Node is gone, or the addresses show which Node is
// the instance's, it is removed as usual.
func TestAmbiguityEndsWithItsCause(t *testing.T) {
	for name, clarify := range map[string]func(*rig){
		"the other Node is deleted": func(r *rig) { delete(r.world.nodes, "node-x") },
		"the Node that it had is deleted, and the other is at its address": func(r *rig) {
			delete(r.world.nodes, "node-i-old0")
			r.world.nodes["node-x"].reports("10.0.0.1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 2)
			r.world.instances["i-old0"].Addresses = []string{"10.0.0.1"}
			r.world.nodes["node-i-old1"].pods = []*fakePod{{name: "kept", blocks: "is kept"}}
			r.tick()
			r.claim("node-x", "fake:///i-old0")
			r.pass(time.Hour)
			require.Empty(t, r.world.terminated)
			clarify(r)
			r.until("it is removed", 30*time.Minute, func() bool { return len(r.world.terminated) == 1 })
			r.ends()
			require.Equal(t, []string{"node-i-old1"}, r.nodeNames())
		})
	}
}

// TestAmbiguityEndsARemoval: if a Node takes the provider id of an instance that is being removed,
// the removal is given up.
func TestAmbiguityEndsARemoval(t *testing.T) {
	for name, confuse := range map[string]func(*rig){
		"another Node has its provider id": func(r *rig) { r.claim("node-x", "fake:///i-old0") },
		"another instance has its node name": func(r *rig) {
			delete(r.world.nodes, "node-i-old0")
			r.claim("node-i-old0", "fake:///i-new").pods = []*fakePod{{name: "web-1"}}
		},
		"it has lost its tags": func(r *rig) { r.world.instances["i-old0"].untagged = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 2)
			r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
			r.removing(state.RemovalDraining)
			confuse(r)
			r.until("the removal is given up", time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 1 })
			r.world.nodes["node-i-old0"].pods[0].refused = ""
			r.pass(time.Minute)
			require.NotContains(t, r.world.terminated, "i-old0")
			require.Zero(t, r.world.nodes["node-i-old0"].pods[0].leaves)
			require.Empty(t, r.world.nodes["node-i-old0"].mark)
		})
	}
}

// TestNodesWithAHostNameForAnIDKeepInstances: the kubelet has a provider id of the right scheme
// that names no instance. Its Node is found by its address, or by its age, and its instance is not
// taken for one without a node.
func TestNodesWithAHostNameForAnIDKeepInstances(t *testing.T) {
	const hostName = "ip-10-0-0-1.eu-central-1.compute.internal"
	for name, c := range map[string]struct {
		providerID, node, address, of string
	}{
		"when it came":      {"fake:///eu-central-1a/ip-10-0-0-1", "x", "", ""},
		"its address":       {"fake:///eu-central-1a/ip-10-0-0-1", "x", "10.0.0.1", "10.0.0.1"},
		"its host name":     {"fake:///eu-central-1a/ip-10-0-0-1", "ip-10-0-0-1", "", hostName},
		"none at all":       {"", "IP-10-0-0-1.ec2.internal", "", hostName},
		"another's, reused": {"fake:///i-gone", "x", "10.0.0.1", "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := wanting(t, 1)
			r.world.joins = func(provider.Launch) bool { return false }
			r.tick()
			r.world.instances["i-1"].Addresses = []string{c.of}
			r.clock.advance(30 * time.Second)
			n := r.claim(c.node, c.providerID)
			if n.pods = []*fakePod{{name: "shop/cart"}}; c.address != "" {
				n.reports(c.address)
			}
			r.world.pending = nil
			r.pass(3 * time.Hour)
			require.NotContains(t, r.world.terminated, "i-1")
			require.Contains(t, r.findings(plan.Ambiguous), c.node)
			require.ErrorContains(t, r.health, "may be its")
		})
	}
}

// TestInstancesOfOtherControllersAreIgnored: an instance of an Auto Scaling group or of
// Karpenter that carries the pool's tags is neither counted nor removed.
func TestInstancesOfOtherControllersAreIgnored(t *testing.T) {
	for name, begin := range map[string]func(*rig){
		"from the start": func(*rig) {},
		"later":          func(r *rig) { r.pass(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(3)
			r.launchedBy("up-long-ago")
			r.spec.Plan.Min = 3
			begin(r)
			theirs := r.world.instances["i-old0"]
			theirs.OwnedBy = "the Auto Scaling group web"
			r.until("another is launched for the minimum", time.Minute, func() bool { return r.world.launches == 1 })
			r.pass(time.Hour)
			require.Equal(t, 3, r.last.Decision.Workers)
			require.Equal(t, 1, r.count(journal.EventNotOwned), "once")
			require.Contains(t, r.findings(plan.NotOwned), "belongs to the Auto Scaling group web")
			r.take("i-old0")
			r.world.nodes["node-i-old0"].ready = false
			r.load("node-i-old0", &fakePod{name: "web-0"})
			r.pass(time.Hour)
			require.Empty(t, r.record().Interruptions)
			require.Zero(t, r.world.nodes["node-i-old0"].pods[0].leaves)
			require.Contains(t, r.nodeNames(), "node-i-old0")

			theirs.Stopped = true
			r.spec.Plan.Deleting = true
			released := 0
			r.change(func(o *Options) { o.ReleaseFinalizer = func(context.Context) error { released++; return nil } })
			r.pool.connectPhases()
			r.until("the pool goes without it", 10*time.Minute, func() bool { return released > 0 })
			require.NotContains(t, r.world.terminated, "i-old0")
			require.Equal(t, []string{"node-i-old0"}, r.nodeNames())
		})
	}
}

// TestCopiedTagsLaunchNothing: an instance with the tags of a launch is not the one that was
// launched, if another was first. It is neither taken for the slot's instance nor terminated as an
// orphan.
func TestCopiedTagsLaunchNothing(t *testing.T) {
	r := wanting(t, 1)
	r.world.lost = func(provider.Launch) error { return errLost }
	r.tick()
	clone := *r.world.instances["i-1"]
	clone.ID, clone.ProviderID, clone.Launched, clone.joined = "i-0", "fake:///i-0", clone.Launched.Add(time.Second), true
	r.world.instances["i-0"] = &clone
	r.clock.advance(2 * time.Second)
	r.until("the launch is adopted", 30*time.Second, func() bool { return r.count(journal.EventLaunched) == 1 })
	r.until("its Node has joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.NotNil(t, r.world.nodes["node-i-1"])
	r.pass(3 * time.Hour)
	require.Empty(t, r.world.terminated, "the copy is no orphan")
}

// TestNodesOfReusedAddressesAreDeleted: a new instance has the private address, and so the node
// name, of one that is gone. The old Node goes before the new kubelet registers under its name.
func TestNodesOfReusedAddressesAreDeleted(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.spec.Plan.Min, r.world.joinDelay = 4, 10*time.Minute
	r.world.instances["i-old0"].Addresses = []string{"10.0.0.1"}
	r.world.nodes["node-i-old0"].reports("10.0.0.1")
	r.tick()
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.tick()
	require.Equal(t, 1, r.world.launches)
	r.world.instances["i-1"].Addresses = []string{"10.0.0.1"}
	r.pass(time.Minute)
	require.NotContains(t, r.nodeNames(), "node-i-old0")
}

// TestNoticesOfUntaggedInstancesExpire: a notice about an instance that has lost its tags, and that
// the cloud does not reclaim, ends like any other without effect.
func TestNoticesOfUntaggedInstancesExpire(t *testing.T) {
	r := newRig(t)
	r.world.add(3)
	r.tick()
	r.load("node-i-old0", &fakePod{name: "web-0"})
	r.world.instances["i-old0"].untagged = true
	r.take("i-old0")
	r.tick()
	r.until("it is over", 15*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	require.Zero(t, r.world.nodes["node-i-old0"].pods[0].leaves)
	r.clean()
}

// TestADeletionNamesWhatItWaitsFor: two Nodes have the provider id of an instance that is gone, and
// another instance does not shut down.
func TestADeletionNamesWhatItWaitsFor(t *testing.T) {
	r := deleted(t, 3)
	r.claim("node-x", "fake:///i-old0")
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.world.leaving = time.Hour
	r.pass(50 * time.Minute)
	require.Contains(t, r.world.nodes, "node-i-old1")
	held := strings.Join(r.last.Deletion.Held, "\n")
	require.Contains(t, held, "node-i-old0: Nodes node-i-old0 and node-x both have the provider id of i-old0")
	require.Contains(t, held, "node-i-old1: The termination of i-old1 was ordered")
	r.pass(time.Hour)
	require.Equal(t, []string{"node-i-old0", "node-x"}, r.nodeNames())
	require.Zero(t, r.releaseFinalizer)
	delete(r.world.nodes, "node-x")
	r.goes(5 * time.Minute)
}

// TestInstancesOfAPastCallAreCleanedUp: several instances have the token of one call. Long after
// it, one that has lost its Node is an orphan of this pool like any other, and not a copy of tags.
func TestInstancesOfAPastCallAreCleanedUp(t *testing.T) {
	r := wanting(t, 4)
	r.until("all have joined", 5*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	byToken := map[string][]string{}
	for _, i := range r.world.instances {
		byToken[i.Token] = append(byToken[i.Token], i.ID)
	}
	require.Len(t, byToken, 2, "a call for each zone")
	call := byToken[r.world.instances["i-1"].Token]
	require.Len(t, call, 2)
	for _, id := range call {
		delete(r.world.nodes, "node-"+id)
	}
	r.until("they are terminated", 3*time.Hour, func() bool { return len(r.world.terminated) == 2 })
	require.ElementsMatch(t, call, r.world.terminated)
}
