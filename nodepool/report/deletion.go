package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/plan"
)

// maxHeld is how many nodes a condition names.
const maxHeld = 10

// deleting says what is left of a pool that is being deleted, and what holds it; nil for one that is not.
func deleting(cycle nodepool.CycleReport) *metav1.Condition {
	d := cycle.Deletion
	if d == nil {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue}
	left := left(d)
	switch {
	case d.Err != "":
		c.Reason, c.Message = "Unknown", "what is left is not known, so nothing is removed or let go: "+d.Err
	case d.Nodes+d.Instances == 0:
		c.Reason, c.Message = "Confirming", "nothing is left, which must stay so for a few minutes, as the cloud may be late to list instances"
	case cycle.DryRun:
		c.Reason, c.Message = "DryRun", left+", and a dry run removes nothing: set dryRun to false, or deletionPolicy to Orphan to leave them"
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

// left is such as "2 nodes and 1 instance without a node are left".
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
