package nodepool

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// deleted is a pool with n workers that is being deleted.
func deleted(t *testing.T, n int) *rig {
	r := newRig(t)
	r.world.add(n)
	r.spec.Plan.Min, r.spec.Plan.RemovalOrder = n, []plan.Scorer{plan.Oldest}
	r.tick()
	r.spec.Plan.Deleting = true
	return r
}

// goes requires that the pool is gone within a time.
func (r *rig) goes(within time.Duration) {
	r.Helper()
	r.until("the pool is released", within, func() bool { return r.releaseFinalizer > 0 })
	require.Empty(r, r.world.nodes)
	require.Zero(r, r.running())
}

func TestADeletedPoolIsEmptied(t *testing.T) {
	r := deleted(t, 5)
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "of " + name})
	}
	r.pend(4)
	r.removing(state.RemovalDraining)
	require.Len(t, r.record().Action.Targets, 5, "past minimum and batch")
	cordoned := 0
	for name, n := range r.world.nodes {
		require.NotEmpty(t, n.mark, "%s takes no pods of the others", name)
		if n.cordon {
			cordoned++
		}
	}
	require.Equal(t, 1, cordoned, "one at first, as in every scale-down")
	r.until("all nodes have gone", 10*time.Minute, func() bool { return len(r.world.nodes) == 0 })
	empty := r.clock.now()
	require.Equal(t, 1, r.count(journal.EventScaleDownStarted))
	require.Len(t, r.world.terminated, 5)
	r.goes(5 * time.Minute)
	require.GreaterOrEqual(t, r.clock.now().Sub(empty), r.pool.options.VanishGrace, "the list may be late")
	require.Zero(t, r.world.launches)
	require.Equal(t, journal.EventDeleted, r.events[len(r.events)-1])
	record := r.record()
	require.Equal(t, state.Record{Version: record.Version, Owner: "run-1", DecidedAt: record.DecidedAt}, record)
}

func TestAPoolThatHasLongBeenEmptyGoesAtOnce(t *testing.T) {
	r := newRig(t)
	r.pass(5 * time.Minute)
	r.spec.Plan.Deleting = true
	r.tick()
	require.Equal(t, 1, r.releaseFinalizer)

	r = newRig(t)
	r.pass(5 * time.Minute)
	r.spec.Plan.Deleting = true
	require.NoError(t, r.pool.Release(t.Context()))
	r.tick()
	require.Zero(t, r.releaseFinalizer, "another process may have launched")
	r.goes(3 * time.Minute)
}

