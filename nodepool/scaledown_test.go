package nodepool

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// idle is a pool with n workers of one zone that needs one.
func idle(t *testing.T, n int) *rig {
	r := newRig(t)
	r.world.add(n)
	r.oneZone()
	r.spec.Plan.Min, r.spec.Plan.Idle.For = 1, time.Minute
	r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest}
	return r
}

// oneZone moves all workers to one zone.
func (r *rig) oneZone() {
	for id, i := range r.world.instances {
		i.Zone = "a"
		r.world.nodes["node-"+id].object.Labels[corev1.LabelTopologyZone] = "a"
	}
}

// removing ticks until the first target is in a state.
func (r *rig) removing(s state.RemovalState) *state.Removal {
	r.Helper()
	var target *state.Removal
	r.until("a target is "+string(s), 30*time.Minute, func() bool {
		if a := r.record().Action; a != nil && len(a.Targets) > 0 && a.Targets[0].State == s {
			target = &a.Targets[0]
		}
		return target != nil
	})
	return target
}

func TestRejectedEvictionsEndTheDrain(t *testing.T) {
	r := idle(t, 3)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "its budget allows none"})
	r.removing(state.RemovalDraining)
	require.True(t, r.world.nodes["node-i-old0"].cordon)
	r.until("the drain is given up", 6*time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 1 })
	r.clean()
	require.Empty(t, r.world.terminated)
	record := r.record()
	require.Nil(t, record.Action)
	require.Zero(t, record.LastDown, "nothing was removed")
	require.Equal(t, act.DrainBackoffMin, record.DrainBackoff["i-old0"].Sub(r.clock.now()).Round(10*time.Second))

	r.until("another one goes", 5*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 2 })
	require.Equal(t, []string{"i-old1"}, r.world.terminated)
}

func TestRetriesBackOff(t *testing.T) {
	r := idle(t, 2)
	r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
	r.load("node-i-old1", &fakePod{name: "y", blocks: "is kept"})
	r.pass(3 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.LessOrEqual(t, r.count(journal.EventDrainFailed), 6)
	require.GreaterOrEqual(t, r.count(journal.EventDrainFailed), 3)
	require.NotContains(t, r.nodeNames(), "")
}

func TestPodThatBlocksAfterThePlan(t *testing.T) {
	r := idle(t, 2)
	r.removing(state.RemovalTainted)
	r.load("node-i-old0", &fakePod{name: "shop/cart", blocks: "has no controller"})
	r.until("the node accepts pods again", time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 1 })
	require.False(t, r.world.nodes["node-i-old0"].cordon)
	require.Empty(t, r.world.terminated)
}

func TestPodsOnTheirWayAreWaitedFor(t *testing.T) {
	r := idle(t, 2)
	r.removing(state.RemovalTainted)
	require.False(t, r.world.nodes["node-i-old0"].cordon)
	r.load("node-i-old0", &fakePod{name: "late"})
	r.until("it is removed", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
}

func TestDrainBeginsWhenNoPodMayArrive(t *testing.T) {
	for name, last := range map[string]time.Duration{"they have nodes soon": 10 * time.Second,
		"some never have one": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 2)
			r.removing(state.RemovalTainted)
			r.world.arriving = true
			tainted := r.clock.now()
			for r.clock.now().Sub(tainted) < min(last, 28*time.Second) {
				r.tick()
				require.False(t, r.world.nodes["node-i-old0"].cordon)
				r.clock.advance(2 * time.Second)
			}
			r.world.arriving = last == time.Hour
			r.until("the empty node goes", 5*time.Second, func() bool { return len(r.world.terminated) == 1 })
		})
	}
}

func TestPodsThatComeToADrainedNode(t *testing.T) {
	r := idle(t, 2)
	r.world.termErr = refused(provider.Throttled)
	r.removing(state.RemovalDrained)
	r.load("node-i-old0", &fakePod{name: "tolerates everything"})
	r.world.termErr = nil
	r.until("it is removed", 2*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, 2, r.count(journal.EventDrained))
}

