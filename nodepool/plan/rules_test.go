package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

func TestWhatIsNotKnown(t *testing.T) {
	below := func() plan.Snapshot {
		s := steady()
		s.Instances = s.Instances[:1]
		return s
	}
	run(t, []row{
		{"workers: the minimum is not enforced", below, func(s *plan.Snapshot) { s.WorkersErr = "the cloud does not answer" },
			plan.Hold, plan.WorkersUnknown, 0, false},
		{"workers: nothing is launched for pods, as the maximum could not be kept", nil, func(s *plan.Snapshot) {
			s.WorkersErr = "the cloud does not answer"
			pends(s, 20)
		}, plan.Hold, plan.WorkersUnknown, 0, false},
		{"workers: nothing is replaced", nil, func(s *plan.Snapshot) {
			s.WorkersErr = "the cloud does not answer"
			s.Record.Interruptions = interruptions("i-000")
		}, plan.Hold, plan.WorkersUnknown, 0, false},
		{"workers: nothing is removed", idle, func(s *plan.Snapshot) { s.WorkersErr = "the cluster does not answer" },
			plan.Hold, plan.WorkersUnknown, 0, false},
		{"metrics: pending pods still work", nil, func(s *plan.Snapshot) {
			loses(s, "cpu")
			loses(s, "memory")
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"metrics: the minimum still works", below, func(s *plan.Snapshot) {
			loses(s, "cpu")
			loses(s, "memory")
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"metrics: one that is known still asks", nil, func(s *plan.Snapshot) {
			loses(s, "cpu")
			wants(s, "memory", 0.9, 5, time.Hour)
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"metrics: nothing is removed", idle, func(s *plan.Snapshot) { loses(s, "cpu") }, plan.Hold,
			plan.MetricsUnknown, 0, false},
		{"metrics: nothing is removed while workers are silent", idle,
			func(s *plan.Snapshot) { s.Signals[0].Silent = "2 of 4" },
			plan.Hold, plan.MetricsUnknown, 0, false},
		{"metrics: nothing is removed while workers are silent, though the maximum was lowered",
			idle, func(s *plan.Snapshot) {
				s.Pool.Max = 3
				s.Signals[0].Silent = "2 of 4"
			}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"metrics: the others still ask while workers are silent", nil, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 5, time.Hour)
			s.Signals[0].Silent = "2 of 4"
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"metrics: nothing is removed though one has no vote", idle, func(s *plan.Snapshot) {
			s.Signals[1].InformsOnly = true
			loses(s, "memory")
		}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"metrics: nothing is removed though the maximum was lowered", idle, func(s *plan.Snapshot) {
			s.Pool.Max = 3
			loses(s, "memory")
		}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"metrics: idleness needs memory that no signal measures", idle, func(s *plan.Snapshot) { s.Signals = s.Signals[:1] },
			plan.Hold, plan.MetricsUnknown, 0, false},
		{"metrics: idleness needs CPU that no signal measures", idle, func(s *plan.Snapshot) { s.Signals = s.Signals[1:] },
			plan.Hold, plan.MetricsUnknown, 0, false},
		{"pods: nothing is removed", idle, func(s *plan.Snapshot) { s.Pending.Known = false }, plan.Hold,
			plan.MetricsUnknown, 0, false},
		{"pods: nothing is launched for them", nil, func(s *plan.Snapshot) {
			pends(s, 20)
			s.Pending.Known = false
		}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"past weeks: the floor does not count", nil,
			func(s *plan.Snapshot) { s.Seasonal = &plan.Seasonal{Nodes: 9, Err: "no data"} },
			plan.Hold, plan.NotIdle, 0, false},
		{"past weeks: they never forbid a removal by being unknown", idle,
			func(s *plan.Snapshot) { s.Seasonal = &plan.Seasonal{Err: "no data"} },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"the use of a worker: it stays", idle, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Known = false
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
	})
}

// TestWhatRisesJoinsAnOpenScaleUp: without room the plan does nothing while an action is open.
func TestWhatRisesJoinsAnOpenScaleUp(t *testing.T) {
	open := func() plan.Snapshot {
		s := steady()
		s.Record.Action = &state.Action{Kind: state.ActionUp, Started: noon} // a batch is two
		wants(&s, "cpu", 0.9, 6, time.Hour)
		return s
	}
	has := func(s *plan.Snapshot, planned int) { // and room for two more
		s.Record.Action.Slots = slices.Repeat([]state.Slot{{State: state.SlotPlanned}}, planned)
		s.Pool.MaxBatchUp = 2 + planned
	}
	run(t, []row{
		{"as many as it has room for", open, func(*plan.Snapshot) {}, plan.ScaleUp, plan.LoadPredicted, 2, false},
		{"within the cooldown, which is between two of them", open,
			func(s *plan.Snapshot) { s.Record.LastUp = ago(time.Minute) },
			plan.ScaleUp, plan.LoadPredicted, 2, false},
		{"as many as are recommended", open, func(s *plan.Snapshot) { s.Pool.MaxBatchUp = 9 }, plan.ScaleUp,
			plan.LoadPredicted, 2, false},
		{"beyond what is planned already", open, func(s *plan.Snapshot) { has(s, 1) }, plan.ScaleUp,
			plan.LoadPredicted, 1, false},
		{"nothing if all of that is planned", open, func(s *plan.Snapshot) { has(s, 2) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"no more than the maximum", open, func(s *plan.Snapshot) { s.Pool.Max = 5 }, plan.ScaleUp,
			plan.LoadPredicted, 1, false},
		{"nothing at the maximum", open, func(s *plan.Snapshot) { s.Pool.Max = 4 }, plan.Hold, plan.ActionOpen, 0, false},
		{"nothing without room", open, func(s *plan.Snapshot) { s.Record.Action.Started = ago(time.Hour) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"nothing while launches fail", open,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Hour) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"nothing while an instance is taken back, which has slots of its own", open, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions(s.Instances[0].ID)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"nothing where everything cools", open, func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Until: ago(-time.Minute)}}
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"nothing that has not been asked for long enough", open,
			func(s *plan.Snapshot) { wants(s, "cpu", 0.9, 6, time.Second) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"nothing during a scale-down", open, func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) },
			plan.Hold, plan.ActionOpen, 0, false},
	})
}

func TestMinimumAndMaximum(t *testing.T) {
	below := func() plan.Snapshot {
		s := steady()
		s.Instances = s.Instances[:1]
		return s
	}
	run(t, []row{
		{"below the minimum: during an open scale-down", below,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) },
			plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"below the minimum: not during an open scale-up", below,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"below the minimum: not during an action of another kind", below,
			func(s *plan.Snapshot) { s.Record.Action = opened("Rebuild") },
			plan.Hold, plan.ActionOpen, 0, false},
		{"below the minimum: launches that fail back off", below,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 3, ago(3*time.Minute) },
			plan.Hold, plan.BackingOff, 0, false},
		{"below the minimum: they do for minutes at most", below,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 9, ago(5*time.Minute) },
			plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"below the minimum: in batches", below, func(s *plan.Snapshot) { s.Pool.Min = 6 },
			plan.ScaleUp, plan.BelowMinimum, 2, true},
		{"below the minimum: what leaves or failed does not count", nil, func(s *plan.Snapshot) {
			s.Instances[0].Leaving, s.Instances[1].Failed, s.Instances[2].Leaving = true, true, true
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"below the minimum: what is on its way counts", nil, func(s *plan.Snapshot) {
			s.Pool.Min = 4
			s.Instances[1].Node.Name, s.Instances[1].Node.Ready = "", false
		}, plan.Hold, plan.NothingToDo, 0, false},
		{"below the minimum: and pods ask for more, past no cooldown", below, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			pends(s, 35)
		}, plan.ScaleUp, plan.BelowMinimum, 4, true},
		{"below the minimum: and pods ask for more, within the cooldown", below, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			s.Record.LastUp = ago(time.Minute)
			pends(s, 35)
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"below the minimum: it is not known what can be launched", below, func(s *plan.Snapshot) { s.Offers = nil },
			plan.Hold, plan.LaunchesUnknown, 0, false},
		{"no workers and none asked for", nil, func(s *plan.Snapshot) {
			s.Pool.Min, s.Instances = 0, nil
			wants(s, "cpu", 0, 0, 0)
			wants(s, "memory", 0, 0, 0)
		}, plan.Hold, plan.AtMinimum, 0, false},
		{"no workers and pods ask", nil, func(s *plan.Snapshot) {
			s.Pool.Min, s.Instances = 0, nil
			loses(s, "cpu")
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},

		{"above the maximum: though busy", nil, func(s *plan.Snapshot) {
			s.Pool.Max = 3
			wants(s, "cpu", 0.9, 6, time.Hour)
			pends(s, 10)
		}, plan.ScaleDown, plan.AboveMaximum, 1, false},
		{"above the maximum: no more than that", nil, func(s *plan.Snapshot) { s.Pool.Max, s.Pool.MaxBatchDown = 3, 9 },
			plan.ScaleDown, plan.AboveMaximum, 1, false},
		{"above the maximum: within the cooldown", nil, func(s *plan.Snapshot) {
			s.Pool.Max = 3
			s.Record.LastDown = ago(time.Minute)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"above the maximum: while an action is open", nil,
			func(s *plan.Snapshot) { s.Pool.Max, s.Record.Action = 3, opened(state.ActionUp) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"above the maximum: that is below the minimum", nil, func(s *plan.Snapshot) { s.Pool.Max, s.Pool.Min = 3, 5 },
			plan.Hold, plan.AtMinimum, 0, false},
		{"above the maximum: all blocked", nil, func(s *plan.Snapshot) {
			s.Pool.Max = 3
			for i := range s.Instances {
				s.Instances[i].Blocked = "its annotation says so"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
	})
}

func TestGrowth(t *testing.T) {
	run(t, []row{
		{"the largest want wins", nil, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			wants(s, "cpu", 0.8, 5, time.Hour)
			wants(s, "memory", 0.99, 8, time.Hour)
			pends(s, 15)
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 7, Confidence: 1}
		}, plan.ScaleUp, plan.LoadPredicted, 4, false},
		{"a signal without a vote does not count", nil, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 9, time.Hour)
			s.Signals[0].InformsOnly = true
		}, plan.Hold, plan.NotIdle, 0, false},
		{"a signal that need not be sustained counts at once", nil, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 5, 0)
			s.Signals[0].For, s.Signals[0].Since = 0, time.Time{}
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"a signal of which it is not known since when is not sustained", nil, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 5, 0)
			s.Signals[0].Since = time.Time{}
		}, plan.Hold, plan.NotSustained, 0, false},
		{"one that waits keeps the pool from shrinking", idle,
			func(s *plan.Snapshot) { asksFor(s, "queue", 200, 100); s.Signals[2].For = time.Minute },
			plan.Hold, plan.NotSustained, 0, false},
		{"the seasonal floor counts in mode All", bothTriggersPolicy, func(s *plan.Snapshot) {
			pends(s, 0)
			wants(s, "cpu", 0.1, 2, 0)
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 6, Confidence: 1}
		}, plan.ScaleUp, plan.SeasonalFloor, 2, false},
		{"mode All without recommendations", bothTriggersPolicy, func(s *plan.Snapshot) {
			pends(s, 0)
			wants(s, "cpu", 0.5, 4, 0)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"pods that a node on its way will hold ask for nothing", nil,
			func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 3, Due: 3} },
			plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"pods that no node of the pool could run ask for nothing", nil, func(s *plan.Snapshot) {
			s.Pending.Unhelped = []fleet.Unhelped{{Pod: "shop/gpu", Reason: "it wants a GPU"}}
		}, plan.Hold, plan.NotIdle, 0, false},
		{"it is not known what can be launched", nil, func(s *plan.Snapshot) { s.Offers = nil; pends(s, 1) }, plan.Hold,
			plan.LaunchesUnknown, 0, false},
		{"every placement is cooling", nil, func(s *plan.Snapshot) {
			pends(s, 1)
			s.Record.Cooling = []fleet.Cooling{{Until: noon.Add(time.Minute)}}
		}, plan.Hold, plan.InsufficientCapacity, 0, false},
	})
}

