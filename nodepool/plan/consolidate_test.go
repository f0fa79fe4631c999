package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// roomy is a busy pool of ten workers that consolidates, of which six have been enough for long.
func roomy() plan.Snapshot {
	s := steady()
	s.Pool.Consolidate, s.Pool.Max = true, 20
	s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b", "a", "b")
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Fits, s.Signals[i].Needs = 6, 6, 5
	}
	s.Disruption = plan.Disruption{Nodes: 3, Why: "the budget allows 3"}
	s.Record.SpareSince = ago(s.Pool.Idle.For)
	return s
}

func TestConsolidation(t *testing.T) {
	asked := 0
	run(t, []row{
		{"as many as the budget allows", roomy, func(*plan.Snapshot) {}, plan.ScaleDown, plan.Underutilized, 3, false},
		{"no more than the load can do without", roomy, func(s *plan.Snapshot) { s.Disruption.Nodes = 8 }, plan.ScaleDown,
			plan.Underutilized, 4, false},
		{"no more than the predicted load can do without", roomy, func(s *plan.Snapshot) {
			s.Disruption.Nodes, s.Signals[1].Fits = 8, 9
		}, plan.ScaleDown, plan.Underutilized, 1, false},
		{"not for long enough", roomy, func(s *plan.Snapshot) { s.Record.SpareSince = ago(s.Pool.Idle.For - time.Second) },
			plan.Hold, plan.NotIdle, 0, false},
		{"not before", roomy, func(s *plan.Snapshot) { s.Record.SpareSince = time.Time{} },
			plan.Hold, plan.NotIdle, 0, false},
		{"only when idle", roomy, func(s *plan.Snapshot) { s.Pool.Consolidate = false }, plan.Hold, plan.NotIdle, 0, false},
		{"no budget", roomy, func(s *plan.Snapshot) { s.Disruption.Nodes = 0 }, plan.Hold, plan.DisruptionLimited, 0, false},
		{"one leaves, and counts", roomy, func(s *plan.Snapshot) { s.Instances[0].Leaving = true }, plan.ScaleDown,
			plan.Underutilized, 2, false},
		{"a signal is not known", roomy, func(s *plan.Snapshot) { loses(s, "memory") }, plan.Hold,
			plan.MetricsUnknown, 0, false},
		{"pods are pending", roomy, func(s *plan.Snapshot) { s.Pending.Pods, s.Pending.Due = 1, 0 }, plan.Hold,
			plan.NotSustained, 0, false},
		{"above the threshold of its own that a signal has", roomy, func(s *plan.Snapshot) { s.Signals[0].Down = 0.4 },
			plan.Hold, plan.NotIdle, 0, false},
		{"the cooldown", roomy, func(s *plan.Snapshot) { s.Record.LastUp = ago(time.Minute) },
			plan.Hold, plan.CoolingDown, 0, false},
		{"pods without another place", roomy, func(s *plan.Snapshot) { s.Simulator = rooms{asked: &asked} }, plan.Hold,
			plan.NoRemovableNode, 0, false},
		{"pods of one with another place", roomy, func(s *plan.Snapshot) { s.Simulator = rooms{most: 1, asked: &asked} },
			plan.ScaleDown, plan.Underutilized, 1, false},
		{"those stay whose removal saved nothing last time", roomy, func(s *plan.Snapshot) {
			for i := range s.Instances[1:] {
				s.Instances[i+1].FutileRemoval = "a new node was launched for its pods"
			}
		}, plan.ScaleDown, plan.Underutilized, 1, false},
		{"the minimum", roomy, func(s *plan.Snapshot) { s.Pool.Min, s.Disruption.Nodes = 9, 8 }, plan.ScaleDown,
			plan.Underutilized, 1, false},
		{"an idle pool goes by the rule for idle ones", roomy, func(s *plan.Snapshot) {
			s.Signals[0].Now, s.Signals[1].Now, s.Record.IdleSince = 0.1, 0.1, ago(s.Pool.Idle.For)
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
	})
}

// The time starts again when the load needs all workers for a moment, and after a gap between decisions.
func TestConsolidationNeedsTime(t *testing.T) {
	s := roomy()
	assert.Equal(t, s.Record.SpareSince, plan.Decide(s).SpareSince)
	s.DecidedAt = ago(time.Hour)
	assert.Equal(t, noon, plan.Decide(s).SpareSince)
	s.DecidedAt = time.Time{}
	s.Signals[0].Fits = 10
	assert.Zero(t, plan.Decide(s).SpareSince)
	s = roomy()
	loses(&s, "cpu")
	assert.Zero(t, plan.Decide(s).SpareSince)
}

// The candidates are removed first, so that the scheduler extender empties them.
func TestConsolidationNamesItsCandidates(t *testing.T) {
	s := roomy()
	s.Record.SpareSince = noon
	d := plan.Decide(s)
	require.Equal(t, plan.NotIdle, d.Reason)
	require.Len(t, d.Candidates, 4)
	s.Record.SpareSince = ago(s.Pool.Idle.For)
	assert.Equal(t, d.Candidates[:3], plan.Decide(s).Targets)
}

// A target stays if its time has passed.
func TestConsolidationEnds(t *testing.T) {
	object := func(change func(*plan.Snapshot)) string {
		s := roomy()
		s.Instances[0].Leaving = true
		change(&s)
		return plan.Objection(s, plan.Underutilized, "i-000", nil)
	}
	assert.Empty(t, object(func(*plan.Snapshot) {}))
	assert.Contains(t, object(func(s *plan.Snapshot) { s.Pool.Consolidate = false }), "no longer consolidates")
	assert.Contains(t, object(func(s *plan.Snapshot) { s.Pending.Pods = 1 }), "unschedulable")
	assert.Contains(t, object(func(s *plan.Snapshot) { s.Signals[0].Fits = 10 }), "needs 10 ready workers")
	assert.Contains(t, object(func(s *plan.Snapshot) { loses(s, "cpu") }), "unknown")
	assert.Contains(t, object(func(s *plan.Snapshot) { s.Disruption.Paused = true }), "paused")
	assert.Contains(t, object(func(s *plan.Snapshot) { s.Instances[1].Leaving, s.Disruption.Nodes = true, 1 }),
		"2 workers would be out of service")
}

// Budgets hold for idle workers as well, whether or not the replacement of outdated ones is paused.
func TestBudgetsHoldForIdlePools(t *testing.T) {
	s := idle()
	s.Instances = workersIn(slices.Repeat([]string{"a", "b"}, 10)...)
	s.Pool.Max, s.Pool.MaxBatchDown = 20, 10
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Fits = 2, 2
	}
	s.Disruption = plan.Disruption{Nodes: 3, Why: "3 may go", Paused: true}
	d := plan.Decide(s)
	assert.Equal(t, plan.PoolIdle, d.Reason, d.Message)
	assert.Len(t, d.Targets, 3)

	s.Instances[19].Node.Ready = false
	assert.Len(t, plan.Decide(s).Targets, 2, "one is out of service already")

	s.Disruption.Nodes = 0
	d = plan.Decide(s)
	assert.Equal(t, plan.DisruptionLimited, d.Reason)
	assert.Equal(t, "No change to 20 workers: the pool has been idle for 10m0s, and 3 may go", d.Message)

	s.Pool.Max = 10
	assert.Equal(t, plan.AboveMaximum, plan.Decide(s).Reason, "the user said so")
}
