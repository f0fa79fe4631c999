package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// statusOf returns the status after a cycle, from the previous one. Unknown values are absent.
func statusOf(
	old v1alpha1.WorkerPoolStatus, pool *v1alpha1.WorkerPool, cycle nodepool.CycleReport,
) v1alpha1.WorkerPoolStatus {
	next := v1alpha1.WorkerPoolStatus{
		ObservedGeneration: cycle.Generation,
		Conditions:         append([]metav1.Condition(nil), old.Conditions...),
		Decisions:          old.Decisions,
		Action:             actionOf(cycle.Record.Action),
		Terminating:        terminatingOf(cycle),
		Signals:            signalsOf(cycle.Snapshot.Signals),
	}
	next.RemovalCandidates = candidatesOf(cycle.Decision.Candidates, &next)
	if cycle.Decision.Reason != "" {
		next.Decisions = recordDecision(old.Decisions, cycle.Decision, began(cycle.Events))
	}
	if decided(cycle) {
		next.Desired = number(cycle.Decision.Desired)
	}
	if workersKnown(cycle) {
		next.Rollout = rolloutOf(cycle.Decision.Rollout)
		workers, ready := counts(cycle.Snapshot.Instances)
		next.Workers, next.ReadyWorkers = number(workers), number(ready)
	}
	if cycle.Snapshot.Pending.Known {
		next.PendingPods = number(cycle.Snapshot.Pending.Pods)
	}
	if cycle.StartupTime > 0 {
		next.StartupTime = &metav1.Duration{Duration: cycle.StartupTime.Round(time.Second)}
	}
	for _, c := range []metav1.Condition{healthy(cycle), forecasting(cycle.Snapshot.Signals)} {
		c.ObservedGeneration = cycle.Generation
		meta.SetStatusCondition(&next.Conditions, c)
	}
	setOptional(&next, v1alpha1.ConditionInterruptionsReceived, interruptionsReceived(pool))
	setOptional(&next, v1alpha1.ConditionDeleting, deleting(cycle))
	return next
}

func rolloutOf(r plan.Rollout) *v1alpha1.PoolRollout {
	return &v1alpha1.PoolRollout{Outdated: int32(r.Outdated), Unknown: int32(r.Unknown), Message: clip(r.Message)}
}

// setOptional sets a condition that not every pool has, or removes it if c is nil.
func setOptional(s *v1alpha1.WorkerPoolStatus, kind string, c *metav1.Condition) {
	if c == nil {
		meta.RemoveStatusCondition(&s.Conditions, kind)
		return
	}
	c.ObservedGeneration = s.ObservedGeneration
	meta.SetStatusCondition(&s.Conditions, *c)
}

func number(n int) *int32 {
	out := int32(n)
	return &out
}

func signalsOf(signals []plan.Signal) []v1alpha1.PoolSignalStatus {
	var out []v1alpha1.PoolSignalStatus
	for _, s := range signals {
		status := v1alpha1.PoolSignalStatus{Name: s.Name, Error: clip(s.Err)}
		if s.Known {
			status.Current, status.Predicted = thousandths(s.Now), thousandths(s.Predicted)
			status.Horizon = &metav1.Duration{Duration: s.Horizon}
			if !s.InformsOnly {
				status.Recommended = number(s.Desired)
			}
		}
		out = append(out, status)
	}
	return out
}

// thousandths returns nil for a value that a quantity cannot hold.
func thousandths(v float64) *resource.Quantity {
	if math.IsNaN(v) || math.Abs(v) > 1e15 {
		return nil
	}
	return resource.NewMilliQuantity(int64(math.Round(v*1000)), resource.DecimalSI)
}

func actionOf(a *state.Action) *v1alpha1.PoolAction {
	if a == nil {
		return nil
	}
	return &v1alpha1.PoolAction{
		ID: a.ID, Kind: string(a.Kind), Started: metav1.NewTime(a.Started.Truncate(time.Second)),
		Progress: progressOf(a), Nodes: nodesOf(a.Targets),
	}
}

// progressOf returns how many nodes of an action are in which state, such as "1 Ready (i-1), 1 Planned".
func progressOf(a *state.Action) string {
	of := map[string][]string{}
	var order []string
	add := func(in, instance string) {
		if _, ok := of[in]; !ok {
			order = append(order, in)
		}
		of[in] = append(of[in], instance)
	}
	for _, s := range a.Slots {
		add(string(s.State), s.InstanceID)
	}
	for _, r := range a.Targets {
		add(string(r.State), r.InstanceID)
	}
	parts := make([]string, 0, len(order))
	for _, in := range order {
		part := fmt.Sprintf("%d %s", len(of[in]), in)
		if names := strings.Join(nonEmpty(of[in]), ", "); names != "" {
			part += " (" + names + ")"
		}
		parts = append(parts, part)
	}
	return clip(strings.Join(parts, ", "))
}

func nonEmpty(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}