func TestShrinking(t *testing.T) {
	run(t, []row{
		{"the load after the removal would be too high", idle, func(s *plan.Snapshot) { s.Signals[0].Fits = 4 },
			plan.Hold, plan.LoadAfterRemoval, 0, false},
		{"the load after the removal would just do", idle, func(s *plan.Snapshot) { s.Signals[0].Fits = 3 },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"a batch stops where the load would be too high", idle, func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
			s.Pool.MaxBatchDown, s.Signals[0].Fits = 9, 5
		}, plan.ScaleDown, plan.PoolIdle, 3, false},
		{"a batch ends at its limit", idle, func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
			s.Pool.MaxBatchDown = 4
		}, plan.ScaleDown, plan.PoolIdle, 4, false},
		{"only ready workers carry load", idle, func(s *plan.Snapshot) {
			s.Instances[0].Node.Ready = false
			s.Signals[0].Fits = 3
		}, plan.Hold, plan.LoadAfterRemoval, 0, false},
		{"past weeks need as many as there are", idle,
			func(s *plan.Snapshot) { s.Seasonal = &plan.Seasonal{Known: true, Nodes: 4, Confidence: 1} },
			plan.Hold, plan.LoadAfterRemoval, 0, false},
		{"a signal asks for as many as there are", idle, func(s *plan.Snapshot) { s.Signals[0].Desired = 4 },
			plan.Hold, plan.LoadAfterRemoval, 0, false},
		{"a signal is not below what it says for a removal", idle, func(s *plan.Snapshot) { s.Signals[0].Down = 0.2 },
			plan.Hold, plan.NotIdle, 0, false},
		{"a signal is below what it says for a removal", idle, func(s *plan.Snapshot) { s.Signals[0].Down = 0.21 },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"a signal without a vote needs no workers to stay", idle,
			func(s *plan.Snapshot) { s.Signals[0].InformsOnly, s.Signals[0].Fits = true, 9 },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"three unready of six are not too many", idle, func(s *plan.Snapshot) { unready(s, 3, 6) },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"four unready of nine are not too many", idle, func(s *plan.Snapshot) { unready(s, 4, 9) },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"four unready of eight are too many", idle, func(s *plan.Snapshot) { unready(s, 4, 8) }, plan.Hold,
			plan.TooManyUnready, 0, false},
		{"four unready of eight are too many for a maximum that was lowered", idle,
			func(s *plan.Snapshot) { unready(s, 4, 8); s.Pool.Max = 5 },
			plan.Hold, plan.TooManyUnready, 0, false},
	})
}