// If an instance ends with attached volumes, their pods wait for minutes.
func TestVolumesAreDetachedBeforeTheEnd(t *testing.T) {
	r := idle(t, 2)
	r.world.nodes["node-i-old0"].holds = []string{"pv-a", "pv-b"}
	r.removing(state.RemovalDrained)
	r.pass(act.DetachWithin / 2)
	require.Empty(t, r.world.terminated)
	require.Equal(t, "2 volumes are attached, such as pv-a", r.record().Action.Targets[0].Error)
	r.world.nodes["node-i-old0"].holds = nil
	r.until("it goes once they are detached", 5*time.Second, func() bool { return len(r.world.terminated) == 1 })

	r = idle(t, 2)
	r.world.nodes["node-i-old0"].holds = []string{"pv-a"}
	since := r.removing(state.RemovalDrained).Since
	r.until("it goes all the same", 5*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.InDelta(t, act.DetachWithin, r.clock.now().Sub(since), float64(5*time.Second))
}

func TestVolumesOfAnInterruptedNodeAreWaitedForUntilItsDeadline(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.tick()
	r.world.nodes["node-i-old0"].holds = []string{"pv-a"}
	deadline := r.take("i-old0").Deadline
	r.until("it is terminated", 5*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.InDelta(t, 0, r.clock.now().Sub(deadline), float64(5*time.Second))
}

// TestManyNodesAreRemovedInMinutes: several nodes of a batch are drained at once, more and more as it works.
func TestManyNodesAreRemovedInMinutes(t *testing.T) {
	r := idle(t, 101)
	r.spec.Plan.Max, r.spec.Plan.MaxBatchDown = 200, 100
	r.world.podGrace, r.world.leaving = 20*time.Second, 20*time.Second
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "web"})
	}
	r.removing(state.RemovalTainted)
	began, most := r.clock.now(), 0
	r.until("all but one have gone", act.ClearAfter, func() bool {
		emptying := 0
		for _, n := range r.world.nodes {
			if n.mark != "" && len(n.pods) > 0 {
				emptying++
			}
		}
		most = max(most, emptying)
		return r.running() == 1
	})
	require.Equal(t, act.DrainsAtOnce, most)
	t.Logf("100 nodes in %s", r.clock.now().Sub(began))
}

// TestBudgetsHoldFurtherDrains: while a budget blocks pods of one node, no further node is drained.
func TestBudgetsHoldFurtherDrains(t *testing.T) {
	r := idle(t, 8)
	r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.For = 7, 10*time.Second
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "web"})
	}
	held := &fakePod{name: "guarded", refused: "its budget allows none"}
	r.load("node-i-old1", held)
	r.until("one has gone", 5*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	r.pass(2 * time.Minute)
	require.NotEmpty(t, r.world.nodes["node-i-old1"].mark)
	marked := 0
	for _, n := range r.world.nodes {
		if n.mark != "" {
			marked++
		}
	}
	require.Equal(t, 1, marked, "the others that were being drained are gone, and no further one is drained")
	held.refused = ""
	r.until("the others have gone", 5*time.Minute, func() bool { return r.running() == 1 })
}

func TestForceDeletesPastTheTimeout(t *testing.T) {
	r := idle(t, 2)
	r.spec.Drain.Force = true
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "no"})
	began := r.removing(state.RemovalDraining).Began
	r.until("it is removed", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.InDelta(t, r.spec.Drain.Timeout, r.clock.now().Sub(began), float64(10*time.Second))
}

