package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// removals returns a removal for each state.
func removals(of ...string) []state.Removal {
	var out []state.Removal
	for _, in := range of {
		out = append(out, state.Removal{InstanceID: "i-" + in, Node: "n-" + in, State: state.RemovalState(in)})
	}
	return out
}

func down(at time.Time, targets ...state.Removal) nodepool.CycleReport {
	cycle := hold(at, plan.ActionOpen, "a scale-down is open")
	cycle.Record.Action = &state.Action{ID: "down-1", Kind: state.ActionDown, Started: start, Targets: targets}
	return cycle
}

func TestNodesOfRemovals(t *testing.T) {
	h := newHarness(t)
	every := removals("Planned", "Tainted", "Draining", "Drained", "Terminated", "Completed", "Restoring", "Failed")
	cycle := down(start, every...)
	cycle.Decision.Candidates = []plan.Target{
		{Node: "n-Planned"}, {Node: "next"}, {Node: "n-Terminated"}, {Node: "cordoned"},
	}
	cycle.Record.Interruptions = append(
		removals("Planned", "Draining", "Restoring"), state.Removal{InstanceID: "i-1", State: state.RemovalPlanned},
		state.Removal{InstanceID: "i-gone", State: state.RemovalPlanned},
	)
	for i, node := range []string{"taken", "taken", "restored"} {
		cycle.Record.Interruptions[i].Node = node
	}
	cycle.Record.Repairs = []state.Removal{
		{InstanceID: "i-unhealthy", Node: "unhealthy", State: state.RemovalDraining},
		{Node: "recovered", State: state.RemovalRestoring},
	}
	cycle.Record.Endings = []state.Removal{{InstanceID: "i-ends", Node: "ends", State: state.RemovalTerminated}}
	cycle.Record.PendingTerminations = []state.PendingTermination{{InstanceID: "i-broken"}, {InstanceID: "i-without"}}
	cycle.Snapshot.Instances = append(cycle.Snapshot.Instances, plan.Instance{
		Instance: fleet.Instance{ID: "i-broken"}, Worker: true, Node: plan.Node{Name: "broken"}, Failed: true,
	})
	h.reporter.Report(t.Context(), cycle)
	s := h.status(t)
	assert.Equal(t, []string{"n-Planned", "n-Tainted", "n-Draining", "n-Drained", "n-Terminated"}, s.Action.Nodes)
	assert.Equal(
		t, []string{"taken", "a", "unhealthy", "ends", "broken"}, s.Terminating,
		"each once, with a, which the snapshot has as the node of i-1",
	)
	assert.Equal(t, []string{"next", "cordoned"}, s.RemovalCandidates)

	h.reporter.Report(t.Context(), hold(start.Add(time.Second), plan.ActionOpen, "a scale-down is open"))
	s = h.status(t)
	assert.Nil(t, s.Action)
	assert.Empty(t, s.Terminating)
	assert.Empty(t, s.RemovalCandidates)
}

func TestScaleUpRemovesNoNodes(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.ActionOpen, "a scale-up is open")
	cycle.Record.Action = &state.Action{
		ID: "up-1", Kind: state.ActionUp, Started: start, Slots: []state.Slot{{State: state.SlotReady, Node: "new"}},
	}
	h.reporter.Report(t.Context(), cycle)
	assert.Empty(t, h.status(t).Action.Nodes)
}

// TestNodesAreWrittenAtOnce: other programs act on them, unlike numbers.
func TestNodesAreWrittenAtOnce(t *testing.T) {
	cycle := func(at time.Time) nodepool.CycleReport { return down(at, removals("Draining", "Planned")...) }
	for name, change := range map[string]func(*nodepool.CycleReport){
		"a restored target": func(n *nodepool.CycleReport) { n.Record.Action.Targets[1].State = state.RemovalFailed },
		"a candidate":       func(n *nodepool.CycleReport) { n.Decision.Candidates = []plan.Target{{Node: "next"}} },
		"an interruption":   func(n *nodepool.CycleReport) { n.Record.Interruptions = removals("Planned") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.reporter.Report(t.Context(), cycle(start))
			before := h.status(t)
			same := cycle(start.Add(time.Second))
			same.Snapshot.Pending.Pods++
			h.reporter.Report(t.Context(), same)
			require.Equal(t, before, h.status(t), "a number is written later")
			next := cycle(start.Add(2 * time.Second))
			change(&next)
			h.reporter.Report(t.Context(), next)
			after := h.status(t)
			assert.NotEqual(
				t, [][]string{before.Action.Nodes, before.Terminating, before.RemovalCandidates},
				[][]string{after.Action.Nodes, after.Terminating, after.RemovalCandidates},
			)
		})
	}
}

// TestFullStatusIsValid: the API server rejects a status whose lists are too long.
func TestFullStatusIsValid(t *testing.T) {
	cycle := down(start)
	for i := range plan.MaxBatch {
		cycle.Record.Action.Targets = append(
			cycle.Record.Action.Targets, state.Removal{Node: fmt.Sprintf("target-%d", i), State: state.RemovalPlanned},
		)
		cycle.Record.Interruptions = append(
			cycle.Record.Interruptions, state.Removal{Node: fmt.Sprintf("taken-%d", i%400), State: state.RemovalPlanned},
		)
	}
	for i := range plan.MaxCandidates {
		cycle.Decision.Candidates = append(cycle.Decision.Candidates, plan.Target{Node: fmt.Sprintf("next-%d", i)})
	}
	pool := v1alpha1.WorkerPool{}
	pool.Name, pool.Spec.Max = "workers", 1
	pool.Spec.Provider.Simulated = &v1alpha1.SimulatedProvider{}
	pool.Spec.Default()
	pool.APIVersion, pool.Kind = v1alpha1.GroupVersion.String(), "WorkerPool"
	pool.Status = statusOf(pool.Status, &pool, cycle)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pool)
	require.NoError(t, err)
	crd := crdtest.Load(t, "../../manifests/crds/foresail.dev_workerpools.yaml")
	assert.Empty(t, crd.Validate(object))
	status := object["status"].(map[string]any)
	assert.Len(t, status["removalCandidates"], plan.MaxCandidates)
	assert.Len(t, status["terminating"], 400)

	status["removalCandidates"] = append(status["removalCandidates"].([]any), "one-more")
	assert.NotEmpty(t, crd.Validate(object))
}
