package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var notReady = plan.UnhealthyCondition{Type: "Ready", Status: "Unknown", After: 30 * time.Minute}

// unhealthy is a steady pool of n workers, of which the first ones have been unhealthy for 31
// minutes, and broken for as long.
func unhealthy(n, of int) plan.Snapshot {
	s := steady()
	zones := make([]string, of)
	for i := range zones {
		zones[i] = []string{"a", "b"}[i%2]
	}
	s.Instances = workersIn(zones...)
	s.Pool.Min, s.Pool.Max, s.Pool.Repair = of, of+10, plan.Repair{Conditions: []plan.UnhealthyCondition{notReady}}
	for i := range s.Instances {
		w := &s.Instances[i]
		if i < n {
			w.Node.Ready, w.Unhealthy = false,
				plan.BadCondition{Condition: "Ready=Unknown", Since: ago(31 * time.Minute), After: notReady.After}
		}
	}
	return s
}

func repaired(d plan.Decision) (out []string) {
	for _, r := range d.Repairs {
		out = append(out, r.InstanceID)
	}
	return out
}

func TestRepairs(t *testing.T) {
	first := []string{"i-000"}
	for name, c := range map[string]struct {
		change func(*plan.Snapshot)
		want   []string
		held   string // a part of why none is repaired
	}{
		"one that is due": {func(*plan.Snapshot) {}, first, ""},
		"to the second": {func(s *plan.Snapshot) { s.Instances[0].Unhealthy.Since = ago(30 * time.Minute) },
			first, ""},
		"not one that is due later": {func(s *plan.Snapshot) {
			s.Instances[0].Unhealthy.Since = ago(30*time.Minute - time.Second)
		}, nil, ""},
		"not a healthy one": {func(s *plan.Snapshot) { s.Instances[0].Unhealthy = plan.BadCondition{} }, nil, ""},
		"one that does not count": {func(s *plan.Snapshot) { s.Instances[0].Failed, s.Instances[0].Broken = true, true },
			first, ""},
		"one whose removal is blocked": {func(s *plan.Snapshot) { s.Instances[0].Blocked = "a pod keeps it" }, first, ""},
		"one that is Ready":            {func(s *plan.Snapshot) { s.Instances[0].Node.Ready = true }, first, ""},
		"during any action":            {func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) }, first, ""},
		"while disruption is paused":   {func(s *plan.Snapshot) { s.Disruption.Paused = true }, first, ""},
		"not one that never joined":    {func(s *plan.Snapshot) { s.Instances[0].Failed = true }, nil, ""},
		"not one that is terminated": {func(s *plan.Snapshot) {
			s.Record.PendingTerminations = []state.PendingTermination{{InstanceID: "i-000", Due: noon.Add(time.Hour)}}
		}, nil, ""},
		"not one that is being removed": {func(s *plan.Snapshot) {
			s.Instances[0].Leaving, s.Record.Endings = true, []state.Removal{{InstanceID: "i-000"}}
		}, nil, ""},
		"not one that the cloud takes": {func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-000")
		}, nil, ""},
		"not one that is not listed":   {func(s *plan.Snapshot) { s.Instances[0].Listed = false }, nil, ""},
		"not one that shuts down":      {func(s *plan.Snapshot) { s.Instances[0].Leaving = true }, nil, ""},
		"not one of the control plane": {func(s *plan.Snapshot) { s.Instances[0].Node.ControlPlane = true }, nil, ""},
		"not after a drain that failed": {func(s *plan.Snapshot) {
			s.Record.DrainBackoff = map[string]time.Time{"i-000": noon.Add(time.Minute)}
		}, nil, ""},
		"not while workers are not known": {func(s *plan.Snapshot) { s.WorkersErr = "down" }, nil, ""},
		"not in a pool that is deleted":   {func(s *plan.Snapshot) { s.Pool.Deleting = true }, nil, ""},
		"not where it is disabled": {func(s *plan.Snapshot) { s.Pool.Repair.Disabled = true }, nil,
			"disruption.repair.disabled is true"},
		"not in doubt": {func(s *plan.Snapshot) {
			for i := range 6 {
				s.Instances[4+i].Node = plan.Node{}
			}
		}, nil, "7 of 10 instances have no ready node"},
		"not while many are unready": {func(s *plan.Snapshot) {
			for i := range 6 {
				s.Instances[4+i].Node.Ready, s.Instances[4+i].Listed = false, false
			}
		}, nil, "7 of 10 workers are unready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := unhealthy(1, 10)
			c.change(&s)
			d := plan.Decide(s)
			assert.Equal(t, c.want, repaired(d))
			if c.held == "" {
				assert.Empty(t, d.RepairHeld)
			} else {
				assert.Contains(t, d.RepairHeld, c.held)
			}
			if len(c.want) > 0 {
				assert.Equal(t, "aws:///i-000", d.Repairs[0].ProviderID)
				assert.Equal(t, s.Instances[0].Failed, d.Repairs[0].ReplacementSettled)
				assert.NotContains(t, d.Targets, plan.Target{InstanceID: "i-000", Node: "node-000", Zone: "a"})
			}
		})
	}
}