// TestForceDeletesWhatBlocksANodeThatMustGo: with drain.force neither an exhausted budget nor a pod of kube-system
// keeps an instance that AWS retires, or one above the maximum, for longer than the timeout. It deletes no such pod
// to save money.
func TestForceDeletesWhatBlocksANodeThatMustGo(t *testing.T) {
	pods := map[string]*fakePod{
		"exhausted budget": {name: "shop/db", refused: "its budget allows none",
			blocks: "is covered by the PodDisruptionBudget db, which allows no disruption now"},
		"kube-system": {name: "kube-system/dns", blocks: "is in kube-system and not of a DaemonSet"},
	}
	reasons := map[string]func(*rig){
		"retired": func(r *rig) {
			r.world.instances["i-old0"].Outdated = "AWS has scheduled instance-retirement of it"
		},
		"above maximum": func(r *rig) { r.spec.Plan.Max = 1 },
		"deleted":       func(r *rig) { r.spec.Plan.Deleting, r.spec.Plan.Min = true, 0 },
		"idle":          func(r *rig) { r.spec.Plan.Idle.For = time.Minute },
	}
	for reason, change := range reasons {
		for what, pod := range pods {
			for _, force := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, force %t", reason, what, force), func(t *testing.T) {
					r := idle(t, 2)
					r.spec.Plan.Idle.For, r.spec.Drain.Force = 24*time.Hour, force
					for _, name := range r.nodeNames() {
						one := *pod
						r.load(name, &one)
					}
					change(r)
					r.pass(20 * time.Minute)
					require.Equal(t, force && reason != "idle", slices.Contains(r.world.terminated, "i-old0"), r.last.Decision.Message)
				})
			}
		}
	}
}

// TestForceOutlastsSlowEvictions: the timeout passes during evictions. The drain continues, and
// deletes the remaining pods.
func TestForceOutlastsSlowEvictions(t *testing.T) {
	r := idle(t, 2)
	r.spec.Drain.Force, r.spec.Drain.Timeout = true, 2*time.Second
	r.world.evictTakes = 3 * time.Second
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "no"})
	r.removing(state.RemovalDraining)
	r.until("it is removed", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Zero(t, r.count(journal.EventDrainFailed))
}

func TestInstancesOfOthersAreLeftAlone(t *testing.T) {
	r := idle(t, 2)
	r.world.termErr = refused(provider.NotOwned)
	r.until("the node accepts pods again", 5*time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 1 })
	r.until("the action is over", time.Minute, func() bool { return r.record().Action == nil })
	r.clean()
}

func TestStuckScaleDownIsCleared(t *testing.T) {
	r := idle(t, 2)
	r.world.termErr = refused(provider.Unknown)
	started := r.removing(state.RemovalDrained).Since
	r.until("it is cleared", act.ClearAfter+time.Minute, func() bool { return r.record().Action == nil })
	require.InDelta(t, act.ClearAfter, r.clock.now().Sub(started), float64(time.Minute))
	r.clean()
	require.Zero(t, r.record().LastDown)
}

// TestALongScaleDownIsNotCleared: one that proceeds, node by node, may take longer than one that is stuck.
func TestALongScaleDownIsNotCleared(t *testing.T) {
	r := idle(t, 40)
	r.spec.Plan.Max, r.spec.Plan.MaxBatchDown = 40, 39
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "slow", refused: "its budget allows none yet"})
	}
	r.removing(state.RemovalDraining)
	began := r.clock.now()
	r.until("all are removed", time.Hour, func() bool {
		if a := r.record().Action; a != nil {
			for _, target := range a.Targets {
				if target.State == state.RemovalDraining && r.clock.now().Sub(target.Began) > 4*time.Minute {
					r.world.nodes[target.Node].pods = nil
				}
			}
		}
		return r.running() == 1 && r.record().Action == nil
	})
	require.Greater(t, r.clock.now().Sub(began), act.ClearAfter)
	require.Equal(t, 1, r.count(journal.EventScaleDownStarted))
	require.Zero(t, r.count(journal.EventScaleDownAborted))
}

