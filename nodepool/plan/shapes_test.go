package plan_test

import (
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/plan"
)

// only is n nodes that must be of one type in one zone.
func only(zone, instanceType string, n int) fleet.Shape {
	return fleet.Shape{Kinds: []fleet.Kind{{Zone: zone, InstanceType: instanceType}}, Nodes: n}
}

// Nodes that pods need to have a shape come first, and are not replaced by others where the recommendation counts them.
func TestShapesComeFirst(t *testing.T) {
	cooling := func(zone string) []fleet.Cooling {
		return []fleet.Cooling{{Zone: zone, Until: noon.Add(time.Minute)}}
	}
	for _, c := range []struct {
		name   string
		change func(*plan.Snapshot)
		want   []string
		pinned int
	}{
		{"pods", func(s *plan.Snapshot) { s.Pending.Shapes = []fleet.Shape{only("b", "t3.large", 1)} },
			[]string{"b t3.large OnDemand", "a t3.medium OnDemand"}, 1},
		{"pods, and what others that are not due need",
			func(s *plan.Snapshot) { s.Pending.Later = []fleet.Shape{only("b", "t3.large", 1)} },
			[]string{"a t3.medium OnDemand", "b t3.medium OnDemand"}, 0},
		{"what pods need cannot be launched: the others get theirs", func(s *plan.Snapshot) {
			s.Pending.Shapes, s.Record.Cooling = []fleet.Shape{only("b", "t3.large", 1)}, cooling("b")
		}, []string{"a t3.medium OnDemand"}, 0},
		{"more than a batch cannot be launched: the others get theirs", func(s *plan.Snapshot) {
			s.Pending.Nodes, s.Pending.Shapes, s.Record.Cooling = 6, []fleet.Shape{only("b", "t3.large", 4)}, cooling("b")
		}, []string{"a t3.medium OnDemand", "a t3.medium OnDemand"}, 0},
		{"nothing that they need can be launched", func(s *plan.Snapshot) {
			s.Pending.Shapes, s.Record.Cooling = []fleet.Shape{only("b", "t3.large", 2)}, cooling("b")
		}, nil, 0},
		{"a signal that counts pods, and what all of these need", func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, 10*time.Minute)
			s.Signals[0].WithPending = true
			s.Pending.Shapes, s.Pending.Later = []fleet.Shape{only("b", "t3.large", 1)}, []fleet.Shape{only("a", "t3.large", 1)}
		}, []string{"b t3.large OnDemand", "a t3.large OnDemand"}, 2},
		{"a signal that does not count pods is not held up by them", func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, 10*time.Minute)
			s.Pending.Shapes, s.Record.Cooling = []fleet.Shape{only("b", "t3.large", 2)}, cooling("b")
		}, []string{"a t3.medium OnDemand", "a t3.medium OnDemand"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := steady()
			s.Pool.SpotRatio = 0
			pends(&s, 20)
			c.change(&s)
			d := plan.Decide(s)
			assert.Equal(t, c.want, places(d.Placements), d.Message)
			assert.Equal(t, c.pinned, d.Pinned)
			if c.want == nil {
				assert.Equal(t, plan.InsufficientCapacity, d.Reason)
				assert.Contains(t, d.Message, "every kind of instance that the pending pods could run on is cooling")
			}
		})
	}
}

// What takes the place of a failed node is something that the same pods can run on.
func TestInstead(t *testing.T) {
	s := steady()
	s.Pool.SpotRatio = 0
	failed := fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3.large", Market: fleet.OnDemand}
	s.Pending.Shapes = []fleet.Shape{only("b", "t3.medium", 1),
		{Kinds: []fleet.Kind{{Zone: "a", InstanceType: "t3.large"}, {Zone: "b", InstanceType: "t3.large"}}, Nodes: 1}}
	instead := func(l state.Slot) []string {
		l.Number, l.Placement = 4, failed
		s.Record.Action = opened(state.ActionUp, l)
		var out []fleet.Placement
		for _, one := range plan.Decide(s).Substitutes {
			assert.Equal(t, 4, one.Slot)
			out = append(out, one.Placement)
		}
		return places(out)
	}
	assert.Equal(t, []string{"b t3.large OnDemand"}, instead(lost(state.Slot{Pinned: true}, true)))
	assert.Equal(t, []string{"a t3.medium OnDemand"}, instead(lost(state.Slot{}, true)))
	assert.Equal(t, []string{"a t3.large OnDemand"}, instead(lost(state.Slot{}, false)))
	assert.Empty(t, instead(lost(state.Slot{Attempt: plan.MaxSubstitutes}, false)))
	s.Pending.Shapes = s.Pending.Shapes[:1]
	assert.Empty(t, instead(lost(state.Slot{Pinned: true}, true)), "the pods have found another node")
	s.Pool.Deleting = true
	assert.Empty(t, instead(lost(state.Slot{}, true)))
}