func TestADeletedPoolWaitsForPods(t *testing.T) {
	r := deleted(t, 2)
	r.load("node-i-old0", &fakePod{name: "shop/cart", blocks: "is annotated foresail.dev/do-not-disrupt=true"})
	r.until("the other one goes", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	r.pass(time.Hour)
	require.Equal(t, []string{"i-old1"}, r.world.terminated)
	require.Equal(t, plan.NoRemovableNode, r.last.Decision.Reason)
	require.Equal(t, &Deletion{Nodes: 1, Held: []string{"node-i-old0: is annotated foresail.dev/do-not-disrupt=true"}},
		r.last.Deletion)
	r.clean()
	r.world.nodes["node-i-old0"].pods = nil
	r.goes(5 * time.Minute)
}

func TestADeletedPoolAsksBudgets(t *testing.T) {
	r := deleted(t, 2)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.removing(state.RemovalDraining)
	require.Equal(t, &Deletion{Nodes: 2,
		Held: []string{"node-i-old0: 1 pods are left, such as guarded: its budget allows none"}}, r.last.Deletion)
	r.pass(20 * time.Minute)
	require.Equal(t, 3, r.count(journal.EventDrainFailed),
		"after five minutes of a drain each, it is tried again after one and after two")
	r.pass(100 * time.Minute)
	require.Equal(t, []string{"i-old1"}, r.world.terminated)
	require.LessOrEqual(t, r.count(journal.EventDrainFailed), 8)
	r.world.nodes["node-i-old0"].pods = nil
	r.goes(70 * time.Minute)
}

// A deletion in which no node is removed begins again. Nodes whose turn had not come do not back off.
func TestADeletionIsClearedIfNoNodeGoes(t *testing.T) {
	r := deleted(t, 3)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.removing(state.RemovalDraining)
	r.world.drainErr = errors.New("refused by a webhook")
	r.until("it is cleared", act.ClearAfter+time.Minute,
		func() bool { return r.count(journal.EventScaleDownAborted) == 1 })
	require.Len(t, r.record().DrainBackoff, 1, "the others had not begun")
	r.world.drainErr = nil
	r.until("the others go", 3*time.Minute, func() bool { return len(r.world.terminated) == 2 })

	r = deleted(t, 3)
	r.world.termErr = refused(provider.Unknown)
	r.until("it is cleared", act.ClearAfter+time.Minute,
		func() bool { return r.count(journal.EventScaleDownAborted) == 1 })
	r.clean()
	r.world.termErr = nil
	r.goes(70 * time.Minute)
}

func TestALongDeletionIsNotCleared(t *testing.T) {
	r := deleted(t, 8)
	for _, n := range r.world.nodes {
		n.holds = []string{"pv"} // for two minutes each
	}
	r.goes(30 * time.Minute)
	require.Zero(t, r.count(journal.EventScaleDownAborted))
	require.Equal(t, 1, r.count(journal.EventScaleDownStarted))
}

// Pods of a deleted pool need not have another node.
func TestADeletionNeedsNoOtherPlaces(t *testing.T) {
	r := idle(t, 3)
	for i, n := range r.nodeNames() {
		r.world.nodes[n].object.Labels[corev1.LabelHostname] = n
		r.world.objects = append(r.world.objects, replica(fmt.Sprint("web-", i), n))
	}
	r.until("they are refused", 30*time.Minute, func() bool { return r.last.Decision.Reason == plan.NoRemovableNode })
	r.spec.Plan.Deleting = true
	r.goes(6 * time.Minute)
	require.Zero(t, r.count(journal.EventDrainFailed))
}

func TestInstancesWithoutANodeGoWithTheirPool(t *testing.T) {
	t.Run("on their way", func(t *testing.T) {
		r := newRig(t)
		r.spec.Plan.Min = 5
		r.world.joins = func(provider.Launch) bool { return false }
		r.until("they are launched", time.Minute, func() bool { return r.world.launches == 5 })
		r.spec.Plan.Deleting = true
		r.until("they are terminated", 30*time.Second, func() bool { return len(r.world.terminated) == 5 })
		require.Equal(t, 1, r.count(journal.EventScaleUpAborted))
		require.Zero(t, r.record().Failures)
		r.goes(4 * time.Minute)
	})
	t.Run("that join just now", func(t *testing.T) {
		r := newRig(t)
		r.spec.Plan.Min = 2
		r.until("they have joined", time.Minute, func() bool { return len(r.world.nodes) == 2 })
		r.spec.Plan.Deleting = true
		r.goes(6 * time.Minute)
		require.Equal(t, 2, r.count(journal.EventDrained))
	})
	t.Run("kept, as they did not join", func(t *testing.T) {
		r := newRig(t)
		r.spec.Plan.Min, r.spec.Plan.MaxFailureBackoff, r.spec.Join = 1, time.Hour,
			config.Join{Timeout: time.Minute, KeepFailedFor: 1000 * time.Hour}
		r.world.joins = func(provider.Launch) bool { return false }
		r.until("one is kept", 5*time.Minute,
			func() bool { return len(r.record().PendingTerminations) == 1 && r.record().Action == nil })
		r.spec.Plan.Deleting = true
		r.goes(6 * time.Minute)
	})
	t.Run("that have lost their node", func(t *testing.T) {
		r := deleted(t, 1)
		r.launchedBy("up-long-ago")
		clear(r.world.nodes)
		r.until("it is terminated", 3*time.Minute, func() bool { return len(r.world.terminated) == 1 })
		r.goes(5 * time.Minute)
	})
	t.Run("that have lost their node, and are too many to be believed", func(t *testing.T) {
		r := deleted(t, 4)
		r.launchedBy("up-long-ago")
		clear(r.world.nodes)
		r.pass(time.Hour)
		require.Empty(t, r.world.terminated)
		require.Equal(t, &Deletion{Instances: 4, Held: []string{
			"4 of 4 instances have no ready node: observations cannot be trusted; terminate those without a node yourself, or set deletionPolicy to Orphan to leave them",
		}}, r.last.Deletion)
		for _, i := range r.world.instances {
			i.endedAt = r.clock.now()
		}
		r.goes(10 * time.Minute)
	})
	t.Run("stopped", func(t *testing.T) {
		r := deleted(t, 1)
		r.launchedBy("up-long-ago")
		r.world.instances["i-old0"].Stopped, r.world.nodes["node-i-old0"].ready = true, false
		r.goes(10 * time.Minute)
	})
	t.Run("that Foresail did not launch", func(t *testing.T) {
		r := deleted(t, 1)
		clear(r.world.nodes)
		r.pass(time.Hour)
		require.Empty(t, r.world.terminated)
		require.Equal(t, []string{"i-old0: it has no Node, and Foresail did not launch it: terminate it, or remove its tags"},
			r.last.Deletion.Held)
		r.world.instances["i-old0"].endedAt = r.clock.now()
		r.goes(5 * time.Minute)
	})
}

// Nodes that do not work are removed too, and first: they must not become too large a share of the rest.
func TestUnreadyNodesGoWithTheirPool(t *testing.T) {
	r := deleted(t, 10)
	for _, name := range []string{"node-i-old6", "node-i-old7", "node-i-old8", "node-i-old9"} {
		r.world.nodes[name].ready = false
		r.load(name, &fakePod{name: "x"})
	}
	r.until("it has begun", 15*time.Second, func() bool { return r.record().Action != nil })
	for _, target := range r.record().Action.Targets[:4] {
		require.Contains(t, []string{"i-old6", "i-old7", "i-old8", "i-old9"}, target.InstanceID)
	}
	r.goes(10 * time.Minute)
}

// A cluster that looks broken in the middle of a deletion is not emptied.
func TestADeletionWaitsInDoubt(t *testing.T) {
	r := deleted(t, 8)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	for _, n := range r.world.nodes {
		n.ready = n.cordon
	}
	r.world.nodes["node-i-old0"].pods = nil
	r.pass(10 * time.Minute)
	require.Empty(t, r.world.terminated)
	for _, n := range r.world.nodes {
		n.ready = true
	}
	r.goes(10 * time.Minute)
}

func TestADeletedPoolIsNotReleasedUnseen(t *testing.T) {
	for name, blind := range map[string]func(*rig, error){
		"cloud":   func(r *rig, err error) { r.world.listErr = err },
		"cluster": func(r *rig, err error) { r.world.observeErr = err },
		"journal": (*rig).breakJournal,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.pass(time.Minute)
			r.spec.Plan.Deleting = true
			blind(r, errors.New("down"))
			r.pass(time.Hour)
			require.Zero(t, r.releaseFinalizer)
			if name != "journal" {
				require.Contains(t, r.last.Deletion.Err, "down")
			}
			blind(r, nil)
			if name != "journal" { // no other process has led, and so launched
				r.pass(time.Minute)
				require.Zero(t, r.releaseFinalizer, "it must be seen empty for the grace")
			}
			r.goes(2 * time.Minute)
		})
	}
	t.Run("a node whose instance is not listed", func(t *testing.T) {
		r := deleted(t, 1)
		r.world.nodes["node-i-old0"].object.Labels[cluster.LabelPool] = "workers"
		r.world.instances["i-old0"].hidden = true
		r.pass(time.Hour)
		require.Zero(t, r.releaseFinalizer)
		require.Equal(t, []string{"node-i-old0: the cloud does not list its instance"}, r.last.Deletion.Held)
		r.world.instances["i-old0"].hidden = false
		r.goes(5 * time.Minute)
	})
	t.Run("the object cannot be written", func(t *testing.T) {
		r := newRig(t)
		r.change(func(o *Options) { o.ReleaseFinalizer = func(context.Context) error { return errors.New("down") } })
		r.pass(3 * time.Minute)
		r.spec.Plan.Deleting = true
		r.pass(time.Minute)
		require.ErrorContains(t, r.health, "release the WorkerPool: down")
		require.Zero(t, r.count(journal.EventDeleted))
		r.change(func(o *Options) { o.ReleaseFinalizer = r.release })
		r.tick()
		require.Equal(t, 1, r.releaseFinalizer)
	})
}

