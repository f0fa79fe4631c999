package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

func TestADeletionIsToldInWords(t *testing.T) {
	open := &state.Action{ID: "down-1", Kind: state.ActionDown}
	many := &nodepool.Deletion{Nodes: 12}
	for i := range 12 {
		many.Held = append(many.Held, fmt.Sprintf("n%d: x", i))
	}
	for name, test := range map[string]struct {
		left            *nodepool.Deletion
		action          *state.Action
		change          func(*nodepool.CycleReport)
		reason, message string
	}{
		"nodes go": {left: &nodepool.Deletion{Nodes: 2, Instances: 1}, action: open, reason: "Draining", message: "2 nodes and 1 instance without a node are left"},
		"a budget holds one": {left: &nodepool.Deletion{Nodes: 1, Held: []string{"a: 1 pods are left, such as shop/cart: its budget allows none"}}, action: open,
			reason: "Draining", message: "1 node is left; a: 1 pods are left, such as shop/cart: its budget allows none"},
		"all are held":  {left: &nodepool.Deletion{Instances: 2, Held: []string{"i-1: x", "i-2: y"}}, reason: "Blocked", message: "2 instances without a node are left; i-1: x; i-2: y"},
		"many are held": {left: many, reason: "Blocked", message: "12 nodes are left; n0: x; n1: x; n2: x; n3: x; n4: x; n5: x; n6: x; n7: x; n8: x; n9: x; and 2 more"},
		"in doubt": {left: &nodepool.Deletion{Nodes: 9}, change: func(c *nodepool.CycleReport) {
			c.Decision.Reason, c.Decision.Message = plan.TooManyUnready, "5 of 9 are unready"
		}, reason: "Blocked", message: "9 nodes are left; 5 of 9 are unready"},
		"a dry run": {left: &nodepool.Deletion{Nodes: 2}, change: func(c *nodepool.CycleReport) { c.DryRun = true }, reason: "DryRun",
			message: "2 nodes are left, and a dry run removes nothing: set dryRun to false, or deletionPolicy to Orphan to leave them"},
		"nothing is left": {left: &nodepool.Deletion{}, reason: "Confirming",
			message: "nothing is left, which must stay so for a few minutes, as the cloud may be late to list instances"},
		"it is not known": {left: &nodepool.Deletion{Err: "EC2 is\ndown"}, reason: "Unknown", message: "what is left is not known, so nothing is removed or let go: EC2 is down"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
			cycle.Deletion, cycle.Record.Action = test.left, test.action
			if test.change != nil {
				test.change(&cycle)
			}
			h.reporter.Report(t.Context(), cycle)
			c := meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting)
			require.NotNil(t, c)
			assert.Equal(t, []string{string(metav1.ConditionTrue), test.reason, test.message}, []string{string(c.Status), c.Reason, c.Message})
			assert.EqualValues(t, 3, c.ObservedGeneration)
		})
	}
}

func TestOtherPoolsAreNotDeleting(t *testing.T) {
	h := newHouse(t)
	cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
	cycle.Deletion = &nodepool.Deletion{Nodes: 1}
	h.reporter.Report(t.Context(), cycle)
	cycle.Deletion, cycle.At = nil, start.Add(time.Minute)
	h.reporter.Report(t.Context(), cycle)
	assert.Nil(t, meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting))
}

// What goes and what holds it is told at once, though the decision is the same.
func TestProgressOfADeletionIsToldAtOnce(t *testing.T) {
	h := newHouse(t)
	cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
	for _, left := range []*nodepool.Deletion{{Nodes: 2}, {Nodes: 1}, {Nodes: 1, Held: []string{"a: x"}}, {}} {
		cycle.Deletion = left
		h.reporter.Report(t.Context(), cycle)
		c := meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting)
		assert.Equal(t, deleting(cycle).Message, c.Message)
	}
}
