package nodepool

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// repairs configures a pool of n workers to repair Nodes that are not Ready or have a deadlock for long.
func (r *rig) repairs(after time.Duration, n int) {
	r.spec.Plan.Min, r.spec.Plan.Max = n, n+3
	for _, c := range [][2]string{{"Ready", "False"}, {"Ready", "Unknown"}, {"KernelDeadlock", "True"}} {
		r.spec.Plan.Repair.Conditions = append(r.spec.Plan.Repair.Conditions,
			plan.UnhealthyCondition{Type: c[0], Status: c[1], After: after})
	}
}

// breakNode stops the kubelet of a node.
func (r *rig) breakNode(names ...string) {
	for _, name := range names {
		n := r.world.nodes[name]
		n.ready, n.stuck, n.changed = false, true, r.clock.now()
	}
}

// recover starts it again.
func (r *rig) recover(name string) {
	n := r.world.nodes[name]
	n.ready, n.stuck, n.conditions, n.changed = true, false, nil, r.clock.now()
}

// repairing is a pool of ten workers whose unhealthy Nodes are repaired after half an hour, and
// that has been observed as healthy.
func repairing(t *testing.T) *rig {
	r := newRig(t)
	r.world.add(10)
	r.spec.Plan.Idle.For = 24 * time.Hour
	r.repairs(30*time.Minute, 10)
	r.tick()
	return r
}

// TestUnhealthyNodesAreRepaired: a worker whose Node has not been Ready for half an hour is drained
// and terminated, whatever blocks its pods, and another has replaced it.
func TestUnhealthyNodesAreRepaired(t *testing.T) {
	r := repairing(t)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"},
		&fakePod{name: "kept", blocks: "is annotated"})
	r.world.nodes["node-i-old0"].ready = false
	began := r.clock.now()
	r.pass(29 * time.Minute)
	require.Zero(t, r.count(journal.EventRepairStarted))
	require.Equal(t, 1, r.world.launches, "its place has been taken before")
	require.Contains(t, r.findings(plan.Broken), "it is repaired at 2026-03-02T09:30:00Z unless it recovers")
	r.until("its repair begins", 2*time.Minute, func() bool { return r.count(journal.EventRepairStarted) == 1 })
	require.GreaterOrEqual(t, r.clock.now().Sub(began), 30*time.Minute)
	require.Len(t, r.record().Repairs, 1)
	r.pass(4 * time.Minute)
	require.Len(t, r.world.nodes["node-i-old0"].pods, 2,
		"budgets and what keeps pods are respected for the time of a drain")
	r.until("it is terminated", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-old0"}, r.world.terminated)
	r.pass(time.Hour)
	require.NotContains(t, r.nodeNames(), "node-i-old0")
	require.Len(t, r.world.nodes, 10)
	require.Equal(t, 1, r.world.launches)
	require.Empty(t, r.record().Repairs)
	require.Equal(t, 1, r.count(journal.EventRepairStarted))
}

// findings returns the messages of the last decision's findings of a kind.
func (r *rig) findings(kind plan.FindingKind) (out string) {
	for _, f := range r.last.Decision.Upkeep.Findings {
		if f.Kind == kind {
			out += f.Message + "\n"
		}
	}
	return out
}