func TestOnlyTheLeaderReleasesAPool(t *testing.T) {
	r := newRig(t)
	other := r.process("other", r.clock.now)
	r.tick()
	other.options.ReleaseFinalizer = func(context.Context) error { return errors.New("it does not lead") }
	other.connectPhases()
	r.spec.Plan.Deleting = true
	for range 120 {
		r.clock.advance(2 * time.Second)
		_, err := other.Tick(t.Context())
		require.NoError(t, err)
		r.tick()
	}
	require.Positive(t, r.releaseFinalizer)
}

func TestADryRunOfADeletion(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.DryRun = true
	r.tick()
	r.spec.Plan.Deleting = true
	r.pass(time.Hour)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.releaseFinalizer)
	r.clean()
	require.Equal(t, plan.PoolDeleted, r.last.Decision.Reason)
	r.spec.DryRun = false
	r.goes(10 * time.Minute)

	r = newRig(t)
	r.spec.DryRun = true
	r.tick()
	r.spec.Plan.Deleting = true
	r.goes(3 * time.Minute)
}

func TestInterruptedWorkersOfADeletedPoolAreNotReplaced(t *testing.T) {
	r := deleted(t, 3)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	r.take("i-old0")
	r.world.past["i-old0"] = true
	r.goes(15 * time.Minute)
	require.Zero(t, r.world.launches)
}