// unready makes a pool of n workers in two zones of which some are not ready.
func unready(s *plan.Snapshot, some, n int) {
	var zones []string
	for i := range n {
		zones = append(zones, string(rune('a'+i%2)))
	}
	s.Instances = workersIn(zones...)
	for i := range some {
		s.Instances[i].Node.Ready = false
	}
}

func TestInterruptions(t *testing.T) {
	run(t, []row{
		{"one that is needed is replaced past the cooldown", nil, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002")
			s.Record.LastUp = ago(time.Second)
		}, plan.ScaleUp, plan.Interrupted, 1, true},
		{"one that is marked as leaving is replaced as well", nil, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002")
			s.Instances[2].Leaving = true
		}, plan.ScaleUp, plan.Interrupted, 1, true},
		{"one that is not needed is not replaced", idle, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002")
			s.Record.IdleSince = time.Time{}
		}, plan.Hold, plan.NotIdle, 0, false},
		{"of two one is needed", idle, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002", "i-001")
			s.Signals[0].Desired = 3
		}, plan.ScaleUp, plan.Interrupted, 1, true},
		{"all are needed while a signal is not known", idle, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002", "i-001")
			loses(s, "cpu")
		}, plan.ScaleUp, plan.Interrupted, 2, true},
		{"all are needed where no signal has a vote", idle, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-002", "i-001")
			s.Signals[0].InformsOnly, s.Signals[1].InformsOnly = true, true
		}, plan.ScaleUp, plan.Interrupted, 2, true},
		{"all are replaced in batches", nil,
			func(s *plan.Snapshot) { s.Record.Interruptions = interruptions("i-000", "i-001", "i-002", "i-003") },
			plan.ScaleUp, plan.Interrupted, 2, true},
		{"at the maximum: what leaves makes room", nil,
			func(s *plan.Snapshot) { s.Pool.Max = 4; s.Record.Interruptions = interruptions("i-000") },
			plan.ScaleUp, plan.Interrupted, 1, true},
		{"above the maximum: none is replaced", nil,
			func(s *plan.Snapshot) { s.Pool.Max = 3; s.Record.Interruptions = interruptions("i-000") },
			plan.Hold, plan.NotSustained, 0, false},
		{"one that is not the pool's is nothing", nil,
			func(s *plan.Snapshot) { s.Record.Interruptions = interruptions("i-999") },
			plan.Hold, plan.NotIdle, 0, false},
		{"one that failed to join is nothing", nil, func(s *plan.Snapshot) {
			s.Instances = append(s.Instances, workersIn("a", "a", "a", "a", "a")[4])
			s.Instances[4].Failed = true
			s.Record.Interruptions = interruptions("i-004")
		}, plan.Hold, plan.NotIdle, 0, false},
		{"not during an open scale-up", nil, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-000")
			s.Record.Action = opened(state.ActionUp)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"launches that fail back off", nil, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-000")
			s.Record.Failures, s.Record.FailedAt = 1, ago(time.Second)
		}, plan.Hold, plan.BackingOff, 0, false},
		{"below the minimum before: that is the reason", nil,
			func(s *plan.Snapshot) { s.Pool.Min = 5; s.Record.Interruptions = interruptions("i-000") },
			plan.ScaleUp, plan.BelowMinimum, 2, true},
	})
}