// TestLongDrainsAreNotCleared: drain.timeout may be longer than the time after which a scale-down is given up by
// default.
func TestLongDrainsAreNotCleared(t *testing.T) {
	r := idle(t, 2)
	r.spec.Drain.Timeout = 40 * time.Minute
	slow := &fakePod{name: "slow", refused: "for half an hour"}
	r.load("node-i-old0", slow, &fakePod{name: "web"})
	r.removing(state.RemovalDraining)
	r.pass(30 * time.Minute)
	slow.refused = ""
	r.until("the node goes", time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Zero(t, r.count(journal.EventScaleDownAborted))
}

// TestPodsThatEndSlowlyAreAwaited: a drain whose pods have all been evicted is not given up while they end.
func TestPodsThatEndSlowlyAreAwaited(t *testing.T) {
	r := idle(t, 2)
	r.world.podGrace = r.spec.Drain.Timeout + 3*time.Minute
	r.load("node-i-old0", &fakePod{name: "slow"})
	r.removing(state.RemovalDraining)
	r.until("the node goes", 10*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Zero(t, r.count(journal.EventDrainFailed))
}

func TestScaleDownIsForgottenIfNothingWorks(t *testing.T) {
	r := idle(t, 2)
	r.removing(state.RemovalTainted)
	r.world.drainErr = errors.New("refused by a webhook")
	r.until("it is over", act.ClearAfter+act.DropMargin+time.Minute, func() bool { return r.record().Action == nil })
	r.world.drainErr = nil
	r.spec.Plan.Idle.For = time.Hour
	r.until("the mark is found", time.Minute, func() bool { return r.count(journal.EventRestored) == 1 })
	r.clean()
}

func TestUrgentScaleUpEndsScaleDown(t *testing.T) {
	r := idle(t, 4)
	r.spec.Plan.MaxBatchDown = 2
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "no"}, &fakePod{name: "web"})
	r.removing(state.RemovalDraining)
	r.spec.Plan.Min = 4
	r.until("it is given up", 10*time.Second, func() bool { return r.record().Action == nil })
	r.clean()
	require.Empty(t, r.world.terminated)
	require.Len(t, r.record().DrainBackoff, 1, "its pods have been asked to leave for nothing")
	r.pass(time.Minute)
	require.Zero(t, r.world.launches, "the workers that were given back are enough")
}

func TestPendingPodsEndScaleDown(t *testing.T) {
	r := idle(t, 3)
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "no"})
	r.removing(state.RemovalDraining)
	r.pend(1)
	r.until("it is given up", time.Minute, func() bool { return r.record().Action == nil })
	r.clean()
	require.Empty(t, r.world.terminated)
}

// A node whose pods were evicted without effect is left alone, for twice as long each time.
func TestNodesWithFutileEvictionsAreLeftAlone(t *testing.T) {
	r := idle(t, 2)
	r.spec.Plan.CooldownDown = 0
	r.load("node-i-old0", &fakePod{name: "guarded", refused: "no"})
	r.load("node-i-old1", &fakePod{name: "kept", blocks: "its annotation says so"})
	for i, wait := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		r.load("node-i-old0", &fakePod{name: fmt.Sprint("web-", i)})
		r.removing(state.RemovalDraining)
		r.pend(1)
		r.until("it is given up", time.Minute, func() bool { return r.record().Action == nil })
		at := r.clock.now()
		r.world.pending = nil
		r.until("it is tried again", 2*time.Hour, func() bool { return r.record().Action != nil })
		require.InDelta(t, wait, r.clock.now().Sub(at), float64(2*time.Minute))
	}
}