func TestUnlaunchable(t *testing.T) {
	s := steady()
	s.Offers = offers("a", "b")[:2]
	soon := noon.Add(time.Minute)
	s.Record.Cooling = []fleet.Cooling{{Zone: "a", Market: fleet.OnDemand, Until: soon}}
	assert.Empty(t, s.Unlaunchable(), "there is Spot")
	s.Pool.SpotRatio = 0
	assert.Equal(t, map[fleet.Offer]bool{s.Offers[0]: true}, s.Unlaunchable())
	s.Pool.SpotRatio, s.Record.Cooling = 1, []fleet.Cooling{{Subnet: "subnet-b", Until: soon}}
	assert.Equal(t, map[fleet.Offer]bool{s.Offers[1]: true}, s.Unlaunchable())
	s.Record.Cooling[0].Suspected = true
	assert.Empty(t, s.Unlaunchable(), "what is suspected may be tried")
}

// Instances that did not join have their places; of broken workers one in ten has none.
func TestPlacesOfInstances(t *testing.T) {
	failed := func(n int, kept, broken bool) func(*plan.Snapshot) {
		return func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			for i := range n {
				w := launched("i-f"+string(rune('0'+i)), fleet.Placement{}, noon)
				w.Failed, w.Kept, w.Broken = true, kept, broken
				s.Instances = append(s.Instances, w)
			}
			pends(s, 60)
		}
	}
	for _, c := range []struct {
		name     string
		change   func(*plan.Snapshot)
		launched int
		giveUp   []string
	}{
		{"none", failed(0, false, false), 6, nil},
		{"some that are kept go", failed(2, true, false), 4, []string{"i-f0", "i-f1"}},
		{"some are kept permanently", failed(2, false, false), 4, nil},
		{"all that is left", failed(6, true, false), 0, []string{"i-f0", "i-f1", "i-f2", "i-f3", "i-f4", "i-f5"}},
		{"one is broken", failed(1, false, true), 6, nil},
		{"three are broken", failed(3, false, true), 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := steady()
			c.change(&s)
			d := plan.Decide(s)
			assert.Len(t, d.Placements, c.launched, d.Message)
			assert.Equal(t, c.giveUp, d.GiveUp)
			if c.launched == 0 {
				assert.Equal(t, plan.InsufficientCapacity, d.Reason)
				assert.Contains(t, d.Message, "must be terminated first")
			}
		})
	}
}

// TestPodsWithoutCapacity: nodes are requested for pods that only refused offers could run, and
// hold up nothing else. Other pods do.
func TestPodsWithoutCapacity(t *testing.T) {
	waits := func(s plan.Snapshot) plan.Snapshot {
		s.Pending = plan.Pending{
			Known: true, Pods: 2, Due: 2, Nodes: 1, NoCapacity: 2, NoCapacityDue: 2, NoCapacityNodes: 1,
			Shapes: []fleet.Shape{{Kinds: []fleet.Kind{{Zone: "a", InstanceType: "t3.large"}}, Nodes: 1}},
		}
		s.Record.Cooling = []fleet.Cooling{{InstanceType: "t3.large", Until: s.Now.Add(time.Minute)}}
		return s
	}
	another := func(s plan.Snapshot) plan.Snapshot { s.Pending.Pods++; return s }
	due := func(s plan.Snapshot) plan.Snapshot { s.Pending.Pods, s.Pending.Due = 3, 3; return s }
	replaced := outdated()
	replaced.Record.LastUp, replaced.Record.LastDown = time.Time{}, time.Time{}
	needs(&replaced, 9)
	cooling := waits(idle())
	cooling.Record.LastUp, cooling.Pool.CooldownDown = ago(time.Minute), 0
	removing := waits(idle())
	removing.Record.Action = opened(state.ActionDown)
	for name, test := range map[string]struct {
		from   plan.Snapshot
		step   plan.Step
		reason plan.Reason
	}{
		"idle":                           {waits(idle()), plan.ScaleDown, plan.PoolIdle},
		"idle, and launches cool down":   {cooling, plan.ScaleDown, plan.PoolIdle},
		"idle, another is not due":       {another(waits(idle())), plan.Hold, plan.InsufficientCapacity},
		"idle, another is due":           {due(waits(idle())), plan.Hold, plan.InsufficientCapacity},
		"outdated":                       {waits(replaced), plan.ScaleDown, plan.Outdated},
		"outdated, another is due":       {due(waits(replaced)), plan.Hold, plan.InsufficientCapacity},
		"neither":                        {waits(steady()), plan.Hold, plan.InsufficientCapacity},
		"a scale-down is open and stays": {removing, plan.Hold, plan.ActionOpen},
	} {
		t.Run(name, func(t *testing.T) {
			d := plan.Decide(test.from)
			assert.Equal(t, test.step, d.Step, d.Message)
			assert.Equal(t, test.reason, d.Reason, d.Message)
			assert.LessOrEqual(t, d.Desired, max(d.Workers, d.Recommended))
			if test.reason == plan.ActionOpen {
				assert.Equal(t, d.Workers, d.Desired)
			}
		})
	}
}

// TestRefused: an offer counts as refused until it has been tried again.
func TestRefused(t *testing.T) {
	s := steady()
	s.Pool.SpotRatio, s.Offers = 0, s.Offers[:1]
	s.Record.Cooling = []fleet.Cooling{{InstanceType: s.Offers[0].InstanceType, Until: ago(time.Minute)}}
	assert.Empty(t, s.Unlaunchable())
	assert.Equal(t, map[fleet.Offer]bool{s.Offers[0]: true}, s.Refused())
	s.Record.Cooling[0].Until = ago(fleet.RefusedFor)
	assert.Empty(t, s.Refused())
}