// The zone and market that a replacement comes to are those without the worker that goes.
func TestReplacementIsPlacedWithoutWhatGoes(t *testing.T) {
	s := steady()
	s.Instances = workersIn("a", "a", "b", "b")
	s.Instances[0].Market = fleet.OnDemand
	s.Record.Interruptions = interruptions("i-003")
	assert.Equal(t, []string{"b t3.medium Spot"}, places(plan.Decide(s).Placements))
}

func TestFailuresDouble(t *testing.T) {
	s := steady()
	pends(&s, 30)
	for failures, wait := range map[int]time.Duration{
		1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 8 * time.Minute, 5: 16 * time.Minute,
		6: 30 * time.Minute, 7: 30 * time.Minute, 1 << 40: 30 * time.Minute,
	} {
		s.Record.Failures = failures
		s.Record.FailedAt = ago(wait - time.Millisecond)
		assert.Equal(t, plan.BackingOff, plan.Decide(s).Reason, "%d failures", failures)
		s.Record.FailedAt = ago(wait)
		d := plan.Decide(s)
		assert.Equal(t, plan.ScaleUp, d.Step, d.Message)
		assert.Len(t, d.Placements, 1, "one is tried")
		assert.Equal(t, 7, d.Recommended)
	}
	s.Record.Failures, s.Record.FailedAt = 9, ago(2*time.Minute)
	s.Pool.MaxFailureBackoff = 2 * time.Minute
	assert.Equal(t, plan.ScaleUp, plan.Decide(s).Step)
	s.Pool.MaxFailureBackoff = 30 * time.Second
	s.Record.Failures, s.Record.FailedAt = 1, ago(30*time.Second)
	assert.Equal(t, plan.ScaleUp, plan.Decide(s).Step, "a limit below the first wait")
}