// TestRepairsAreBounded by the share of unhealthy nodes and by how many are repaired already.
func TestRepairsAreBounded(t *testing.T) {
	for _, c := range []struct{ unhealthy, of, want int }{
		{1, 1, 1}, {1, 2, 1}, {2, 2, 0}, {1, 4, 1}, {2, 9, 0}, {2, 10, 1}, {3, 14, 0}, {3, 15, 1}, {4, 20, 2},
		{5, 20, 0}, {20, 100, 10}, {21, 100, 0},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.unhealthy, c.of), func(t *testing.T) {
			s := unhealthy(c.unhealthy, c.of)
			d := plan.Decide(s)
			assert.Len(t, d.Repairs, c.want)
			assert.Equal(t, c.want == 0, d.RepairHeld != "", d.RepairHeld)
			for n, r := range d.Repairs { // the next ones come when these have gone
				s.Instances[n].Leaving = true
				s.Record.Repairs = append(s.Record.Repairs, state.Removal{InstanceID: r.InstanceID, ReplacementSettled: true})
			}
			assert.Empty(t, plan.Decide(s).Repairs)
		})
	}
}

// TestUnhealthyForAMomentCounts: nodes that are not due yet count as unhealthy.
func TestUnhealthyForAMomentCounts(t *testing.T) {
	s := unhealthy(3, 10)
	s.Instances[1].Unhealthy.Since, s.Instances[2].Unhealthy.Since = noon, noon
	d := plan.Decide(s)
	assert.Empty(t, d.Repairs)
	assert.Contains(t, d.RepairHeld, "3 of 10 nodes are unhealthy, and while more than 2 are (20%)")
	s.Instances[2].Unhealthy = plan.BadCondition{}
	assert.Equal(t, []string{"i-000"}, repaired(plan.Decide(s)))
}

// TestReplacementsMakeTheShareNoSmaller: replacements of broken workers are no reason to trust
// observations of these.
func TestReplacementsMakeTheShareNoSmaller(t *testing.T) {
	s := unhealthy(3, 17)
	for i := range 3 {
		s.Instances[i].Failed, s.Instances[i].Broken = true, true
		s.Instances[14+i].Launched = ago(20 * time.Minute)
	}
	d := plan.Decide(s)
	assert.Empty(t, d.Repairs)
	assert.Contains(t, d.RepairHeld, "3 of 14 nodes")
}

// TestRepairsLaunchWhatIsNeeded in place of workers that count, at once; those that are broken have
// been replaced before.
func TestRepairsLaunchWhatIsNeeded(t *testing.T) {
	s := unhealthy(1, 10)
	s.Record.LastUp = ago(time.Minute)
	d := plan.Decide(s)
	require.Equal(t, plan.ScaleUp, d.Step, d.Message)
	assert.Equal(t, plan.Unhealthy, d.Reason)
	assert.Len(t, d.Placements, 1)
	assert.Contains(t, d.Message, "1 unhealthy worker repaired, and 10 are needed")

	s.Record.Repairs, s.Instances[0].Leaving = []state.Removal{{InstanceID: "i-000"}}, true
	assert.Equal(t, plan.Unhealthy, plan.Decide(s).Reason, "until one is launched")

	s = unhealthy(1, 11)
	s.Pool.Min, s.Record.LastUp = 10, ago(time.Minute)
	s.Instances[0].Failed, s.Instances[0].Broken = true, true
	d = plan.Decide(s)
	assert.Equal(t, []string{"i-000"}, repaired(d))
	assert.Equal(t, plan.Hold, d.Step, d.Message)

	s = unhealthy(1, 10)
	s.Record.Action = opened(state.ActionUp)
	d = plan.Decide(s)
	require.Len(t, d.Replacements, 1, "it joins an open scale-up")
	assert.Equal(t, "i-000", d.Replacements[0].InstanceID)
}

