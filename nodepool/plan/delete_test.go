package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// deleted is a busy pool that is being deleted.
func deleted() plan.Snapshot {
	s := steady()
	s.Pool.Deleting = true
	return s
}

// unmovable is a Simulator in which no pod fits elsewhere.
type unmovable struct{}

func (unmovable) Without([]string, bool, ...fleet.Placement) string {
	return "its pods would have no other node"
}

func TestADeletedPoolRemovesAll(t *testing.T) {
	none := func(s *plan.Snapshot) { s.Instances = nil }
	run(t, []row{
		{"past minimum, batch and zones", deleted, func(*plan.Snapshot) {}, plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"past cooldowns", deleted, func(s *plan.Snapshot) { s.Record.LastUp, s.Record.LastDown = noon, noon },
			plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"though pods are pending", deleted, func(s *plan.Snapshot) { pends(s, 20) },
			plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"though signals ask for more", deleted, func(s *plan.Snapshot) { wants(s, "cpu", 0.9, 9, time.Hour) },
			plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"though nothing is known of signals and pods", deleted, func(s *plan.Snapshot) {
			loses(s, "cpu")
			s.Pending.Known = false
			for i := range s.Instances {
				s.Instances[i].Known = false
			}
		}, plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"though pods have no other node", deleted, func(s *plan.Snapshot) { s.Simulator = unmovable{} },
			plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"those that are not ready too", deleted, func(s *plan.Snapshot) { s.Instances[3].Node.Ready = false },
			plan.ScaleDown, plan.PoolDeleted, 4, false},
		{"not workers whose pods forbid it", deleted, func(s *plan.Snapshot) { s.Instances[1].Blocked = "a pod must stay" },
			plan.ScaleDown, plan.PoolDeleted, 3, false},
		{"not workers whose drain has just failed", deleted, func(s *plan.Snapshot) {
			s.Record.DrainBackoff = map[string]time.Time{"i-001": noon.Add(time.Minute)}
		}, plan.ScaleDown, plan.PoolDeleted, 3, false},
		{"not those without a node", deleted, func(s *plan.Snapshot) {
			s.Instances[1].Node.Name, s.Instances[1].Node.Ready = "", false
		}, plan.ScaleDown, plan.PoolDeleted, 3, false},
		{"nothing while all are forbidden", deleted, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "a pod must stay"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"nothing during an open action", deleted, func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"nothing while workers are not known", deleted,
			func(s *plan.Snapshot) { s.WorkersErr = "the cloud does not answer" }, plan.Hold, plan.WorkersUnknown, 0, false},
		{"nothing while too many are unready", deleted, func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
			for i := range 4 {
				s.Instances[i].Node.Ready = false
			}
		}, plan.Hold, plan.TooManyUnready, 0, false},
		{"nothing once none is left, not even for the minimum", deleted, none, plan.Hold, plan.PoolDeleted, 0, false},
		{"nothing for reclaimed instances", deleted, func(s *plan.Snapshot) {
			s.Instances, s.Record.Interruptions = s.Instances[:1], interruptions("i-000")
		}, plan.Hold, plan.PoolDeleted, 0, false},
		{"nothing for pending pods", deleted, func(s *plan.Snapshot) { none(s); pends(s, 20) },
			plan.Hold, plan.PoolDeleted, 0, false},
	})
}

func TestADeletedPoolRemovesInOrder(t *testing.T) {
	s := deleted()
	s.Instances[3].Node.Ready, s.Instances[2].Node.Cordoned = false, true
	d := plan.Decide(s)
	assert.Equal(t, []string{"i-003", "i-002", "i-000", "i-001"}, ids(d.Targets),
		"what does not work, what the cloud advises to leave, the oldest")
	assert.Empty(t, d.Candidates)
	assert.Equal(t, "Remove 4 nodes of 4 workers: the WorkerPool is being deleted", d.Message)

	s.Record.Action, s.Instances[1].Blocked = opened(state.ActionDown), "a pod must stay"
	d = plan.Decide(s)
	assert.Equal(t, []plan.Refusal{{Worker: "node-001", Reason: "a pod must stay"}},
		d.Refused, "people see it meanwhile")

	s = deleted()
	s.Instances = workersIn(slices.Repeat([]string{"a", "b"}, plan.MaxBatch)...)
	require.Len(t, plan.Decide(s).Targets, plan.MaxBatch)
}

func TestRandomPoolsThatAreDeleted(t *testing.T) {
	removed := 0
	for seed := range uint64(2000) {
		s := random(seed)
		s.Pool.Deleting = true
		d := plan.Decide(s)
		check(t, s, d)
		require.NotEqual(t, plan.ScaleUp, d.Step, "seed %d", seed)
		if d.Step == plan.ScaleDown {
			removed++
		}
		slices.Reverse(s.Instances)
		require.Equal(t, d, plan.Decide(s), "seed %d: with the workers in another order", seed)
		require.False(t, t.Failed(), "seed %d: %+v\n%+v", seed, s, d)
	}
	require.Greater(t, removed, 500)
}