func TestIdleSince(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Snapshot)
		want   time.Time
	}{
		"it goes on":                    {func(*plan.Snapshot) {}, ago(10 * time.Minute)},
		"it begins":                     {func(s *plan.Snapshot) { s.Record.IdleSince = time.Time{} }, noon},
		"CPU ends it":                   {func(s *plan.Snapshot) { s.Signals[0].Now = 0.3 }, time.Time{}},
		"memory ends it":                {func(s *plan.Snapshot) { s.Signals[1].Now = 0.5 }, time.Time{}},
		"a pod ends it":                 {func(s *plan.Snapshot) { s.Pending.Pods = 1 }, time.Time{}},
		"what is not known ends it":     {func(s *plan.Snapshot) { loses(s, "cpu") }, time.Time{}},
		"pods not known end it":         {func(s *plan.Snapshot) { s.Pending.Known = false }, time.Time{}},
		"a cloud that is mute does not": {func(s *plan.Snapshot) { s.WorkersErr = "no answer" }, ago(10 * time.Minute)},
		"an open action does not": {func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			ago(10 * time.Minute)},
		"a look just now": {func(s *plan.Snapshot) { s.DecidedAt = ago(5 * time.Minute) },
			ago(10 * time.Minute)},
		"no decision for too long": {func(s *plan.Snapshot) { s.DecidedAt = ago(5*time.Minute + 1) }, noon},
		"a time in the future":     {func(s *plan.Snapshot) { s.Record.IdleSince = noon.Add(time.Hour) }, noon},
	} {
		t.Run(name, func(t *testing.T) {
			s := idle()
			c.change(&s)
			d := plan.Decide(s)
			assert.Equal(t, c.want, d.IdleSince, d.Message)
		})
	}
}

// A clock that is an hour off makes nothing happen early. Once the owner of the state has written now instead of the
// future, counting starts again.
func TestClockIsSetBack(t *testing.T) {
	hour := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		from   func() plan.Snapshot
		change func(*plan.Snapshot)
		waits  plan.Reason
		whole  time.Duration
		then   plan.Step
	}{
		"scale-up": {steady, func(s *plan.Snapshot) { s.Record.LastUp = hour }, plan.CoolingDown,
			5 * time.Minute, plan.ScaleUp},
		"scale-down": {idle, func(s *plan.Snapshot) { s.Record.LastDown = hour }, plan.CoolingDown,
			10 * time.Minute, plan.ScaleDown},
		"idleness": {idle, func(s *plan.Snapshot) { s.Record.IdleSince = hour }, plan.NotIdle,
			10 * time.Minute, plan.ScaleDown},
		"failed launch": {steady, func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, hour },
			plan.BackingOff, time.Minute, plan.ScaleUp},
		"last decision": {idle, func(s *plan.Snapshot) { s.DecidedAt, s.Record.IdleSince = hour, hour }, plan.NotIdle,
			10 * time.Minute, plan.ScaleDown},
		"cooling market": {steady, func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Until: hour.Add(3 * time.Minute)}}
		}, "", 0, plan.ScaleUp},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.from()
			if c.then == plan.ScaleUp {
				pends(&s, 1)
			}
			c.change(&s)
			if c.whole > 0 {
				d := plan.Decide(s)
				assert.Equal(t, c.waits, d.Reason, d.Message)
			}
			for _, at := range []*time.Time{&s.Record.LastUp, &s.Record.LastDown, &s.Record.FailedAt,
				&s.Record.IdleSince, &s.DecidedAt} {
				if at.After(s.Now) {
					*at = s.Now
				}
			}
			for waited := time.Duration(0); waited < c.whole; waited += 15 * time.Second {
				d := plan.Decide(s)
				require.Equal(t, c.waits, d.Reason, "after %s: %s", waited, d.Message)
				s.Record.IdleSince, s.DecidedAt = d.IdleSince, d.At
				s.Now = s.Now.Add(15 * time.Second)
			}
			d := plan.Decide(s)
			assert.Equal(t, c.then, d.Step, d.Message)
		})
	}
}

func TestRefusals(t *testing.T) {
	s := idle()
	s.Instances = workersIn("a", "a", "a", "a", "a", "a", "b", "a")
	s.Instances[0].Node.Ready = false
	s.Instances[1].Node.Name, s.Instances[1].Node.Ready = "", false
	s.Instances[2].Blocked = "its annotation says so"
	s.Instances[3].Known = false
	s.Instances[4].ID = ""
	s.Record.DrainBackoff = map[string]time.Time{"i-005": noon.Add(time.Minute), "i-007": noon}
	d := plan.Decide(s)
	assert.Equal(t, []string{"i-007"}, ids(d.Targets), "its backoff is over")
	assert.Equal(t, []plan.Refusal{
		{Worker: "i-001", Reason: "its node has not joined"},
		{Worker: "node-000", Reason: "its node is not ready"},
		{Worker: "node-002", Reason: "its annotation says so"},
		{Worker: "node-003", Reason: "its use is unknown"},
		{Worker: "node-004", Reason: "its instance is unknown"},
		{Worker: "node-005", Reason: "its drain failed, and is retried after 2026-03-02T12:01:00Z"},
		{Worker: "node-006", Reason: "it is the last ready one of zone b"},
	}, d.Refused)
}