func TestAScaleDownEndsBeforeTheDeletion(t *testing.T) {
	r := idle(t, 3)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	r.spec.Plan.Deleting = true
	r.pass(time.Minute)
	r.world.nodes["node-i-old0"].pods = nil
	r.goes(10 * time.Minute)
	require.Zero(t, r.count(journal.EventDrainFailed))
}

// A journal in a table outlives its WorkerPool. A new one of the same name does not continue the
// deletion of the old one.
func TestADeletionEndsWithItsPool(t *testing.T) {
	r := newRig(t)
	r.world.add(3)
	r.spec.Plan.Min, r.spec.Plan.RemovalOrder = 5, []plan.Scorer{plan.Oldest}
	r.until("a scale-up is open", time.Minute, func() bool { return r.world.launches == 2 })
	r.world.joins = func(provider.Launch) bool { return false }
	r.world.termErr = refused(provider.Throttled)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.spec.Plan.Deleting = true
	r.removing(state.RemovalDraining)
	require.Len(t, r.record().PendingTerminations, 2)
	r.spec.Plan.Deleting, r.spec.Plan.Min, r.world.termErr = false, 3, nil
	r.until("it is given up", time.Minute, func() bool { return r.record().Action == nil })
	r.clean()
	require.Empty(t, r.record().PendingTerminations)
	r.pass(5 * time.Minute)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.releaseFinalizer)
}

// A server of the control plane may carry the tags by mistake.
func TestTheControlPlaneDoesNotHoldAPool(t *testing.T) {
	r := deleted(t, 2)
	r.world.nodes["node-i-old0"].object.Labels["node-role.kubernetes.io/control-plane"] = ""
	r.until("the other one goes", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	released := 0
	r.change(func(o *Options) { o.ReleaseFinalizer = func(context.Context) error { released++; return nil } })
	r.pass(4 * time.Minute)
	require.Positive(t, released)
	require.Equal(t, []string{"i-old1"}, r.world.terminated)
}
