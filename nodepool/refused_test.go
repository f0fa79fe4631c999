package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// TestFilteredForLoadGetsOneNode: pods for which the scheduler extender filters all nodes get a node although requests
// leave room on those. If the new one is filtered too, no other follows.
func TestFilteredForLoadGetsOneNode(t *testing.T) {
	r := newRig(t)
	r.world.add(2)
	for _, name := range r.nodeNames() {
		r.world.nodes[name].free = true
		r.load(name, &fakePod{name: "busy"})
	}
	r.pend(2)
	r.pass(2 * time.Minute)
	require.Zero(t, r.world.launches, "there is room by requests")

	for i := range r.world.pending {
		r.world.pending[i].Filtered = true
	}
	r.until("a node was launched", time.Minute, func() bool { return r.world.launches == 1 })
	require.Contains(t, r.last.Decision.Message, "the scheduler extender filtered the existing nodes for 2 of them")
	r.until("it has joined", 2*time.Minute, func() bool { return len(r.world.nodes) == 3 })
	for name, n := range r.world.nodes {
		if len(n.pods) == 0 {
			n.free = true
			r.load(name, &fakePod{name: "came-first"})
		}
	}
	r.pass(time.Hour)
	require.Equal(t, 1, r.world.launches)
	require.Equal(t, 2, r.last.Snapshot.Pending.Filtered)
	require.Equal(t, 2, r.last.Snapshot.Pending.Room)
}

// TestRemovalCandidatesGoInOrder: an idle pool names its removal candidates and removes them in
// that order. The cycle that commits to removals reports all of them, though only the first node
// has the taint by then.
func TestRemovalCandidatesGoInOrder(t *testing.T) {
	r := idle(t, 4)
	r.spec.Plan.MaxBatchDown = 2
	r.tick()
	named := r.last.Decision.Candidates
	require.Len(t, named, 3)
	require.Equal(t, plan.NotIdle, r.last.Decision.Reason)
	r.until("it is committed to", 5*time.Minute, func() bool { return r.last.Record.Action != nil })
	last := r.last
	require.Equal(t, named, last.Decision.Candidates)
	for i, target := range last.Record.Action.Targets {
		require.Equal(t, named[i].Node, target.Node)
		require.Equal(t, i == 0, r.world.nodes[target.Node].mark != "")
	}
	r.tick()
	require.Equal(t, named[2:], r.last.Decision.Candidates)
}