// The others of its zone are not ready: to take the one that is would leave the zone without.
func TestLastReadyOfZoneStays(t *testing.T) {
	s := idle()
	s.Instances = workersIn("a", "b", "b", "b", "a", "a", "a")
	s.Instances[2].Node.Ready, s.Instances[3].Node.Ready = false, false
	s.Instances[1].Utilisation = 0
	s.Pool.RemovalOrder = []plan.Scorer{plan.Idlest}
	assert.Equal(t, []string{"i-000"}, ids(plan.Decide(s).Targets))
}

func TestScorers(t *testing.T) {
	s := idle()
	s.Instances = workersIn("a", "b", "b", "b", "a")
	s.Instances[4].Utilisation = 0.1
	s.Instances[3].Pods = 1
	s.Instances[2].Launched = ago(48 * time.Hour)
	s.Instances[1].Launched = time.Time{} // not known is not the oldest
	for _, c := range []struct {
		victims []plan.Scorer
		want    string
	}{
		{nil, "i-003"}, // the default: of zone b, as idle as the others, the one with fewest pods
		{[]plan.Scorer{plan.FullestZone, plan.Oldest}, "i-002"},
		{[]plan.Scorer{plan.Idlest}, "i-004"},
		{[]plan.Scorer{plan.FewestPods, plan.Idlest}, "i-003"},
		{[]plan.Scorer{plan.Oldest}, "i-002"},
		{[]plan.Scorer{"Tallest"}, "i-000"}, // one that there is not
	} {
		s.Pool.RemovalOrder = c.victims
		assert.Equal(t, []string{c.want}, ids(plan.Decide(s).Targets), "%v", c.victims)
	}
}

func TestVotes(t *testing.T) {
	s := steady()
	wants(&s, "cpu", 0.9, 7, time.Hour)
	loses(&s, "memory")
	pends(&s, 14)
	s.Pending.OldestFor = 45 * time.Second
	s.Pending.Unhelped = []fleet.Unhelped{{Pod: "shop/gpu", Reason: "it wants a GPU"}}
	s.Signals[0].Horizon = 150 * time.Second
	s.Seasonal = &plan.Seasonal{Known: true, Nodes: 5, Confidence: 0.8}
	d := plan.Decide(s)
	assert.Equal(t, []plan.Recommendation{
		{Signal: "cpu", Nodes: 7, Known: true, Reason: "cpu is 0.9 and will be 0.9 in 2m30s, with a threshold of 0.7"},
		{Signal: "pending", Nodes: 6, Known: true,
			Reason: "14 pods unschedulable for longer than 30s, the oldest for 45s, and 2 more nodes would hold them; 1 pod could run on no node of the pool: shop/gpu, as it wants a GPU"},
		{Signal: "seasonal", Nodes: 5, Known: true, Reason: "past weeks needed 5 at this hour, with a confidence of 0.80"},
		{Signal: "minimum", Nodes: 2, Known: true, Reason: "the minimum is 2"},
		{Signal: "memory", Reason: "memory is unknown: the server does not answer"},
	}, d.Recommendations)
	assert.Equal(t, 7, d.Recommended)
	assert.Equal(t, 6, d.Desired)
}

// Of two with the same number, the first is the reason.
func TestReasonOfEqualVotes(t *testing.T) {
	s := steady()
	wants(&s, "cpu", 0.9, 5, time.Hour)
	pends(&s, 1)
	assert.Equal(t, plan.LoadPredicted, plan.Decide(s).Reason)
}

func TestRecommendationOfPendingPods(t *testing.T) {
	for _, c := range []struct {
		want    string
		pending plan.Pending
	}{
		{"3 pods unschedulable for longer than 30s, and nodes that are starting will hold them",
			plan.Pending{Known: true, Pods: 3, Due: 3}},
		{"3 pods unschedulable, none for longer than 30s", plan.Pending{Known: true, Pods: 3, Nodes: 1}},
		{"3 pods unschedulable for longer than 30s, and existing nodes have room for them: the events of the pods show why the scheduler does not use these", plan.Pending{Known: true, Pods: 3, Due: 3, Room: 3}},
		{"3 pods unschedulable for longer than 30s, and existing nodes have room for 2 of them, and nodes that are starting will hold the others", plan.Pending{Known: true, Pods: 3, Due: 3, Room: 2}},
		{"3 pods unschedulable for longer than 30s, and nodes that are starting will hold them; the scheduler extender filtered the existing nodes for 2 of them, as these are predicted to be overloaded",
			plan.Pending{Known: true, Pods: 3, Due: 3, Filtered: 2}},
		{"no pod is unschedulable", plan.Pending{Known: true}},
		{"pods are unknown", plan.Pending{}},
	} {
		s := steady()
		s.Pending = c.pending
		d := plan.Decide(s)
		assert.Equal(t, plan.Hold, d.Step, d.Message)
		for _, v := range d.Recommendations {
			if v.Signal == "pending" {
				assert.Equal(t, c.want, v.Reason)
				assert.LessOrEqual(t, v.Nodes, 4)
			}
		}
	}
}

