package nodepool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// budgets allow some nodes to be disrupted at once.
func budgets(nodes string) config.Budgets {
	return config.ParseBudgets([]v1alpha1.DisruptionBudget{{Nodes: intstr.Parse(nodes)}})
}

// busy is a pool of n workers in two zones that needs them all.
func busy(t *testing.T, n int) *rig {
	r := newRig(t)
	r.world.add(n)
	r.spec.Plan.Min, r.spec.Plan.Max, r.spec.Plan.MaxBatchUp = 1, 2*n, 0
	r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Now: 0.6, Predicted: 0.6,
		Threshold: 0.7, Desired: n, Fits: n, Needs: n}}
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "web"})
	}
	return r
}

// ages gives all instances an old launch template.
func (r *rig) ages() {
	for _, i := range r.world.instances {
		i.Outdated = "its launch template is old"
	}
}

// left counts the outdated instances.
func (r *rig) left() (n int) {
	for _, i := range r.world.instances {
		if i.Outdated != "" && i.endedAt.IsZero() {
			n++
		}
	}
	return n
}

// TestRollOutReplacesAll: all outdated instances are replaced, never more at once than the budget allows, and never are
// there fewer workers than before.
func TestRollOutReplacesAll(t *testing.T) {
	for nodes, most := range map[string]int{"1": 1, "10%": 2, "5": 5} {
		t.Run(nodes, func(t *testing.T) {
			r := busy(t, 20)
			r.spec.Disruption.Budgets = budgets(nodes)
			r.ages()
			began := r.clock.now()
			r.until("all are replaced", 3*time.Hour, func() bool {
				if len(r.cycles) > 0 {
					require.LessOrEqual(t, r.left(), r.last.Decision.Rollout.Outdated, "what is being drained is not replaced yet")
				}
				marked := 0
				for _, n := range r.world.nodes {
					if n.mark != "" {
						marked++
					}
				}
				require.LessOrEqual(t, marked, most)
				require.GreaterOrEqual(t, r.running(), 20)
				require.LessOrEqual(t, r.running(), 20+most)
				return r.left() == 0 && r.record().Action == nil
			})
			t.Logf("20 nodes in %s", r.clock.now().Sub(began))
			r.pass(10 * time.Minute)
			require.Equal(t, 20, r.running())
			require.Equal(t, 20, r.world.launches)
			require.Zero(t, r.last.Decision.Rollout)
			r.clean()
		})
	}
}

// TestExpiredWorkersAreReplaced, and none that is younger.
func TestExpiredWorkersAreReplaced(t *testing.T) {
	r := busy(t, 3)
	r.spec.Disruption.ExpireAfter = 25 * time.Hour
	r.pass(30 * time.Minute)
	require.Zero(t, r.world.launches, "they are 24 hours old")
	r.until("all are replaced", 3*time.Hour, func() bool { return len(r.world.terminated) == 3 })
	r.pass(2 * time.Hour)
	require.Equal(t, 3, r.world.launches)
}

// TestRestartReplacesWhatIsOlder: instances launched before a time are replaced once it has come.
func TestRestartReplacesWhatIsOlder(t *testing.T) {
	r := busy(t, 3)
	r.spec.Disruption.ReplaceBefore = r.clock.now().Add(time.Hour)
	r.pass(50 * time.Minute)
	require.Zero(t, r.world.launches, "it has not come")
	r.until("all are replaced", 3*time.Hour, func() bool { return len(r.world.terminated) == 3 })
	r.pass(2 * time.Hour)
	require.Equal(t, 3, r.world.launches)
	require.Equal(t, 3, r.running())
}

// TestRestartCountsWorkersOnTheirWay: an instance that was launched before a restart is outdated
// before its Node has joined.
func TestRestartCountsWorkersOnTheirWay(t *testing.T) {
	r := busy(t, 2)
	r.spec.Disruption.Paused = true
	r.signals.signals[0].Desired, r.signals.signals[0].Fits, r.signals.signals[0].Needs = 3, 3, 3
	r.until("one is launched", time.Minute, func() bool { return r.world.launches == 1 })
	require.Len(t, r.world.nodes, 2, "it has not joined")
	r.clock.advance(time.Second)
	r.spec.Disruption.ReplaceBefore = r.clock.now()
	r.tick()
	require.Len(t, r.world.nodes, 2, "it has not joined")
	require.Equal(t, 3, r.last.Decision.Rollout.Outdated)
}

