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

// launchesFail is the number of scale-ups in a row without a joined node after which a pool is not healthy.
const launchesFail = 3

// statusOf returns the status after a cycle, given the one before. A value that is not known is absent.
func statusOf(before v1alpha1.WorkerPoolStatus, pool *v1alpha1.WorkerPool, cycle nodepool.CycleReport) v1alpha1.WorkerPoolStatus {
	next := v1alpha1.WorkerPoolStatus{
		ObservedGeneration: cycle.Generation,
		Conditions:         append([]metav1.Condition(nil), before.Conditions...),
		Decisions:          before.Decisions,
		Action:             actionOf(cycle.Record.Action),
		Terminating:        terminatingOf(cycle),
		Signals:            signalsOf(cycle.Snapshot.Signals),
	}
	next.RemovalCandidates = candidatesOf(cycle.Decision.Candidates, &next)
	if cycle.Decision.Reason != "" {
		next.Decisions = recorded(before.Decisions, cycle.Decision, began(cycle.Events))
	}
	if decided(cycle) {
		next.Desired = number(cycle.Decision.Want)
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
	setIfAny(&next, v1alpha1.ConditionInterruptionsReceived, interruptionsReceived(pool))
	setIfAny(&next, v1alpha1.ConditionDeleting, deleting(cycle))
	return next
}

func rolloutOf(r plan.Rollout) *v1alpha1.PoolRollout {
	return &v1alpha1.PoolRollout{Outdated: int32(r.Outdated), Unknown: int32(r.Unknown), Message: clip(r.Message)}
}

// setIfAny sets a condition that not every pool has, or removes it.
func setIfAny(s *v1alpha1.WorkerPoolStatus, kind string, c *metav1.Condition) {
	if c == nil {
		meta.RemoveStatusCondition(&s.Conditions, kind)
		return
	}
	c.ObservedGeneration = s.ObservedGeneration
	meta.SetStatusCondition(&s.Conditions, *c)
}

// interruptionsReceived returns nil for a pool that asks for no Spot instances.
func interruptionsReceived(pool *v1alpha1.WorkerPool) *metav1.Condition {
	_, spec := pool.Spec.Provider.Selected()
	if ratio := pool.Spec.Market.SpotRatio; spec == nil || ratio == nil || ratio.IsZero() || pool.Spec.Market.OnDemandBase >= pool.Spec.Max {
		return nil
	}
	c := &metav1.Condition{
		Type: v1alpha1.ConditionInterruptionsReceived, Status: metav1.ConditionTrue, Reason: "Receiving",
		Message: "interruption warnings of Spot instances are received",
	}
	if warning := spec.SpotWarning(); warning != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NoInterruptionQueue", warning
	}
	return c
}

func number(n int) *int32 {
	out := int32(n)
	return &out
}

func counts(list []plan.Instance) (all, ready int) {
	for w := range plan.Workers(list) {
		if !w.Counts() {
			continue
		}
		all++
		if w.Ready() {
			ready++
		}
	}
	return all, ready
}

// healthy says no more than what was reached: that launches join of a pool whose last launches have.
func healthy(cycle nodepool.CycleReport) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Working",
		Message: "the cloud, the cluster and the journal are reachable, and " + reached(cycle.Record),
	}
	trouble := launchTrouble(cycle.Record)
	switch {
	case cycle.Health != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Failing", clip(cycle.Health.Error())
	case cycle.Snapshot.WorkersErr != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(plan.WorkersUnknown), clip(cycle.Snapshot.WorkersErr)
	case trouble != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "LaunchesFail", clip(trouble)
	case cycle.DryRun:
		c.Reason, c.Message = "DryRun", "decisions are reported and nothing is done"
	}
	return c
}

// launchTrouble returns why launches fail, "" if they do not. It holds from the first launch that the cloud rejects
// or does not answer until one works, and not only in the cycles that try one.
func launchTrouble(r state.Record) string {
	if r.Action != nil {
		for _, s := range r.Action.Slots {
			if s.State == state.SlotPlanned && s.Error != "" {
				return fmt.Sprintf("a launch is tried again: %s", s.Error)
			}
		}
	}
	switch {
	case r.LaunchError != "" && r.Failures > 0:
		return fmt.Sprintf("no node joined in %s: %s", lastScaleUps(r.Failures), r.LaunchError)
	case r.LaunchError != "":
		return "some launches of the last scale-up failed: " + r.LaunchError
	case r.Failures >= launchesFail:
		return "no node joined in " + lastScaleUps(r.Failures)
	}
	return ""
}

// reached returns what has come of the launches of a pool without trouble.
func reached(r state.Record) string {
	switch {
	case r.Failures > 0:
		return "no node joined in " + lastScaleUps(r.Failures)
	case len(r.Joins) > 0:
		return "launches join"
	}
	return "nothing has been launched yet"
}

func lastScaleUps(n int) string {
	if n == 1 {
		return "the last scale-up"
	}
	return fmt.Sprintf("the last %d scale-ups", n)
}

// clip keeps a message within what an Event may hold, which is less than a condition may, and without line breaks.
func clip(s string) string {
	const most, more = 1024, "…" // bytes
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-len(more)], "") + more
	}
	return s
}

func forecasting(signals []plan.Signal) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionForecasting, Status: metav1.ConditionTrue, Reason: "Forecasting", Message: "every signal has a forecast"}
	var missing []string
	for _, s := range signals {
		if !s.Known {
			missing = append(missing, s.Name+": "+s.Err)
		}
	}
	if len(signals) == 0 {
		missing = []string{"nothing has been observed yet"}
	}
	if len(missing) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(plan.MetricsUnknown), clip(strings.Join(missing, "; "))
	}
	return c
}

func signalsOf(signals []plan.Signal) []v1alpha1.PoolSignalStatus {
	var out []v1alpha1.PoolSignalStatus
	for _, s := range signals {
		status := v1alpha1.PoolSignalStatus{Name: s.Name, Error: clip(s.Err)}
		if s.Known {
			status.Current, status.Predicted = thousandths(s.Now), thousandths(s.Predicted)
			status.Horizon = &metav1.Duration{Duration: s.Horizon}
			if !s.InformsOnly {
				status.Recommended = number(s.Want)
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
		Progress: progressOf(a), Nodes: removedBy(a.Targets),
	}
}

// progressOf says where an action is, such as "1 of 2 Ready, 1 Launched (i-1)".
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
		if names := strings.Join(without(of[in], ""), ", "); names != "" {
			part += " (" + names + ")"
		}
		parts = append(parts, part)
	}
	return clip(strings.Join(parts, ", "))
}

func without(list []string, what string) []string {
	var out []string
	for _, s := range list {
		if s != what {
			out = append(out, s)
		}
	}
	return out
}

// pressing returns whether more than numbers has changed. What others act by is written at once: a scheduler, for example,
// keeps pods from nodes that are being removed.
func pressing(before, after *v1alpha1.WorkerPoolStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || (before.Action == nil) != (after.Action == nil) {
		return true
	}
	if !slices.Equal(before.Terminating, after.Terminating) || !slices.Equal(before.RemovalCandidates, after.RemovalCandidates) {
		return true
	}
	if was, is := before.Action, after.Action; was != nil && (was.ID != is.ID || was.Progress != is.Progress || !slices.Equal(was.Nodes, is.Nodes)) {
		return true
	}
	for _, c := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		told := c.Type == v1alpha1.ConditionDeleting && old != nil && old.Message != c.Message
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || told {
			return true
		}
	}
	return false
}
