package nodepool

import (
	"context"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// launchedBy attributes all instances to an action.
func (r *rig) launchedBy(action string) {
	for _, i := range r.world.instances {
		i.Action = action
	}
}

// The Nodes of running instances can vanish: the cluster is restored from a backup, or a user deletes them all.
func TestInstancesOutliveTheirNodes(t *testing.T) {
	lose := func(t *testing.T) *rig {
		r := newRig(t)
		r.world.add(8)
		r.launchedBy("up-long-ago")
		r.spec.Plan.Min = 8
		r.tick()
		r.world.joins = func(provider.Launch) bool { return false }
		clear(r.world.nodes)
		return r
	}
	t.Run("while a process looks", func(t *testing.T) {
		r := lose(t)
		r.spec.Plan.Max = 20
		r.spec.Join.KeepFailedFor = 1000 * time.Hour
		r.pass(time.Hour)
		require.Empty(t, r.world.terminated)
		require.ErrorContains(t, r.health, "observations cannot be trusted")
	})
	t.Run("before it begins", func(t *testing.T) {
		r := lose(t)
		require.NoError(t, r.pool.Release(t.Context()))
		r.restart()
		r.tick()
		require.Equal(t, 8, r.last.Decision.Workers, "it has not seen them without nodes for long")
		r.pass(time.Hour)
		for id := range r.world.instances {
			if r.world.instances[id].Action == "up-long-ago" {
				require.NotContains(t, r.world.terminated, id)
			}
		}
	})
	t.Run("a few", func(t *testing.T) {
		r := newRig(t)
		r.world.add(10)
		r.launchedBy("up-long-ago")
		r.tick()
		for _, name := range []string{"node-i-old0", "node-i-old1", "node-i-old2"} {
			delete(r.world.nodes, name)
		}
		require.NoError(t, r.pool.Release(t.Context()))
		r.restart()
		r.pass(r.spec.Join.Timeout + plan.OrphanMargin)
		require.Empty(t, r.world.terminated, "how long they have been without nodes is not known")
		r.until("terminations are pending", time.Minute, func() bool { return len(r.record().PendingTerminations) > 0 })
		require.Len(t, r.record().PendingTerminations, plan.MaxPendingTerminations)
		r.until("all have gone", time.Minute, func() bool { return len(r.world.terminated) == 3 })
	})
}

// Instances that are pending termination wait until the cloud and the cluster can be trusted again.
func TestNothingIsTerminatedInDoubt(t *testing.T) {
	r := newRig(t)
	r.world.joins = func(provider.Launch) bool { return false }
	r.world.add(5)
	r.spec.Plan.Min = 6
	r.until("its termination is pending", 12*time.Minute,
		func() bool { return len(r.record().PendingTerminations) == 1 })
	r.spec.Plan.Min = 5
	for _, n := range r.world.nodes {
		n.ready = false
	}
	r.pass(time.Hour)
	require.Empty(t, r.world.terminated)
	require.ErrorContains(t, r.health, "observations cannot be trusted")
	for _, n := range r.world.nodes {
		n.ready = true
	}
	r.until("it is terminated", time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-1"}, r.world.terminated)
}

// Launches that never join do not cast doubt on the rest of the cluster.
func TestAllThatNeverJoinedGo(t *testing.T) {
	r := wanting(t, 5)
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("none has joined", 12*time.Minute, func() bool { return len(r.record().PendingTerminations) == 5 })
	r.world.pending = nil
	r.until("they are terminated", 20*time.Minute, func() bool { return len(r.world.terminated) == 5 })
}

// frozen shows the cluster as it was at one time.
type frozen struct {
	*fakeWorld
	at *cluster.Cluster
}

func (f frozen) Observe(context.Context) (*cluster.Cluster, error) { return f.at, nil }

// A node may join at the last moment, and the process may see Nodes half a minute late.
func TestNodeThatJoinsUnseenKeepsItsInstance(t *testing.T) {
	pendingTermination := func(t *testing.T) (r *rig, freeze func()) {
		r = wanting(t, 1)
		r.world.joins = func(provider.Launch) bool { return false }
		r.until("its termination is pending", 12*time.Minute,
			func() bool { return len(r.record().PendingTerminations) == 1 })
		r.world.pending = nil
		return r, func() {
			for due := r.record().PendingTerminations[0].Due; r.clock.now().Before(
				due.Add(-10 * time.Second)); r.clock.advance(2 * time.Second) {
				r.tick()
			}
			cluster, err := r.world.Observe(t.Context())
			require.NoError(t, err)
			r.change(func(o *Options) { o.Observer = frozen{r.world, cluster} })
		}
	}
	t.Run("as a new Node", func(t *testing.T) {
		r, freeze := pendingTermination(t)
		freeze()
		r.world.addNode(r.world.instances["i-1"], r.clock.now())
		r.load("node-i-1", &fakePod{name: "shop/cart"})
		r.pass(time.Minute)
		require.Empty(t, r.world.terminated)
		require.ErrorContains(t, r.health, "it has node node-i-1, which has not been seen yet")
		r.change(func(o *Options) { o.Observer = r.world })
		r.pass(time.Minute)
		for _, c := range r.record().PendingTerminations {
			require.NotEqual(t, "i-1", c.InstanceID, "it is pardoned")
		}
	})
	t.Run("and the cluster does not answer", func(t *testing.T) {
		r, freeze := pendingTermination(t)
		freeze()
		r.world.drainErr = errDown
		r.pass(time.Minute)
		require.Empty(t, r.world.terminated)
		require.ErrorIs(t, r.health, errDown)
	})
	t.Run("as a Node that becomes ready", func(t *testing.T) {
		r, freeze := pendingTermination(t)
		r.world.addNode(r.world.instances["i-1"], r.clock.now())
		r.world.nodes["node-i-1"].ready = false
		freeze()
		r.world.nodes["node-i-1"].ready = true
		r.load("node-i-1", &fakePod{name: "shop/cart"})
		r.pass(time.Minute)
		require.Zero(t, r.world.nodes["node-i-1"].pods[0].leaves,
			"the mark on a node that is not ready has not been seen")
		require.Empty(t, r.world.terminated)
		r.change(func(o *Options) { o.Observer = r.world })
		r.pass(time.Minute)
		for _, c := range r.record().PendingTerminations {
			require.NotEqual(t, "i-1", c.InstanceID, "it is pardoned")
		}
		r.clean()
	})
}

// The provider id is spelled as the kubelet was configured.
func TestProviderIDsOfOtherForms(t *testing.T) {
	for _, providerID := range []string{"fake://i-1", "fake:///zone/i-1", "i-1"} {
		t.Run(providerID, func(t *testing.T) {
			r := wanting(t, 1)
			r.world.joins = func(provider.Launch) bool { return false }
			r.tick()
			r.clock.advance(30 * time.Second)
			r.world.addNode(&fakeInstance{Instance: fleet.Instance{ID: "i-1", ProviderID: providerID}}, r.clock.now())
			r.load("node-i-1", &fakePod{name: "shop/cart"})
			r.world.pending = nil
			r.until("it is known for the worker", time.Minute,
				func() bool { return r.count(journal.EventScaledUp) == 1 })
			r.pass(time.Hour)
			require.Empty(t, r.world.terminated)
			require.Equal(t, 1, r.last.Decision.Workers)
			r.restart()
			r.clock.advance(journal.LeaseTerm)
			r.pass(2 * time.Minute)
			require.Equal(t, 1, r.last.Decision.Workers)

			r.world.instances["i-1"].endedAt = r.clock.now()
			r.until("its Node goes with it", 5*time.Minute, func() bool { return len(r.world.nodes) == 0 })
		})
	}
}

func TestControlPlaneIsNotTerminated(t *testing.T) {
	r := wanting(t, 1)
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("its termination is pending", 12*time.Minute,
		func() bool { return len(r.record().PendingTerminations) == 1 })
	r.world.addNode(r.world.instances["i-1"], r.clock.now())
	node := r.world.nodes["node-i-1"]
	node.ready, node.object.Labels["node-role.kubernetes.io/control-plane"] = false, ""
	r.pass(time.Hour)
	require.NotContains(t, r.world.terminated, "i-1")
	require.Empty(t, node.mark)
}

// Instances kept for inspection are also kept with a new journal.
func TestKeptInstancesOutliveTheJournal(t *testing.T) {
	r := wanting(t, 1)
	r.spec.Join.KeepFailedFor = 1000 * time.Hour
	r.world.joins = func(provider.Launch) bool { return false }
	r.until("its termination is pending", 12*time.Minute,
		func() bool { return len(r.record().PendingTerminations) == 1 })
	r.world.pending = nil
	r.pass(time.Minute)
	r.store.records = nil
	r.restart()
	r.pass(2 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.Equal(t, state.TerminateJoinFailed, r.record().PendingTerminations[0].Reason)
}

// A stopped instance no longer counts as a worker, and only the pool terminates it.
func TestStoppedInstancesGo(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.launchedBy("up-long-ago")
	r.world.instances["i-old3"].Action = ""
	r.spec.Plan.Min, r.spec.Plan.Max = 1, 4
	r.world.leaving = time.Minute
	r.tick()
	stop := func(id string, stopped bool) {
		r.world.instances[id].Stopped, r.world.nodes["node-"+id].ready = stopped, !stopped
	}
	for _, id := range []string{"i-old1", "i-old2", "i-old3"} {
		stop(id, true)
		r.load("node-"+id, &fakePod{name: "shop/cart"})
		r.world.past[id] = true // its pods do not run
	}
	r.pass(plan.StoppedFor - time.Minute)
	require.Empty(t, r.world.terminated)
	stop("i-old2", false)
	r.pass(10 * time.Minute)
	require.Equal(t, []string{"i-old1"}, r.world.terminated, "one was started again, and one is not the pool's doing")
	require.Equal(t, 1, r.count(journal.EventTerminated))
	require.Empty(t, r.record().PendingTerminations)
	require.NotContains(t, r.nodeNames(), "node-i-old1")
	require.Contains(t, r.nodeNames(), "node-i-old3")
}

// TestNewProcessDeletesNodesOfGoneInstances starts a process after the cloud has stopped listing an
// instance. The process knows the instance from the journal, without a provider id, and its Node
// was never labelled.
func TestNewProcessDeletesNodesOfGoneInstances(t *testing.T) {
	for name, record := range map[string]state.Record{
		"pending termination": {PendingTerminations: []state.PendingTermination{{InstanceID: "i-old0",
			Reason: state.TerminateJoinFailed}}},
		"interrupted": {Interruptions: []state.Removal{{InstanceID: "i-old0", State: state.RemovalPlanned,
			ReplacementSettled: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.world.add(1)
			r.world.instances["i-old0"].endedAt = r.clock.now()
			_, err := r.store.Save(t.Context(), "workers", record)
			require.NoError(t, err)
			r.until("the Node to be deleted", 10*time.Minute, func() bool { return len(r.world.nodes) == 0 })
		})
	}
}
