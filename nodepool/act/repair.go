package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// unreachableGrace is the grace of pods that are deleted on a node without a kubelet: nobody tells when they have ended.
	unreachableGrace = 30 * time.Second
	// OverdueAfter is how long past the time of a drain the pods of a node without a kubelet are waited for. Their instance is
	// terminated then, and the Node deleted, which is how Kubernetes learns that they do not run any more.
	OverdueAfter = 3 * time.Minute
)

// advanceRepairs drains the workers whose Nodes are unhealthy.
func (e *executor) advanceRepairs(ctx context.Context) error {
	return e.advanceBeside(ctx, &e.Record.Repairs, func(id string) removing {
		return removing{executor: e, action: "repair-" + id, repair: true, find: func() *state.Removal { return e.Record.Repair(id) }}
	})
}

// holdRepair tells whether a repair waits, as what is seen is not known or not to be trusted. One that has not begun to evict pods is
// given up if its node is healthy again, or nothing is to be repaired any more. Later it goes on: the pods have been told to leave.
func (m removing) holdRepair(ctx context.Context, r *state.Removal) (waits bool, err error) {
	if !m.seen.Complete() {
		return true, nil
	}
	if r.State == state.RemovalPlanned || r.State == state.RemovalTainted {
		if why := m.needless(r); why != "" {
			r.Error = why
			m.Event(journal.Event{
				Reason: journal.EventRepairAborted, Instance: r.InstanceID, Node: r.Node, Action: m.action,
				Message: fmt.Sprintf("Node %s takes pods again: %s", r.Node, why),
			})
			return true, m.to(ctx, state.RemovalRestoring)
		}
	}
	s := m.snapshot
	return m.distrusted() || plan.Doubt(s.Pool, s.Instances, s.State.PendingTerminations) != "", nil
}

// needless tells why a node need not be repaired any more, "" if it must.
func (m removing) needless(r *state.Removal) string {
	at := slices.IndexFunc(m.seen.Workers, func(w plan.Worker) bool { return w.InstanceID == r.InstanceID })
	switch {
	case m.seen.Spec.Plan.Deleting:
		return "the WorkerPool is being deleted"
	case m.decision.RepairHeld != "":
		return m.decision.RepairHeld
	case at >= 0 && !m.seen.Workers[at].Unhealthy.Holds():
		return "it is healthy again"
	}
	return ""
}

// unreachable tells whether the kubelet of a node has not been heard of for long, so that nobody tells which of its pods have ended.
// One that says itself that its node is not Ready does.
func (m removing) unreachable(r *state.Removal) bool {
	n := m.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID})
	return n == nil || !slices.ContainsFunc(n.Object.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionUnknown
	})
}

// repairLimits has pods deleted once they have had the time of a drain to be evicted. Those that may run have the time to end that
// they ask for.
func (m removing) repairLimits(r *state.Removal) drain.Limits {
	l := drain.Limits{Force: !r.Began.IsZero() && m.Now().Sub(r.Began) > m.seen.Spec.Drain.Timeout}
	if l.Force && m.unreachable(r) {
		l.Grace = unreachableGrace
	}
	return l
}

// overdue tells whether pods that are left on the node of a repair are not waited for any longer.
func (m removing) overdue(r *state.Removal) bool {
	return m.repair && !r.Began.IsZero() && m.unreachable(r) && m.Now().Sub(r.Began) > m.seen.Spec.Drain.Timeout+OverdueAfter
}