// The limit of an action applies whatever the pool configures.
func TestNodesOfAnActionAreBounded(t *testing.T) {
	for _, batch := range []int{0, plan.MaxBatch + 1} {
		s := steady()
		s.Pool.Max, s.Pool.MaxBatchUp = 10000, batch
		pends(&s, 10*plan.MaxBatch+1)
		assert.Len(t, plan.Decide(s).Placements, plan.MaxBatch)
		s = idle()
		s.Pool.Min, s.Pool.MaxBatchUp, s.Pool.MaxBatchDown = 0, batch, 10000
		for i := range 2 * plan.MaxBatch {
			w := s.Instances[0]
			w.ID, w.Node.Name = fmt.Sprintf("i-more%d", i), fmt.Sprintf("more%d", i)
			s.Instances = append(s.Instances, w)
		}
		assert.Len(t, plan.Decide(s).Targets, plan.MaxBatch, plan.Decide(s).Message)
	}
}

// A sentence with numbers, also for doing nothing.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		from   func() plan.Snapshot
		change func(*plan.Snapshot)
		want   string
	}{
		{steady, func(s *plan.Snapshot) { wants(s, "cpu", 0.9, 7, time.Hour); s.Signals[0].Horizon = time.Minute },
			"Launch 2 next to 4 workers: cpu is 0.9 and will be 0.9 in 1m0s, with a threshold of 0.7; 7 are recommended, and one step goes to 6"},
		{steady, func(s *plan.Snapshot) { s.Pool.Max = 5; pends(s, 40) },
			"Launch 1 next to 4 workers: 40 pods unschedulable for longer than 30s, the oldest for 30s, and 4 more nodes would hold them; 8 are recommended and the maximum is 5"},
		{steady, func(s *plan.Snapshot) { s.Record.Failures = 2; pends(s, 40) },
			"Launch 1 next to 4 workers: 40 pods unschedulable for longer than 30s, the oldest for 30s, and 4 more nodes would hold them; 8 are recommended, and one is tried while launches fail"},
		{steady, func(s *plan.Snapshot) { s.Record.Interruptions = interruptions("i-000") },
			"Launch 1 next to 3 workers: the cloud reclaims 1 worker, and 4 are needed"},
		{steady, func(s *plan.Snapshot) { s.Instances = s.Instances[:1] }, "Launch 1 next to 1 worker: the minimum is 2"},
		{idle, func(*plan.Snapshot) {}, "Remove 1 of 4 workers: the pool has been idle for 10m0s"},
		{steady, func(s *plan.Snapshot) { s.Pool.Max = 3 }, "Remove 1 of 4 workers: the maximum is 3"},
		{steady, func(*plan.Snapshot) {}, "No change to 4 workers: 50% of the CPU is in use, which is not below 30%"},
		{steady, func(s *plan.Snapshot) { s.Pool.Max = 4; pends(s, 3) },
			"No change to 4 workers: 5 are recommended and the maximum is 4 (3 pods unschedulable for longer than 30s, the oldest for 30s, and 1 more node would hold them)"},
		{steady, func(s *plan.Snapshot) { s.Record.LastUp = ago(100500 * time.Millisecond); pends(s, 3) },
			"No change to 4 workers: 5 are recommended, and the cooldown of scale-ups, 5m0s, has 3m20s left (3 pods unschedulable for longer than 30s, the oldest for 30s, and 1 more node would hold them)"},
		{steady, func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 2, ago(time.Minute); pends(s, 3) },
			"No change to 4 workers: 5 are recommended, and nothing joined in the last 2 scale-ups: the next is tried in 1m0s (3 pods unschedulable for longer than 30s, the oldest for 30s, and 1 more node would hold them)"},
		{idle, func(s *plan.Snapshot) { s.Record.IdleSince = ago(599900 * time.Millisecond) },
			"No change to 4 workers: the pool has been idle for 9m59s of 10m0s"},
		{idle, func(s *plan.Snapshot) { s.Signals[0].Fits = 4 },
			"No change to 4 workers: cpu needs 4 ready workers to stay below 0.7 with the margin 0.3, and there are 4"},
		{idle, func(s *plan.Snapshot) { unready(s, 4, 8) },
			"No change to 8 workers: the pool has been idle for 10m0s, but 4 of 8 are unready, more than 45% and more than 3: observations cannot be trusted"},
		{idle, func(s *plan.Snapshot) {
			s.Pool.Min, s.Instances = 3, workersIn("a", "b", "c", "c")
			s.Instances[2].Blocked, s.Instances[3].Blocked = "its annotation says so", "its annotation says so"
		},
			"No change to 4 workers: the pool has been idle for 10m0s, but no worker can be removed, such as node-000: it is the last ready one of zone a"},
		{idle, func(s *plan.Snapshot) {
			s.Pool.Min, s.Pool.OnDemandBase, s.Instances = 1, 1, workersIn("a", "a")
			s.Instances[0].Market, s.Instances[1].Blocked = fleet.OnDemand, "its annotation says so"
			s.Signals[0].Fits, s.Signals[0].Desired, s.Signals[1].Fits, s.Signals[1].Desired = 1, 1, 1, 1
		},
			"No change to 2 workers: the pool has been idle for 10m0s, but no worker can be removed, such as node-000: market.onDemandBase keeps 1 On-Demand worker"},
		{idle, func(s *plan.Snapshot) { loses(s, "memory") },
			"No change to 4 workers: nothing is removed while this is unknown: memory (the server does not answer)"},
		{steady, func(s *plan.Snapshot) { s.WorkersErr = "the cloud does not answer" },
			"No change to 4 workers: the workers are not known: the cloud does not answer"},
		{steady, func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) },
			"No change to 4 workers: a ScaleDown is open (cpu is 0.5 and will be 0.5 in 0s, with a threshold of 0.7)"},
	} {
		s := c.from()
		c.change(&s)
		assert.Equal(t, c.want, plan.Decide(s).Message)
	}
}

