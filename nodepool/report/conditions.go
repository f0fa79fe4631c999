package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// maxFailures is the number of consecutive scale-ups without a joined node after which a pool is not healthy.
const maxFailures = 3

// maxHeld bounds the nodes that a condition names.
const maxHeld = 10

// deleting returns what is left of a pool that is being deleted, and what blocks it; nil for other pools.
func deleting(cycle nodepool.CycleReport) *metav1.Condition {
	d := cycle.Deletion
	if d == nil {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue}
	left := left(d)
	switch {
	case d.Err != "":
		c.Reason, c.Message = "Unknown", "the remaining instances are unknown, so nothing is removed or released: "+d.Err
	case d.Nodes+d.Instances == 0:
		c.Reason = "Confirming"
		c.Message = "nothing is left; this must hold for a few minutes, as the cloud may list instances late"
	case cycle.DryRun:
		c.Reason = "DryRun"
		c.Message = left + ", and a dry run removes nothing: set dryRun to false, or deletionPolicy to Orphan to leave them"
	case cycle.Decision.Reason == plan.TooManyUnready:
		c.Reason, c.Message = "Blocked", left+"; "+cycle.Decision.Message
	case cycle.Record.Action == nil && len(d.Held) > 0:
		c.Reason, c.Message = "Blocked", left+"; "+held(d)
	case len(d.Held) > 0:
		c.Reason, c.Message = "Draining", left+"; "+held(d)
	default:
		c.Reason, c.Message = "Draining", left
	}
	c.Message = clip(c.Message)
	return c
}

// left returns a clause such as "2 nodes and 1 instance without a node are left".
func left(d *nodepool.Deletion) string {
	var parts []string
	if d.Nodes > 0 {
		parts = append(parts, count(d.Nodes, "node"))
	}
	if d.Instances > 0 {
		parts = append(parts, count(d.Instances, "instance")+" without a node")
	}
	verb := "are"
	if d.Nodes+d.Instances == 1 {
		verb = "is"
	}
	return strings.Join(parts, " and ") + " " + verb + " left"
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func held(d *nodepool.Deletion) string {
	text := strings.Join(d.Held[:min(maxHeld, len(d.Held))], "; ")
	if more := len(d.Held) - maxHeld; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// healthy claims only what was achieved: that launches join only if the last ones did.
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
		c.Reason, c.Message = "DryRun", "decisions are reported and not carried out"
	}
	return c
}

// launchTrouble returns why launches fail, "" if they do not. It applies from the first launch that the cloud rejects
// or does not answer until one works, also in cycles without a launch.
func launchTrouble(r state.Record) string {
	if r.Action != nil {
		for _, s := range r.Action.Slots {
			if s.State == state.SlotPlanned && s.Error != "" {
				return fmt.Sprintf("a launch is retried: %s", s.Error)
			}
		}
	}
	switch {
	case r.LaunchError != "" && r.Failures > 0:
		return fmt.Sprintf("no node joined in %s: %s", lastScaleUps(r.Failures), r.LaunchError)
	case r.LaunchError != "":
		return "some launches of the last scale-up failed: " + r.LaunchError
	case r.Failures >= maxFailures:
		return "no node joined in " + lastScaleUps(r.Failures)
	}
	return ""
}

// reached returns the outcome of the launches of a pool without trouble.
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

func forecasting(signals []plan.Signal) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionForecasting, Status: metav1.ConditionTrue, Reason: "Forecasting",
		Message: "every signal has a forecast",
	}
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

// interruptionsReceived returns nil for a pool without Spot instances.
func interruptionsReceived(pool *v1alpha1.WorkerPool) *metav1.Condition {
	_, spec := pool.Spec.Provider.Selected()
	market := pool.Spec.Market
	if ratio := market.SpotRatio; spec == nil || ratio == nil || ratio.IsZero() || market.OnDemandBase >= pool.Spec.Max {
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

// invalidSpec returns the conditions of a pool that does not run.
func invalidSpec(pool *v1alpha1.WorkerPool, why error) []metav1.Condition {
	list := []metav1.Condition{{
		Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: "InvalidSpec", Message: why.Error(),
	}}
	if !pool.DeletionTimestamp.IsZero() {
		list = append(list, metav1.Condition{
			Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: "InvalidSpec",
			Message: "its nodes cannot be removed before the spec is corrected: " +
				"correct it, or set deletionPolicy to Orphan to leave them",
		})
	}
	return list
}