func TestDrainedTargetIsFinishedAllTheSame(t *testing.T) {
	r := idle(t, 3)
	r.world.termErr = refused(provider.Throttled)
	r.removing(state.RemovalDrained)
	r.spec.Plan.Min, r.world.termErr = 3, nil
	r.until("it is terminated", 10*time.Second, func() bool { return len(r.world.terminated) == 1 })
	r.until("and replaced", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.Equal(t, 3, r.running())
}

// Targets that were not drained yet stay if the cluster has changed.
func TestPlannedTargetsAreCheckedAgain(t *testing.T) {
	known := plan.Signal{Name: "cpu", Known: true, Threshold: 0.7, CPU: true, Now: 0.1}
	for name, c := range map[string]struct {
		change func(*plan.Signal)
		min    int
	}{
		"not known any more":   {func(s *plan.Signal) { s.Known, s.Err = false, "the server is down" }, 1},
		"not idle any more":    {func(s *plan.Signal) { s.Now = 0.5 }, 1},
		"more load to carry":   {func(s *plan.Signal) { s.Fits = 4 }, 1},
		"more are recommended": {func(s *plan.Signal) { s.Desired = 4 }, 1},
		"the minimum is more":  {func(*plan.Signal) {}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 5)
			r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.CPU = 3, 0.3
			signal := known
			r.signals.signals = []plan.Signal{signal}
			r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
			r.removing(state.RemovalDraining)
			require.Len(t, r.record().Action.Targets, 3)
			c.change(&signal)
			r.signals.signals, r.spec.Plan.Min = []plan.Signal{signal}, c.min
			r.world.nodes["node-i-old0"].pods = nil
			r.until("it is over", time.Minute, func() bool { return r.record().Action == nil })
			require.LessOrEqual(t, len(r.world.terminated), 1)
			require.NotContains(t, r.world.terminated, "i-old1")
			r.ends()
			r.clean()
		})
	}
}

// A termination that the cloud rejects permanently is not repeated.
func TestRejectedTerminations(t *testing.T) {
	for _, class := range []provider.Class{provider.Invalid, provider.Unknown} {
		r := idle(t, 3)
		r.world.termErr = refused(class)
		r.pass(4 * time.Hour)
		begun := r.count(journal.EventScaleDownStarted)
		require.Positive(t, begun)
		require.LessOrEqual(t, begun, 3*4, class, "each once an hour")
		require.Len(t, r.record().FailedDrains, 3, class)
		r.restart()
		r.pass(time.Hour)
		require.LessOrEqual(t, r.count(journal.EventScaleDownStarted), begun+4, "another process knows how often")
	}
}

func TestLastOfAZoneStays(t *testing.T) {
	r := newRig(t)
	r.world.add(4)
	r.spec.Plan.Min, r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.For = 2, 2, time.Minute
	r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest}
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	require.Equal(t, "i-old1", r.record().Action.Targets[1].InstanceID)
	r.world.nodes["node-i-old3"].ready = false
	r.world.nodes["node-i-old0"].pods = nil
	r.until("the scale-down is over", time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	require.Equal(t, []string{"i-old0"}, r.world.terminated)
	r.ends()
	r.clean()
}

func TestUnknownStateWaits(t *testing.T) {
	for name, blind := range map[string]func(*rig, error){
		"cloud":   func(r *rig, err error) { r.world.listErr = err },
		"cluster": func(r *rig, err error) { r.world.observeErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			r := idle(t, 3)
			r.removing(state.RemovalTainted)
			blind(r, errors.New("down"))
			r.pass(10 * time.Minute)
			require.Error(t, r.health)
			require.Empty(t, r.world.terminated)
			require.Equal(t, state.RemovalTainted, r.record().Action.Targets[0].State)
			blind(r, nil)
			r.until("it goes on", time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
			require.NoError(t, r.health)
		})
	}
}