// A node that the cloud advises to leave is no sign of a broken cluster, and is removed before others.
func TestCordonedWorkersGoFirst(t *testing.T) {
	s := idle()
	s.Pool.Min, s.Pool.DistrustCount = 1, 1
	s.Instances = nil
	for i := range 6 {
		w := launched(fmt.Sprintf("i-%d", i), fleet.Placement{Zone: "a"}, s.Now.Add(-time.Hour))
		w.Known, w.Utilisation = true, 0.1*float64(i)
		w.Node = plan.Node{Name: fmt.Sprintf("n-%d", i), Ready: true, Cordoned: i >= 3}
		s.Instances = append(s.Instances, w)
	}
	d := plan.Decide(s)
	require.Len(t, d.Targets, 1, d.Message)
	assert.Equal(t, "n-3", d.Targets[0].Node)

	s.Instances[0].Zone, s.Instances[1].Zone, s.Instances[2].Zone = "b", "b", "b"
	d = plan.Decide(s)
	require.Len(t, d.Targets, 1, d.Message)
	assert.Equal(t, "n-3", d.Targets[0].Node, "it is no worker of its zone that takes pods")
}

// rooms is a Simulator in which some nodes cannot be removed, and only a number of others together.
type rooms struct {
	keep  map[string]bool
	most  int
	asked *int
}

func (r rooms) Without(nodes []string, _ bool, added ...fleet.Placement) string {
	if *r.asked++; slices.ContainsFunc(nodes, func(n string) bool { return r.keep[n] }) || len(nodes) > r.most+len(added) {
		return "no other node could run its pod"
	}
	return ""
}

func TestPodsOfRemovedWorkersFitElsewhere(t *testing.T) {
	asked := 0
	s := idle()
	s.Pool.Min, s.Pool.MaxBatchDown = 1, 3
	s.Instances = workersIn("a", "a", "a", "a")
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Fits = 1, 1
	}
	s.Simulator = rooms{keep: map[string]bool{"node-000": true}, most: 4, asked: &asked}
	d := plan.Decide(s)
	require.Equal(t, plan.ScaleDown, d.Step, d.Message)
	assert.Equal(t, []string{"i-001", "i-002", "i-003"}, ids(d.Targets), "another goes instead")
	assert.Contains(t, d.Refused,
		plan.Refusal{Worker: "node-000", Reason: "no other node could run its pod", Unmovable: true})

	s.Simulator = rooms{most: 1, asked: &asked}
	d = plan.Decide(s)
	assert.Len(t, d.Targets, 1, "the others have room for the pods of one")
	assert.Len(t, d.Candidates, 3, "workers that go later are not simulated")
	assert.NotContains(t, d.Refused,
		plan.Refusal{Worker: "node-001", Reason: "no other node could run its pod", Unmovable: true}, "alone it may go")

	s.Simulator = rooms{asked: &asked}
	d = plan.Decide(s)
	assert.Equal(t, plan.NoRemovableNode, d.Reason, d.Message)
	assert.Contains(t, d.Message, "such as node-000: no other node could run its pod")

	s.Pool.Max = 1
	d = plan.Decide(s)
	assert.Equal(t, plan.NoRemovableNode, d.Reason, "a lowered maximum loses no pods: %s", d.Message)

	s.Instances, s.Pool.Max = workersIn(slices.Repeat([]string{"a"}, 500)...), 1000
	asked = 0
	plan.Decide(s)
	assert.Equal(t, 1+32, asked, "a question costs as much as a packing")
	s.Pool.MaxBatchDown, s.Simulator = 200, rooms{most: 500, asked: &asked}
	assert.Len(t, plan.Decide(s).Targets, 200)
}

func TestUnhelpedPodsAreNamedByReason(t *testing.T) {
	s := steady()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.Pending.Unhelped = append(s.Pending.Unhelped, fleet.Unhelped{Pod: "shop/" + name, Reason: "it wants a GPU"})
	}
	s.Pending.Unhelped[2].Reason, s.Pending.Unhelped[3].Reason, s.Pending.Unhelped[4].Reason = "it claims devices",
		"it is too large", "it is of another pool"
	for _, r := range plan.Decide(s).Recommendations {
		if r.Signal == "pending" {
			assert.Equal(
				t, "no pod is unschedulable; 5 pods could run on no node of the pool: shop/a, as it wants a GPU; shop/c, as it claims devices; shop/d, as it is too large", r.Reason)
			return
		}
	}
	assert.Fail(t, "no recommendation from pending pods")
}
