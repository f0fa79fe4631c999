package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// reclaimGrace is the time after its deadline for which an instance may still exist, before the notice
// is assumed to be a mistake.
const reclaimGrace = 10 * time.Minute

// stopIfObsolete ends, gives up or holds a removal that must not continue as it began, and reports
// whether it did.
func (m removal) stopIfObsolete(ctx context.Context, r *state.Removal) (bool, error) {
	if r.Done() || r.State == state.RemovalRestoring {
		return false, nil
	}
	if m.c.seen.Gone(r.InstanceID) {
		m.c.event(journal.Event{
			Reason: journal.EventVanished, Warning: !m.purpose.urgent, Instance: r.InstanceID, Node: r.Node, Action: m.action,
			Message: fmt.Sprintf("Instance %s disappeared while its node was %s", r.InstanceID,
				strings.ToLower(string(r.State))),
		})
		return true, m.complete(ctx)
	}
	if isControlPlane(m.c, r) {
		return true, m.giveUp(ctx, "it belongs to the control plane")
	}
	if m.purpose.urgent && isExpiredNotice(m.c, r) {
		return true, m.giveUp(ctx, fmt.Sprintf("the cloud has not reclaimed the instance %s after it was to", reclaimGrace))
	}
	if why := mistaken(m.c, r); why != "" {
		return true, m.hold(ctx, why)
	}
	if m.purpose.repair {
		return m.holdRepair(ctx, r)
	}
	return false, nil
}

// holdRepair reports whether a repair waits because observations are unknown or cannot be trusted.
// It gives up a repair that has not begun to evict pods if the node is healthy again, or repairs
// are not allowed any more. Later a repair continues, because its pods are already being evicted.
func (m removal) holdRepair(ctx context.Context, r *state.Removal) (waits bool, err error) {
	if !m.c.seen.Complete() {
		return true, nil
	}
	if r.State == state.RemovalPlanned || r.State == state.RemovalTainted {
		if why := repairObsolete(m.c, r); why != "" {
			r.Error = why
			m.c.event(journal.Event{
				Reason: journal.EventRepairAborted, Instance: r.InstanceID, Node: r.Node, Action: m.action,
				Message: fmt.Sprintf("Node %s takes pods again: %s", r.Node, why),
			})
			return true, m.setState(ctx, state.RemovalRestoring)
		}
	}
	s := m.c.snapshot
	return m.c.distrusted() || plan.Doubt(s.Pool, s.Instances, s.Record.PendingTerminations) != "", nil
}

// mistaken returns why a removal may be about the wrong Node or instance, "" if it is about the
// right ones. Another instance may have taken the node name, another Node the provider id, and tags
// change.
func mistaken(c *cycle, r *state.Removal) string {
	s, seen := c.seen.Known[r.InstanceID]
	if !seen || !c.seen.Complete() {
		return ""
	}
	n := c.seen.NodeNamed(r.Node)
	switch why := c.seen.Ambiguity(s); {
	case why != "":
		return why
	case n != nil && provider.IDOf(n.Object.Spec.ProviderID) != r.InstanceID:
		return fmt.Sprintf("node %s now has the provider id %q, and not that of %s", r.Node,
			n.Object.Spec.ProviderID, r.InstanceID)
	}
	return s.Foreign()
}

// isControlPlane reports whether the node belongs to the control plane, which is never touched.
// That may not have been known when the removal began.
func isControlPlane(c *cycle, r *state.Removal) bool {
	n := c.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID})
	return n != nil && n.ControlPlane()
}

// isExpiredNotice reports whether an instance that the cloud announced to reclaim still exists long
// after, or has only been stopped.
func isExpiredNotice(c *cycle, r *state.Removal) bool {
	s, seen := c.seen.Known[r.InstanceID]
	exists := seen && c.seen.ListErr == nil && (s.Missing.IsZero() || s.Runs())
	ends := s.State == fleet.Leaving && !s.Stopped
	return exists && !ends && c.now().Sub(r.Deadline) > reclaimGrace
}

// repairObsolete returns why a node no longer needs a repair, "" if it does.
func repairObsolete(c *cycle, r *state.Removal) string {
	at := slices.IndexFunc(c.seen.Members, func(i plan.Instance) bool { return i.Worker && i.ID == r.InstanceID })
	switch {
	case c.seen.Spec.Plan.Deleting:
		return "the WorkerPool is being deleted"
	case c.decision.RepairHeld != "":
		return c.decision.RepairHeld
	case at >= 0 && !c.seen.Members[at].Unhealthy.Holds():
		return "it is healthy again"
	}
	return ""
}

// unreachable reports whether the kubelet of a node has not reported for a long time, so that
// nothing reports which of its pods have ended. A kubelet that reports its node as not Ready does
// report that.
func unreachable(c *cycle, r *state.Removal) bool {
	n := c.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID})
	return n == nil || !slices.ContainsFunc(n.Object.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionUnknown
	})
}