// TestTheConditionThatIsDueFirstDecides, whatever the order in which they are given.
func TestTheConditionThatIsDueFirstDecides(t *testing.T) {
	r := plan.Repair{Conditions: []plan.UnhealthyCondition{
		notReady, {Type: "KernelDeadlock", Status: "True", After: 10 * time.Minute},
		{Type: "KernelDeadlock", Status: "Unknown", After: time.Hour},
	}}
	has := func(kind, status string, since time.Time) plan.NodeCondition {
		return plan.NodeCondition{Type: kind, Status: status, Since: since}
	}
	assert.False(t, r.Unhealthy([]plan.NodeCondition{has("Ready", "True", ago(time.Hour)),
		has("KernelDeadlock", "False", ago(time.Hour)), has("Other", "Unknown", ago(time.Hour))}).Holds())
	both := []plan.NodeCondition{has("Ready", "Unknown", ago(15*time.Minute)),
		has("KernelDeadlock", "True", ago(6*time.Minute))}
	assert.Equal(t, plan.BadCondition{Condition: "KernelDeadlock=True", Since: ago(6 * time.Minute),
		After: 10 * time.Minute}, r.Unhealthy(both))
	assert.Equal(t, noon.Add(4*time.Minute), r.Unhealthy(both).Due())
	both[0].Since = ago(29 * time.Minute)
	assert.Equal(t, "Ready=Unknown", r.Unhealthy(both).Condition)
}

// TestRepairsOfRandomPools: for any pool the bounds hold, and decisions are deterministic.
func TestRepairsOfRandomPools(t *testing.T) {
	repairs := 0
	for seed := range uint64(3000) {
		made := func() plan.Snapshot {
			s, d := random(seed), rand.New(rand.NewPCG(seed, 3))
			s.Pool.Repair.Conditions = []plan.UnhealthyCondition{notReady}
			for i := range s.Instances {
				w := &s.Instances[i]
				if w.Node.Name != "" && d.IntN(6) == 0 {
					w.Unhealthy = plan.BadCondition{Condition: "Ready=Unknown",
						Since: ago(time.Duration(d.IntN(60)) * time.Minute), After: notReady.After}
				}
				w.Listed = d.IntN(20) > 0
			}
			return s
		}
		s := made()
		d := plan.Decide(s)
		require.Equal(t, made(), s, "seed %d: the snapshot was changed", seed)
		slices.Reverse(s.Instances)
		require.Equal(t, d, plan.Decide(s), "seed %d: with the workers in another order", seed)
		nodes, bad, stay := 0, 0, len(staying(s))
		for _, w := range s.Instances {
			begun := slices.IndexFunc(d.Repairs, func(r plan.NodeRepair) bool { return r.InstanceID == w.ID })
			if w.Node.Name != "" && !w.Failed {
				nodes++
				if w.Unhealthy.Holds() {
					bad++
				}
			}
			if begun < 0 {
				continue
			}
			stay--
			require.False(t, w.Leaving || w.Failed ||
				s.Now.Before(w.Unhealthy.Since.Add(30*time.Minute)), "seed %d: %+v", seed, w)
			require.False(t, slices.ContainsFunc(d.Targets, func(target plan.Target) bool { return target.InstanceID == w.ID }),
				"seed %d", seed)
		}
		require.Equal(t, stay, d.Workers, "seed %d", seed)
		if len(d.Repairs) > 0 {
			require.Empty(t, s.WorkersErr+d.RepairHeld, "seed %d", seed)
			require.LessOrEqual(t, bad, max(1, nodes/5), "seed %d", seed)
			require.LessOrEqual(t, len(d.Repairs), max(1, nodes/10), "seed %d", seed)
			repairs++
		}
	}
	require.Greater(t, repairs, 300)
}