// TestReportsAreOfTheSpecTheyFollow: reports have the generation of the spec that the cycle read.
func TestReportsAreOfTheSpecTheyFollow(t *testing.T) {
	r := busy(t, 2)
	r.spec.Generation = 7
	r.tick()
	require.EqualValues(t, 7, r.last.Generation)
}

// TestPauseGivesNodesBack: during a pause nothing is disrupted, and nodes that are not empty yet are uncordoned.
func TestPauseGivesNodesBack(t *testing.T) {
	r := busy(t, 4)
	r.spec.Disruption.Budgets = budgets("1")
	r.ages()
	held := &fakePod{name: "slow", refused: "its budget allows none"}
	for _, name := range r.nodeNames() {
		r.load(name, held)
	}
	r.until("one is being emptied", 10*time.Minute, func() bool {
		a := r.record().Action
		return a != nil && len(a.Targets) > 0 && a.Targets[0].State == "Draining"
	})
	r.spec.Disruption.Paused = true
	r.pass(time.Minute)
	r.clean()
	require.Nil(t, r.record().Action)
	require.Empty(t, r.world.terminated)
	require.Equal(t, plan.Rollout{Outdated: 4, Message: "disruption is paused"}, r.last.Decision.Rollout)

	held.refused = ""
	r.spec.Disruption.Paused = false
	r.until("all are replaced", 2*time.Hour, func() bool { return r.left() == 0 })
}

// TestBudgetsThatCannotBeReadAllowNothing.
func TestBudgetsThatCannotBeReadAllowNothing(t *testing.T) {
	r := busy(t, 2)
	r.ages()
	r.spec.Disruption.Budgets = budgets("many")
	r.pass(10 * time.Minute)
	require.Zero(t, r.world.launches)
	require.ErrorContains(t, r.health, "spec.disruption.budgets[0].nodes")
	require.Contains(t, r.last.Decision.Rollout.Message, "spec.disruption.budgets[0].nodes")
}

// TestRollOutOfBlockedNodes launches nothing.
func TestRollOutOfBlockedNodes(t *testing.T) {
	r := busy(t, 3)
	r.ages()
	for n := range 3 {
		r.load(fmt.Sprint("node-i-old", n), &fakePod{name: "job", blocks: "its annotation says so"})
	}
	r.pass(time.Hour)
	require.Zero(t, r.world.launches)
	require.Equal(t, "no worker can be removed, such as node-i-old0: its annotation says so",
		r.last.Decision.Rollout.Message)
}

// TestRollOutUnderALevel: a signal that recommends the existing number, whatever it is, ends with
// the same number as before, whichever process continues.
func TestRollOutUnderALevel(t *testing.T) {
	for _, nodes := range []string{"1", "2", "5"} {
		t.Run(nodes, func(t *testing.T) {
			r := busy(t, 10)
			r.signals.level, r.spec.Disruption.Budgets = true, budgets(nodes)
			r.ages()
			cycles := 0
			r.until("all are replaced", 3*time.Hour, func() bool {
				if cycles++; cycles%50 == 0 {
					r.clock.advance(journal.LeaseTerm)
					r.restart()
				}
				require.GreaterOrEqual(t, r.running(), 10)
				return r.left() == 0 && r.record().Action == nil
			})
			r.pass(10 * time.Minute)
			require.Equal(t, 10, r.running())
			require.Equal(t, 10, r.world.launches)
			require.Zero(t, r.record().WorkersBeforeRollout)
			r.clean()
		})
	}
}

