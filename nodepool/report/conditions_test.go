package report

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

func TestConditionDeleting(t *testing.T) {
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
		"nodes are drained": {
			left: &nodepool.Deletion{Nodes: 2, Instances: 1}, action: open, reason: "Draining",
			message: "2 nodes and 1 instance without a node are left",
		},
		"a budget blocks one": {left: &nodepool.Deletion{
			Nodes: 1, Held: []string{"a: 1 pods are left, such as shop/cart: its budget allows none"},
		}, action: open,
			reason: "Draining", message: "1 node is left; a: 1 pods are left, such as shop/cart: its budget allows none"},
		"all are blocked": {
			left: &nodepool.Deletion{Instances: 2, Held: []string{"i-1: x", "i-2: y"}}, reason: "Blocked",
			message: "2 instances without a node are left; i-1: x; i-2: y",
		},
		"many are blocked": {
			left: many, reason: "Blocked",
			message: "12 nodes are left; n0: x; n1: x; n2: x; n3: x; n4: x; n5: x; n6: x; n7: x; n8: x; n9: x; and 2 more",
		},
		"in doubt": {left: &nodepool.Deletion{Nodes: 9}, change: func(c *nodepool.CycleReport) {
			c.Decision.Reason, c.Decision.Message = plan.TooManyUnready, "5 of 9 are unready"
		}, reason: "Blocked", message: "9 nodes are left; 5 of 9 are unready"},
		"a dry run": {
			left: &nodepool.Deletion{Nodes: 2}, change: func(c *nodepool.CycleReport) { c.DryRun = true },
			reason: "DryRun", message: "2 nodes are left, and a dry run removes nothing: " +
				"set dryRun to false, or deletionPolicy to Orphan to leave them",
		},
		"nothing is left": {left: &nodepool.Deletion{}, reason: "Confirming",
			message: "nothing is left; this must hold for a few minutes, as the cloud may list instances late"},
		"unknown": {
			left: &nodepool.Deletion{Err: "EC2 is\ndown"}, reason: "Unknown",
			message: "the remaining instances are unknown, so nothing is removed or released: EC2 is down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
			cycle.Deletion, cycle.Record.Action = test.left, test.action
			if test.change != nil {
				test.change(&cycle)
			}
			h.reporter.Report(t.Context(), cycle)
			c := meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting)
			require.NotNil(t, c)
			assert.Equal(
				t, []string{string(metav1.ConditionTrue), test.reason, test.message},
				[]string{string(c.Status), c.Reason, c.Message},
			)
			assert.EqualValues(t, 3, c.ObservedGeneration)
		})
	}
}

func TestOtherPoolsHaveNoConditionDeleting(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
	cycle.Deletion = &nodepool.Deletion{Nodes: 1}
	h.reporter.Report(t.Context(), cycle)
	cycle.Deletion, cycle.At = nil, start.Add(time.Minute)
	h.reporter.Report(t.Context(), cycle)
	assert.Nil(t, meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting))
}

// The progress of a deletion is written at once, although the decision is the same.
func TestProgressOfADeletionIsWrittenAtOnce(t *testing.T) {
	h := newHarness(t)
	cycle := hold(start, plan.PoolDeleted, "the WorkerPool is being deleted")
	for _, left := range []*nodepool.Deletion{{Nodes: 2}, {Nodes: 1}, {Nodes: 1, Held: []string{"a: x"}}, {}} {
		cycle.Deletion = left
		h.reporter.Report(t.Context(), cycle)
		c := meta.FindStatusCondition(h.status(t).Conditions, v1alpha1.ConditionDeleting)
		assert.Equal(t, deleting(cycle).Message, c.Message)
	}
}

func TestInvalidSpec(t *testing.T) {
	h := newHarness(t)
	pool := &v1alpha1.WorkerPool{}
	require.NoError(t, h.client.Get(t.Context(), client.ObjectKey{Name: "workers"}, pool))
	require.NoError(t, InvalidSpec(t.Context(), h.client, pool, errors.New("signals[0]: no server")))
	s := h.status(t)
	assert.JSONEq(t, `{"version":7}`, string(s.Journal.Raw))
	require.Len(t, s.Conditions, 1)
	c := s.Conditions[0]
	assert.Equal(
		t,
		[]any{v1alpha1.ConditionHealthy, metav1.ConditionFalse, "InvalidSpec", "signals[0]: no server", int64(3)},
		[]any{c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration},
	)

	pool.DeletionTimestamp = new(metav1.NewTime(start))
	deleting := invalidSpec(pool, errors.New("x"))
	require.Len(t, deleting, 2)
	assert.Equal(t, v1alpha1.ConditionDeleting, deleting[1].Type)
}