// TestPodsOfADeadKubeletAreNotAwaitedForever: nothing reports that they have ended, and the end of
// their instance ends them.
func TestPodsOfADeadKubeletAreNotAwaitedForever(t *testing.T) {
	r := repairing(t)
	r.load("node-i-old0", &fakePod{name: "x"})
	r.breakNode("node-i-old0")
	r.until("its repair begins", 31*time.Minute, func() bool { return len(r.record().Repairs) == 1 })
	r.until("its drain begins", time.Minute, func() bool { return r.record().Repairs[0].State == state.RemovalDraining })
	began := r.clock.now()
	r.until("it is terminated", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.GreaterOrEqual(t, r.clock.now().Sub(began), r.spec.Drain.Timeout+act.OverdueAfter)
	r.until("its Node is deleted", time.Minute,
		func() bool { return len(r.world.nodes) == 10 && len(r.record().Repairs) == 0 })
	require.NotContains(t, r.nodeNames(), "node-i-old0")
}

// TestNodesThatWorkAreEmptiedBeforeTheirEnd: the pods of one that is Ready and unhealthy by another
// condition are deleted past the time of a drain, and awaited until they end. It is
// replaced at once.
func TestNodesThatWorkAreEmptiedBeforeTheirEnd(t *testing.T) {
	r := repairing(t)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.world.podGrace = time.Hour
	r.world.nodes["node-i-old0"].conditions = unwell
	r.pass(29 * time.Minute)
	require.Zero(t, r.world.launches)
	r.until("it is replaced", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, plan.Unhealthy, r.actions[0])
	r.pass(4 * time.Minute)
	require.Zero(t, r.world.nodes["node-i-old0"].pods[0].leaves, "its budget is respected for the time of a drain")
	r.pass(time.Hour)
	require.Empty(t, r.world.terminated)
	r.until("it is terminated when its pod has ended", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, 10, r.running())
}

// TestPodsOfAKubeletThatAnswersAreWaitedFor: it reports its node as not Ready, and reports when its pods have ended.
func TestPodsOfAKubeletThatAnswersAreWaitedFor(t *testing.T) {
	r := repairing(t)
	r.load("node-i-old0", &fakePod{name: "slow"})
	r.world.podGrace = time.Hour
	r.world.nodes["node-i-old0"].ready, r.world.nodes["node-i-old0"].status = false, corev1.ConditionFalse
	r.until("its drain begins", 35*time.Minute, func() bool {
		return len(r.record().Repairs) == 1 && r.record().Repairs[0].State == state.RemovalDraining
	})
	r.pass(59 * time.Minute)
	require.Empty(t, r.world.terminated)
	r.until("it is terminated", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
}

// TestNothingIsRepairedWhileManyAreUnhealthy: if more than a fifth are at once, the cause is not the nodes.
func TestNothingIsRepairedWhileManyAreUnhealthy(t *testing.T) {
	r := newRig(t)
	r.world.add(14)
	r.repairs(30*time.Minute, 14)
	r.tick()
	r.breakNode("node-i-old0", "node-i-old1", "node-i-old2") // 21%
	r.pass(3 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.count(journal.EventRepairStarted))
	require.Equal(t, 1, r.count(journal.EventRepairHeld))
	require.Contains(t, r.findings(plan.RepairHeld), "3 of 14 nodes are unhealthy")
}

// TestFewNodesAreRepairedAtOnce, to limit the effect of a wrong diagnosis.
func TestFewNodesAreRepairedAtOnce(t *testing.T) {
	r := newRig(t)
	r.world.add(20)
	r.repairs(30*time.Minute, 20)
	r.tick()
	all := []string{"node-i-old0", "node-i-old1", "node-i-old2", "node-i-old3"}
	r.breakNode(all...)
	for _, name := range all {
		r.load(name, &fakePod{name: "x"})
	}
	most := 0
	r.until("all are repaired", 2*time.Hour, func() bool {
		most = max(most, len(r.record().Repairs))
		return len(r.world.terminated) == 4
	})
	require.Equal(t, 2, most)
	require.Zero(t, r.count(journal.EventRepairHeld))
}

// TestNodesThatRecoverAreNotRepaired: neither one that is Ready again in time, nor one that is Ready now and then.
func TestNodesThatRecoverAreNotRepaired(t *testing.T) {
	r := repairing(t)
	for range 8 {
		r.breakNode("node-i-old0")
		r.pass(29 * time.Minute)
		r.recover("node-i-old0")
		r.tick()
	}
	for range 8 { // a moment that no cycle sees is known by the time of the transition
		r.breakNode("node-i-old1")
		r.pass(29 * time.Minute)
		r.recover("node-i-old1")
	}
	r.pass(time.Hour)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.count(journal.EventRepairStarted))
}

// TestClocksDoNotShortenTheTime for which a Node must be unhealthy, and neither does a new process,
// which has not seen it.
func TestClocksDoNotShortenTheTime(t *testing.T) {
	for name, by := range map[string]time.Duration{"behind": -10 * time.Hour, "ahead": 10 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := repairing(t)
			r.breakNode("node-i-old0")
			r.world.nodes["node-i-old0"].changed = r.clock.now().Add(by)
			r.pass(20 * time.Minute)
			r.restart()
			r.pass(29 * time.Minute)
			require.Zero(t, r.count(journal.EventRepairStarted))
			r.until("it is repaired", 5*time.Minute, func() bool { return r.count(journal.EventRepairStarted) == 1 })
		})
	}
}

// TestRepairsGoOn once pods are being evicted, although the node is Ready again; before that it stays.
func TestRepairsGoOn(t *testing.T) {
	for in, goesOn := range map[state.RemovalState]bool{state.RemovalTainted: false, state.RemovalDraining: true} {
		t.Run(string(in), func(t *testing.T) {
			r := repairing(t)
			r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
			r.world.nodes["node-i-old0"].ready = false
			r.until("its repair is there", 35*time.Minute,
				func() bool { return len(r.record().Repairs) == 1 && r.record().Repairs[0].State == in })
			r.recover("node-i-old0")
			r.pass(time.Hour)
			require.Empty(t, r.record().Repairs)
			if goesOn {
				require.Equal(t, []string{"i-old0"}, r.world.terminated)
				return
			}
			require.Empty(t, r.world.terminated)
			require.Equal(t, 1, r.count(journal.EventRepairAborted))
			r.clean()
		})
	}
}