// TestRollOutStartsNoCooldown: pods that appear during a roll-out get their nodes at once, even in its open scale-up.
func TestRollOutStartsNoCooldown(t *testing.T) {
	r := busy(t, 6)
	r.spec.Plan.CooldownUp = time.Hour
	r.ages()
	r.until("some are replaced", time.Hour, func() bool { return len(r.world.terminated) > 1 && r.record().Action == nil })
	require.Zero(t, r.record().LastUp)
	require.Zero(t, r.record().LastDown)
	require.NotZero(t, r.record().LastSwap)
	r.pend(1)
	r.until("a node is launched", 2*time.Minute, func() bool {
		a := r.record().Action
		return a != nil && a.Kind == state.ActionUp &&
			slices.ContainsFunc(a.Slots, func(s state.Slot) bool { return !s.Outdated })
	})
	r.world.pending = nil
	r.until("it has joined", 10*time.Minute, func() bool { return !r.record().LastUp.IsZero() })
}

// TestReplacementsStayInTheirZone: the launch after a capacity error replaces the same worker.
func TestReplacementsStayInTheirZone(t *testing.T) {
	r := busy(t, 4)
	r.spec.Plan.Min = 4
	r.spec.Plan.SpotRatio = 1
	r.ages()
	r.world.instances["i-old0"].Zone = "a"
	for _, id := range []string{"i-old1", "i-old2", "i-old3"} {
		r.world.instances[id].Zone = "b"
	}
	tries := 0
	r.world.capacity = func(l provider.Launch) error {
		if l.Zone == "a" && tries < 4 {
			tries++
			return refused(provider.Capacity)
		}
		return nil
	}
	r.until("all are replaced", 3*time.Hour, func() bool { return r.left() == 0 && r.record().Action == nil })
	r.pass(time.Minute)
	require.Equal(t, 4, r.world.launches)
	zones := map[string]int{}
	for _, i := range r.world.instances {
		if i.endedAt.IsZero() {
			zones[i.Zone]++
		}
	}
	require.Equal(t, map[string]int{"a": 1, "b": 3}, zones)
}

// TestBudgetsHoldForEachTarget: a target that a budget no longer allows when its turn comes does not begin.
func TestBudgetsHoldForEachTarget(t *testing.T) {
	r := busy(t, 8)
	r.spec.Disruption.Budgets = budgets("4")
	r.ages()
	held := &fakePod{name: "slow", refused: "its budget allows none"}
	for _, name := range r.nodeNames() {
		r.load(name, held)
	}
	r.until("one of several is being emptied", 10*time.Minute, func() bool {
		a := r.record().Action
		return a != nil && len(a.Targets) == 4 && a.Targets[0].State == state.RemovalDraining
	})
	var marked []string
	for name, n := range r.world.nodes {
		if n.mark != "" {
			marked = append(marked, name)
		}
	}
	r.spec.Disruption.Budgets = budgets("1")
	held.refused = ""
	r.until("the action is over", 10*time.Minute, func() bool {
		for name, n := range r.world.nodes {
			require.True(t, n.mark == "" || slices.Contains(marked, name), "%s is begun", name)
		}
		return r.record().Action == nil
	})
	require.Len(t, r.world.terminated, len(marked))
	require.Less(t, len(marked), 4)
	r.until("all are replaced", time.Hour, func() bool { return r.left() == 0 && r.record().Action == nil })
}

// TestUnmovableNodesHoldUpNoOthers: more nodes than a decision simulates have pods that can run nowhere else.
func TestUnmovableNodesHoldUpNoOthers(t *testing.T) {
	r := busy(t, 40)
	r.spec.Plan.RemovalOrder = []plan.Scorer{plan.Oldest} // in the order of their numbers
	r.ages()
	for k := range 36 {
		id := fmt.Sprint("i-old", k)
		n := r.world.nodes["node-"+id]
		n.object.Labels[corev1.LabelHostname] = "node-" + id
		p := replica(fmt.Sprint("web-", k), "node-"+id)
		p.Spec.Affinity, p.Spec.NodeSelector = nil, map[string]string{corev1.LabelHostname: "node-" + id}
		r.world.objects = append(r.world.objects, p)
	}
	r.until("the others are replaced", time.Hour, func() bool { return r.left() == 36 && r.record().Action == nil })
	r.pass(12 * time.Minute)
	require.Equal(t, 36, r.left())
	require.Equal(t, 4, r.world.launches)
	require.Contains(t, r.last.Decision.Rollout.Message, "no other node could run its pod shop/web-")
}
