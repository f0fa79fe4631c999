package tell

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
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// removals has one removal for each node, in the state of its name.
func removals(of ...string) []state.Removal {
	var out []state.Removal
	for _, in := range of {
		out = append(out, state.Removal{InstanceID: "i-" + in, Node: "n-" + in, State: state.RemovalState(in)})
	}
	return out
}

func down(at time.Time, targets ...state.Removal) nodepool.Told {
	told := hold(at, plan.ActionOpen, "a scale-down is open")
	told.Record.Action = &state.Action{ID: "down-1", Kind: plan.ActionDown, Started: start, Targets: targets}
	return told
}

func TestNodesThatAreCommittedToAreNamed(t *testing.T) {
	h := newHouse(t)
	every := removals("Planned", "Tainted", "Draining", "Drained", "Terminated", "Completed", "Restoring", "Failed")
	told := down(start, every...)
	told.Decision.Candidates = []plan.Target{{Node: "n-Planned"}, {Node: "next"}, {Node: "n-Terminated"}, {Node: "cordoned"}}
	told.Record.Interruptions = append(removals("Planned", "Draining", "Restoring"), state.Removal{InstanceID: "i-1", State: state.RemovalPlanned}, state.Removal{InstanceID: "i-gone", State: state.RemovalPlanned})
	told.Record.Interruptions[0].Node, told.Record.Interruptions[1].Node, told.Record.Interruptions[2].Node = "taken", "taken", "given back"
	told.Record.Condemned = []state.Condemned{{InstanceID: "i-broken"}, {InstanceID: "i-without"}}
	told.Snapshot.Workers = append(told.Snapshot.Workers, plan.Worker{InstanceID: "i-broken", Node: "broken", Failed: true})
	h.teller.Tell(t.Context(), told)
	s := h.status(t)
	assert.Equal(t, []string{"n-Planned", "n-Tainted", "n-Draining", "n-Drained", "n-Terminated"}, s.Action.Nodes)
	assert.Equal(t, []string{"taken", "a", "broken"}, s.Terminating, "each once, and a as the snapshot knows the node of i-1")
	assert.Equal(t, []string{"next", "cordoned"}, s.RemovalCandidates)

	h.teller.Tell(t.Context(), hold(start.Add(time.Second), plan.ActionOpen, "a scale-down is open"))
	s = h.status(t)
	assert.Nil(t, s.Action)
	assert.Empty(t, s.Terminating)
	assert.Empty(t, s.RemovalCandidates)
}

func TestAScaleUpRemovesNothing(t *testing.T) {
	h := newHouse(t)
	told := hold(start, plan.ActionOpen, "a scale-up is open")
	told.Record.Action = &state.Action{ID: "up-1", Kind: plan.ActionUp, Started: start, Slots: []state.Slot{{State: state.SlotReady, Node: "new"}}}
	h.teller.Tell(t.Context(), told)
	assert.Empty(t, h.status(t).Action.Nodes)
}

// TestNodesAreToldAtOnce: others act by them, so that they do not wait as numbers do.
func TestNodesAreToldAtOnce(t *testing.T) {
	told := func(at time.Time) nodepool.Told { return down(at, removals("Draining", "Planned")...) }
	for name, change := range map[string]func(*nodepool.Told){
		"a target that is given back": func(n *nodepool.Told) { n.Record.Action.Targets[1].State = state.RemovalFailed },
		"a candidate":                 func(n *nodepool.Told) { n.Decision.Candidates = []plan.Target{{Node: "next"}} },
		"an interruption":             func(n *nodepool.Told) { n.Record.Interruptions = removals("Planned") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.teller.Tell(t.Context(), told(start))
			before := h.status(t)
			same := told(start.Add(time.Second))
			same.Snapshot.Pending.Pods++
			h.teller.Tell(t.Context(), same)
			require.Equal(t, before, h.status(t), "a number waits")
			next := told(start.Add(2 * time.Second))
			change(&next)
			h.teller.Tell(t.Context(), next)
			after := h.status(t)
			assert.NotEqual(t, [][]string{before.Action.Nodes, before.Terminating, before.RemovalCandidates}, [][]string{after.Action.Nodes, after.Terminating, after.RemovalCandidates})
		})
	}
}

// TestFullStatusIsTaken: the API server would refuse a status whose lists it does not allow, and nothing would be told.
func TestFullStatusIsTaken(t *testing.T) {
	told := down(start)
	for i := range plan.MaxBatch {
		told.Record.Action.Targets = append(told.Record.Action.Targets, state.Removal{Node: fmt.Sprintf("target-%d", i), State: state.RemovalPlanned})
		told.Record.Interruptions = append(told.Record.Interruptions, state.Removal{Node: fmt.Sprintf("taken-%d", i%400), State: state.RemovalPlanned})
	}
	for i := range plan.MaxCandidates {
		told.Decision.Candidates = append(told.Decision.Candidates, plan.Target{Node: fmt.Sprintf("next-%d", i)})
	}
	pool := v1alpha1.WorkerPool{}
	pool.Name, pool.Spec.Max = "workers", 1
	pool.Spec.Provider.Simulated = &v1alpha1.SimulatedProvider{}
	pool.Spec.Default()
	pool.APIVersion, pool.Kind = v1alpha1.GroupVersion.String(), "WorkerPool"
	pool.Status = statusOf(pool.Status, &pool, told)
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