// TestRepairsWaitForObservations: none goes on, and none begins, while the cloud or the cluster
// cannot be read or trusted.
func TestRepairsWaitForObservations(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"the cloud":   func(r *rig) { r.world.listErr = errors.New("down") },
		"the cluster": func(r *rig) { r.world.observeErr = errors.New("down") },
		"most are gone": func(r *rig) {
			r.breakNode("node-i-old1", "node-i-old2", "node-i-old3", "node-i-old4", "node-i-old5")
		},
		"it is a dry run": func(r *rig) { r.spec.DryRun = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := repairing(t)
			r.load("node-i-old0", &fakePod{name: "x"})
			r.breakNode("node-i-old0")
			r.until("its drain has begun", 35*time.Minute, func() bool {
				return len(r.record().Repairs) == 1 && r.record().Repairs[0].State == state.RemovalDraining
			})
			change(r)
			r.pass(time.Hour)
			require.Empty(t, r.world.terminated)
			require.Equal(t, 1, r.count(journal.EventRepairStarted))
		})
	}
}

// TestNodesAreLeftToPeople if a pool is configured so, and in one that is being deleted.
func TestNodesAreLeftToPeople(t *testing.T) {
	r := repairing(t)
	r.spec.Plan.Repair.Disabled = true
	r.breakNode("node-i-old0")
	r.pass(2 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.count(journal.EventRepairStarted)+r.count(journal.EventRepairHeld))
	require.Contains(t, r.findings(plan.Broken), "delete the Node or terminate i-old0 if it is lost")
}

// TestRepairsFreeTheBudget: a permanently broken node would block a roll-out forever.
// Neither pauses nor budgets block a repair.
func TestRepairsFreeTheBudget(t *testing.T) {
	r := repairing(t)
	r.spec.Disruption.Budgets, r.spec.Disruption.Paused = budgets("1"), true
	r.breakNode("node-i-old0")
	r.world.instances["i-old1"].Outdated = "its launch template is old"
	r.until("it is repaired", time.Hour,
		func() bool { return len(r.world.terminated) == 1 && len(r.record().Repairs) == 0 })
	require.Equal(t, []string{"i-old0"}, r.world.terminated)
	r.spec.Disruption.Paused = false
	r.until("the roll-out goes on", time.Hour, func() bool { return len(r.world.terminated) == 2 })
	require.Contains(t, r.world.terminated, "i-old1")
}

// TestInterruptedRepairs are left to the cloud.
func TestInterruptedRepairs(t *testing.T) {
	r := repairing(t)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.world.nodes["node-i-old0"].conditions = unwell
	r.until("its drain has begun", 35*time.Minute, func() bool {
		return len(r.record().Repairs) == 1 && r.record().Repairs[0].State == state.RemovalDraining
	})
	r.take("i-old0")
	r.tick()
	require.Empty(t, r.record().Repairs)
	require.Len(t, r.record().Interruptions, 1)
	r.until("it has gone", 5*time.Minute, func() bool { return len(r.record().Interruptions) == 0 })
	r.pass(10 * time.Minute)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, 10, r.running())
}

// TestRepairsOfInstancesOfOthers end where the cloud refuses, and are tried again later.
func TestRepairsOfInstancesOfOthers(t *testing.T) {
	r := repairing(t)
	r.breakNode("node-i-old0")
	r.world.termErr = refused(provider.NotOwned)
	r.until("it is given up", time.Hour, func() bool { return r.count(journal.EventDrainFailed) == 1 })
	r.pass(50 * time.Minute)
	require.Equal(t, 1, r.count(journal.EventRepairStarted))
	require.Contains(t, r.findings(plan.Broken), "is retried at")
	r.world.termErr = nil
	r.until("it is repaired", 15*time.Minute, func() bool { return len(r.world.terminated) == 1 })
}

// TestInterruptedRepairsAreReplaced if nothing has been launched in their place yet.
func TestInterruptedRepairsAreReplaced(t *testing.T) {
	r := newRig(t)
	r.world.add(10)
	r.repairs(30*time.Minute, 10)
	r.spec.Plan.Min, r.spec.Plan.Idle.For = 0, 24*time.Hour
	offers := r.world.offers
	r.world.offers = nil // nothing can be launched
	r.world.nodes["node-i-old0"].conditions = unwell
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.until("its drain has begun", 35*time.Minute, func() bool {
		return len(r.record().Repairs) == 1 && r.record().Repairs[0].State == state.RemovalDraining
	})
	require.False(t, r.record().Repairs[0].ReplacementSettled)
	r.take("i-old0")
	r.tick()
	require.Len(t, r.record().Interruptions, 1)
	require.Empty(t, r.record().Repairs)
	r.world.offers = offers
	r.until("it is replaced", time.Minute, func() bool { return r.world.launches == 1 })
	r.pass(10 * time.Minute)
	require.Equal(t, 1, r.world.launches)
}
