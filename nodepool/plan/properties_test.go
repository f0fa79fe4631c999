package plan_test

import (
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// staying recounts the workers that count and are not reclaimed.
func staying(s plan.Snapshot) []plan.Instance {
	var out []plan.Instance
next:
	for _, w := range s.Instances {
		if w.Leaving || w.Failed {
			continue
		}
		for _, n := range s.Record.Interruptions {
			if n.InstanceID == w.ID {
				continue next
			}
		}
		out = append(out, w)
	}
	return out
}

// check asserts the invariants of every decision.
func check(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	n := len(staying(s))
	assert.Equal(t, s.Now, d.At)
	assert.Equal(t, n, d.Workers)
	assert.NotEmpty(t, d.Reason)
	assert.NotEmpty(t, d.Message)
	assert.NotContains(t, d.Message, "%!", "a message that cannot be formatted")
	assert.NotEmpty(t, d.Recommendations)
	for i := 1; i < len(d.Recommendations); i++ {
		assert.GreaterOrEqual(t, d.Recommendations[i-1].Nodes, d.Recommendations[i].Nodes, "the largest vote is first")
	}
	assert.False(t, d.IdleSince.After(s.Now), "idle since the future")
	checkCandidates(t, s, d)
	switch d.Step {
	case plan.ScaleUp:
		checkUp(t, s, d)
	case plan.ScaleDown:
		if s.Pool.Deleting {
			checkDeleted(t, s, d)
			return
		}
		checkDown(t, s, d)
	default:
		assert.Equal(t, plan.Hold, d.Step)
		assert.Empty(t, d.Placements)
		assert.Empty(t, d.Targets)
		assert.False(t, d.Urgent)
	}
}

// checkAlternatives asserts that any choice of the cloud equals the placement in all but its
// type, and may be launched now.
func checkAlternatives(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	if d.Reason == plan.Outdated || s.Prices == nil {
		for _, list := range d.Alternatives {
			assert.Empty(t, list)
		}
		return
	}
	require.Len(t, d.Alternatives, len(d.Placements))
	for i, list := range d.Alternatives {
		at := d.Placements[i]
		assert.LessOrEqual(t, len(list), plan.MaxAlternatives)
		assert.NotContains(t, list, at.InstanceType)
		for _, kind := range list {
			offer := fleet.Offer{Zone: at.Zone, Subnet: at.Subnet, InstanceType: at.InstanceType}
			most := 1.5 * *s.Prices[offer].Of(at.Market)
			offer.InstanceType = kind
			require.Contains(t, s.Offers, offer)
			assert.LessOrEqual(t, *s.Prices[offer].Of(at.Market), most)
			only := s
			only.Instances, only.Record.Action, only.Offers, only.Pool.OnDemandBase, only.Pool.SpotRatio = nil,
				nil, []fleet.Offer{offer}, 0, 0
			if at.Market == fleet.Spot {
				only.Pool.SpotRatio = 1
			}
			at.InstanceType = kind
			assert.Equal(t, []fleet.Placement{at}, plan.Place(only, 1), "it is cooling")
		}
	}
}

func checkUp(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	launched := len(d.Placements)
	assert.Empty(t, s.WorkersErr, "launched on a count that is not to be trusted")
	assert.NotZero(t, launched)
	assert.Empty(t, d.Targets)
	assert.Equal(t, d.Workers+planned(s)+launched, d.Desired)
	assert.LessOrEqual(t, d.Desired, s.Pool.Max, "above the maximum")
	checkAlternatives(t, s, d)
	if s.Pool.MaxBatchUp > 0 {
		assert.LessOrEqual(t, launched, s.Pool.MaxBatchUp, "above the batch")
	}
	if s.Record.Failures > 0 {
		assert.Equal(t, 1, launched, "one try while launches fail")
	}
	if s.Record.ActionKind() == state.ActionUp {
		assert.LessOrEqual(t, launched, max(0, s.Pool.Batch()-len(s.Record.Action.Slots)), "two scale-ups at once")
		assert.Empty(t, s.Record.Interruptions)
		assert.False(t, d.Urgent)
		return
	}
	assert.Equal(t, d.Reason == plan.BelowMinimum || d.Reason == plan.Interrupted, d.Urgent)
	if !d.Urgent {
		assert.Empty(t, s.Record.Action)
		for _, last := range []time.Time{s.Record.LastUp, s.Record.LastDown} {
			assert.False(t, d.Reason != plan.Outdated && !last.IsZero() &&
				max(0, s.Now.Sub(last)) < s.Pool.CooldownUp, "within the cooldown")
		}
	}
	if d.Reason == plan.Outdated {
		assert.LessOrEqual(t, launched, s.Disruption.Nodes, "above the budget")
		assert.False(t, s.Disruption.Paused)
	}
	for _, p := range d.Placements {
		assert.Contains(t, s.Offers, fleet.Offer{Zone: p.Zone, Subnet: p.Subnet, InstanceType: p.InstanceType})
		for _, c := range s.Record.Cooling {
			assert.False(t, c.Until.After(s.Now) && c.Until.Before(s.Now.Add(time.Hour)) &&
				c.Zone == p.Zone && c.InstanceType == p.InstanceType && c.Market == p.Market, "a placement that is cooling: %v", p)
		}
	}
}

// planned are the nodes that an open scale-up has yet to launch.
func planned(s plan.Snapshot) int {
	if s.Record.ActionKind() != state.ActionUp {
		return 0
	}
	return len(s.Record.PlannedAt()) + len(s.Record.Lost())
}

func checkDown(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	removed := len(d.Targets)
	assert.Empty(t, s.WorkersErr)
	assert.NotZero(t, removed)
	assert.Empty(t, d.Placements)
	assert.Equal(t, d.Workers-removed, d.Desired)
	assert.GreaterOrEqual(t, d.Desired, s.Pool.Min, "below the minimum")
	if d.Reason == plan.Outdated || d.Reason == plan.Underutilized {
		assert.LessOrEqual(t, removed, s.Disruption.Nodes, "above the budget")
	} else {
		assert.LessOrEqual(t, removed, max(1, s.Pool.MaxBatchDown), "above the batch")
	}
	assert.Empty(t, s.Record.Action, "during an open action")
	for _, last := range []time.Time{s.Record.LastUp, s.Record.LastDown, s.Record.LastSwap} {
		assert.False(t, d.Reason != plan.Outdated && !last.IsZero() &&
			max(0, s.Now.Sub(last)) < s.Pool.CooldownDown, "within the cooldown")
	}
	assert.True(t, s.Pending.Known, "without knowing pods")
	need := 0
	for _, signal := range s.Signals {
		assert.True(t, signal.Known, "without knowing %s", signal.Name)
		if !signal.InformsOnly {
			need = max(need, signal.Fits)
		}
	}

	before, after, ready, zones, spot, onDemand := map[string]int{}, map[string]int{}, 0, 0, 0, 0
	byID := map[string]plan.Instance{}
	for _, w := range staying(s) {
		byID[w.ID] = w
		if w.Ready() {
			if after[w.Zone] == 0 {
				zones++
			}
			before[w.Zone]++
			after[w.Zone]++
			ready++
		}
		if w.Market == fleet.Spot {
			spot++
		} else {
			onDemand++
		}
	}
	onDemandBefore := onDemand
	kept := map[string]bool{} // zones in which something is launched, or from which one goes that is not outdated
	for _, o := range s.Offers {
		kept[o.Zone] = true
	}
	for _, target := range d.Targets {
		w, ok := byID[target.InstanceID]
		require.True(t, ok, "a worker that there is not, or that goes twice: %v", target)
		delete(byID, target.InstanceID)
		assert.Equal(t, w.Node.Name, target.Node)
		assert.True(t, d.Reason != plan.Outdated || w.Outdated != "", "it is not outdated")
		assert.True(t, w.Ready() && w.Known && w.Blocked == "" && !s.Record.DrainBackoff[w.ID].After(s.Now), "%+v", w)
		after[w.Zone]--
		kept[w.Zone] = kept[w.Zone] || w.Outdated == "" || len(s.Offers) == 0
		if w.Market != fleet.Spot {
			onDemand--
		}
	}
	if s.Pool.Min >= zones {
		for zone, n := range before {
			assert.True(t, !kept[zone] || n == 0 || zones == 1 || after[zone] > 0, "zone %s is left without", zone)
		}
	}
	assert.True(t, spot == 0 || onDemand >= min(s.Pool.OnDemandBase, onDemandBefore), "fewer On-Demand than the base")
	switch d.Reason {
	case plan.Outdated:
		assert.Zero(t, s.Pending.Pods)
		assert.False(t, s.Disruption.Paused)
		needs := s.Pool.Min
		for _, signal := range s.Signals {
			if !signal.InformsOnly {
				needs = max(needs, signal.Needs)
			}
		}
		assert.GreaterOrEqual(t, ready-removed, needs, "fewer than are needed")
	case plan.PoolIdle, plan.Underutilized:
		assert.Zero(t, s.Pending.Pods)
		assert.Zero(t, s.Pending.Due)
		since := s.Record.IdleSince
		if d.Reason == plan.Underutilized {
			since = s.Record.SpareSince
			assert.True(t, s.Pool.Consolidate && !s.Disruption.Paused)
		}
		assert.False(t, max(0, s.Now.Sub(since)) < s.Pool.Idle.For)
		assert.GreaterOrEqual(t, d.Desired, d.Recommended, "fewer than a voice asks for")
		assert.GreaterOrEqual(t, ready-removed, need, "the rest would carry too much")
	default:
		assert.Equal(t, plan.AboveMaximum, d.Reason)
		assert.GreaterOrEqual(t, d.Desired, s.Pool.Max)
	}
}

func checkDeleted(t *testing.T, s plan.Snapshot, d plan.Decision) {
	t.Helper()
	assert.Equal(t, plan.PoolDeleted, d.Reason)
	assert.Empty(t, s.WorkersErr)
	assert.Empty(t, s.Record.Action, "during an open action")
	assert.Zero(t, d.Desired)
	assert.Empty(t, d.Placements)
	byID := map[string]plan.Instance{}
	unready := 0
	for _, w := range staying(s) {
		byID[w.ID] = w
		if !w.Node.Ready {
			unready++
		}
	}
	assert.False(t, unready > plan.DefaultDistrustCount && float64(unready) > plan.DefaultDistrustShare*float64(len(byID)))
	for _, target := range d.Targets {
		w, ok := byID[target.InstanceID]
		require.True(t, ok, "a worker that there is not, or that goes twice: %v", target)
		delete(byID, target.InstanceID)
		assert.True(t, w.Node.Name == target.Node && w.Node.Name != "" && w.Blocked == "" &&
			!s.Record.DrainBackoff[w.ID].After(s.Now), "%+v", w)
	}
	for _, w := range byID {
		assert.True(t, w.Node.Name == "" || w.Blocked != "" ||
			s.Record.DrainBackoff[w.ID].After(s.Now), "it could go: %+v", w)
	}
}