func TestTooManyUnreadyWaits(t *testing.T) {
	r := idle(t, 8)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	for _, name := range []string{"node-i-old3", "node-i-old4", "node-i-old5", "node-i-old6"} {
		r.world.nodes[name].ready = false
	}
	r.world.nodes["node-i-old0"].pods = nil
	r.pass(time.Minute)
	require.Equal(t, state.RemovalDraining, r.record().Action.Targets[0].State)
	for _, n := range r.world.nodes {
		n.ready = true
	}
	r.until("it goes on", time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
}

// TestTerminatedWorkersDoNotCountAgain: a terminated instance is gone once the cloud stops listing
// it, even if it was never listed as terminating.
func TestTerminatedWorkersDoNotCountAgain(t *testing.T) {
	r := idle(t, 3)
	r.world.leaving = 0
	for _, i := range r.world.instances {
		i.Launched = r.clock.now() // so lately that lists may not have it yet
	}
	r.until("one is removed", 90*time.Second, func() bool { return r.count(journal.EventScaledDown) == 1 })
	r.tick()
	r.tick()
	require.Equal(t, 2, r.last.Decision.Workers)
}

func TestTargetThatIsTerminatedByHand(t *testing.T) {
	r := idle(t, 2)
	r.load("node-i-old0", &fakePod{name: "slow", refused: "for now"})
	r.removing(state.RemovalDraining)
	r.world.instances["i-old0"].endedAt = r.clock.now()
	r.until("it is over", 3*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	r.ends()
	require.Equal(t, []string{"node-i-old1"}, r.nodeNames())
	require.Empty(t, r.world.terminated, "nothing is terminated that is not listed")
}

func TestNodeDeletedByHand(t *testing.T) {
	r := idle(t, 2)
	r.removing(state.RemovalTainted)
	delete(r.world.nodes, "node-i-old0")
	r.until("the drain is given up", time.Minute, func() bool { return r.count(journal.EventDrainFailed) == 1 })
	require.Empty(t, r.world.terminated)
}

func TestWorkerTerminatedByHandIsReplacedAndItsNodeDeleted(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.Plan.Min = 2
	r.tick()
	require.Equal(t, "workers", r.world.nodes["node-i-old0"].object.Labels[cluster.LabelPool])
	r.restart() // the label outlives the process
	r.clock.advance(journal.LeaseTerm)
	r.world.instances["i-old0"].endedAt = r.clock.now()
	delete(r.world.instances, "i-old0")
	r.world.nodes["node-i-old0"].ready = false
	r.tick()
	r.clock.advance(journal.LeaseTerm)
	r.until("another joins", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	r.until("its Node is deleted", 3*time.Minute, func() bool { return r.count(journal.EventNodeDeleted) == 1 })
	require.Equal(t, []string{"node-i-1", "node-i-old1"}, r.nodeNames())
}

func TestWorkerThatIsNotListedForAMoment(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	r.spec.Plan.Min = 2
	r.tick()
	hidden := r.world.instances["i-old0"]
	delete(r.world.instances, "i-old0")
	r.pass(time.Minute)
	r.world.instances["i-old0"] = hidden
	r.pass(5 * time.Minute)
	require.Zero(t, r.world.launches)
	require.Zero(t, r.count(journal.EventNodeDeleted))
}

func TestOrphans(t *testing.T) {
	r := newRig(t)
	r.tick()
	place := fleet.Placement{Zone: "a", InstanceType: "t3.medium", Market: fleet.Spot}
	add := func(id, action string) {
		r.world.instances[id] = &fakeInstance{joined: true, Instance: fleet.Instance{
			ID: id, ProviderID: "fake:///" + id, Action: action, State: fleet.Running, Launched: r.clock.now(), Placement: place,
		}}
	}
	add("i-orphan", "up-1")
	add("i-by-hand", "")
	r.pass(r.spec.Join.Timeout)
	require.Empty(t, r.world.terminated)
	var pendingTermination bool
	r.world.termErr = errors.New("not yet")
	r.until("its termination is pending", 5*time.Minute,
		func() bool { pendingTermination = len(r.record().PendingTerminations) == 1; return pendingTermination })
	require.Empty(t, r.world.terminated)
	r.world.termErr = nil
	r.until("it is terminated", time.Minute, func() bool { return len(r.world.terminated) == 1 })
	require.Equal(t, []string{"i-orphan"}, r.world.terminated)
	r.until("it is forgotten", 5*time.Minute, func() bool { return len(r.record().PendingTerminations) == 0 })
}

func TestNodeWithAStrangeProviderIDKeepsInstances(t *testing.T) {
	r := wanting(t, 1)
	r.world.joins = func(provider.Launch) bool { return false }
	r.tick()
	r.clock.advance(time.Second)
	r.world.addNode(&fakeInstance{Instance: fleet.Instance{ID: "x", ProviderID: "k3s://x"}}, r.clock.now())
	r.pass(time.Hour)
	require.NotContains(t, r.world.terminated, "i-1")
	require.ErrorContains(t, r.health, "node node-x may be its")
}

func TestControlPlaneIsNoWorker(t *testing.T) {
	r := idle(t, 3)
	r.world.nodes["node-i-old0"].object.Labels["node-role.kubernetes.io/control-plane"] = ""
	r.pass(2 * time.Hour)
	require.Contains(t, r.nodeNames(), "node-i-old0")
	require.NotContains(t, r.world.terminated, "i-old0")
	require.Equal(t, 1, r.last.Decision.Workers)
}

func TestNodeThatIsDeletedForAMoment(t *testing.T) {
	r := wanting(t, 1)
	r.until("it has joined", 3*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	r.pass(time.Hour)
	node := r.world.nodes["node-i-1"]
	delete(r.world.nodes, "node-i-1")
	r.pass(time.Minute)
	r.world.nodes["node-i-1"] = node
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Empty(t, r.world.terminated)
}

func TestNodesOfOthersAreLeftAsTheyAre(t *testing.T) {
	r := newRig(t)
	r.world.add(1)
	r.tick()
	r.world.addNode(&fakeInstance{Instance: fleet.Instance{ID: "other", ProviderID: "fake:///other"}}, r.clock.now())
	other := r.world.nodes["node-other"]
	other.mark, other.cordon, other.ready = "down-of-another-pool", true, false
	other.object.Labels[cluster.LabelPool] = "others"
	mine := r.world.nodes["node-i-old0"]
	mine.mark, mine.cordon = "down-that-is-over", true
	r.pass(time.Hour)
	require.Equal(t, "down-of-another-pool", other.mark)
	require.True(t, other.cordon)
	require.Same(t, other, r.world.nodes["node-other"])
	require.Equal(t, "others", other.object.Labels[cluster.LabelPool])
	require.Empty(t, mine.mark)
	require.False(t, mine.cordon)
}

// replica is a pod on a node, with anti-affinity to others like it.
func replica(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	p.Spec.NodeName = node
	terms := []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelHostname,
	}}
	p.Spec.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	p.Status.Phase = corev1.PodRunning
	return p
}

// Removing the node of such a pod would lead to another launch for it, and so on forever.
func TestNodesWhosePodsHaveNoOtherStay(t *testing.T) {
	r := idle(t, 3)
	for i, n := range r.nodeNames() {
		r.world.nodes[n].object.Labels[corev1.LabelHostname] = n
		r.world.objects = append(r.world.objects, replica(fmt.Sprint("web-", i), n))
	}
	r.pass(12 * time.Hour)
	require.Empty(t, r.world.terminated)
	require.Zero(t, r.world.launches)
	require.Equal(t, plan.NoRemovableNode, r.last.Decision.Reason, r.last.Decision.Message)
	require.Contains(t, r.last.Decision.Message, "no other node could run its pod shop/web-0")

	r.world.objects = r.world.objects[1:]
	r.until("the node without one goes", 30*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	require.Equal(t, []string{"i-old0"}, r.world.terminated)
	r.pass(time.Hour)
	require.Len(t, r.world.terminated, 1)
}

// The state at the start of the scale-down may have changed when a target's turn comes.
func TestTargetsWhosePodsHaveNoOtherNodeAnyMoreStay(t *testing.T) {
	r := idle(t, 4)
	r.spec.Plan.MaxBatchDown = 2
	for _, n := range r.nodeNames() {
		r.world.nodes[n].object.Labels[corev1.LabelHostname] = n
	}
	r.world.objects = append(r.world.objects, replica("web-0", "node-i-old2"))
	r.load("node-i-old0", &fakePod{name: "slow"})
	r.world.podGrace = time.Minute
	r.removing(state.RemovalDraining)
	require.Len(t, r.record().Action.Targets, 2)
	r.world.objects = append(r.world.objects, replica("web-1", "node-i-old1"), replica("web-3", "node-i-old3"))
	r.until("the first target goes, and the second stays", 10*time.Minute,
		func() bool { return r.count(journal.EventScaledDown) == 1 })
	require.Equal(t, []string{"i-old0"}, r.world.terminated)
	require.Equal(t, 1, r.count(journal.EventScaleDownAborted))
}
