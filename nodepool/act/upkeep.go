package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// upkeep tidies instances and Nodes that belong to no action.
type upkeep struct{ c *cycle }

// endPending carries out pending terminations that are due, and drops those that are obsolete.
func (k upkeep) endPending(ctx context.Context) error {
	u := k.c.decision.Upkeep
	var errs []error
	for _, p := range u.Problems {
		errs = append(errs, errors.New(p))
	}
	for _, id := range u.Tag {
		errs = append(errs, k.c.cloud.markJoinFailed(ctx, id))
	}
	for _, f := range u.Forget {
		errs = append(errs, k.forget(ctx, f))
	}
	for _, end := range u.Terminate {
		if err := k.execute(ctx, end); errors.Is(err, journal.ErrLeaseLost) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forget drops a pending termination, after its Node has been labelled: a process that starts when
// the instance is gone finds the Node only by the label.
func (k upkeep) forget(ctx context.Context, f plan.Forget) error {
	if err := k.c.labels.ensureLabelled(ctx, f.Node); err != nil {
		return err
	}
	if f.Joined {
		k.c.event(journal.Event{Reason: journal.EventJoined, Instance: f.InstanceID, Node: f.Node,
			Message: fmt.Sprintf("Node %s of %s has joined after all", f.Node, f.InstanceID)})
	}
	k.c.record.PendingTerminations = slices.DeleteFunc(k.c.record.PendingTerminations,
		func(c state.PendingTermination) bool { return c.InstanceID == f.InstanceID })
	k.c.changed()
	return nil
}

// execute terminates an instance of a pending termination. If it has a Node that was never Ready,
// pods that tolerate that are evicted first. The observation may be outdated by now, so it reads
// the cluster once more.
func (k upkeep) execute(ctx context.Context, end plan.Terminate) error {
	if k.c.record.PendingTermination(end.InstanceID) == nil {
		return nil
	}
	var empty bool
	var err error
	switch {
	case end.Stopped:
		empty = true // nothing runs on it
	case end.Node == "":
		empty, err = k.hasNoNode(ctx, end)
	default:
		empty, err = k.evictAll(ctx, end)
	}
	if err != nil || !empty {
		return err
	}
	if err := k.c.orderTermination(ctx, end.InstanceID); err != nil {
		return fmt.Errorf("terminate %s: %w", end.InstanceID, err)
	}
	k.c.event(journal.Event{Reason: journal.EventTerminated, Instance: end.InstanceID,
		Message: fmt.Sprintf("Terminated %s: %s", end.InstanceID, end.Reason)})
	return nil
}

// hasNoNode reports whether an instance really has no Node. It is an error if it has one.
func (k upkeep) hasNoNode(ctx context.Context, end plan.Terminate) (bool, error) {
	name, err := k.c.nodes.nodeOf(ctx, fleet.Instance{ID: end.InstanceID, ProviderID: end.ProviderID})
	switch {
	case err != nil:
		return false, fmt.Errorf("instance %s is not terminated: whether it has a node: %w", end.InstanceID, err)
	case name != "":
		return false, fmt.Errorf("instance %s is not terminated: it has node %s, which has not been seen yet", end.InstanceID,
			name)
	}
	return true, nil
}

// evictAll evicts the pods of such a node, and reports whether it is empty. It starts once the mark
// is seen on the Node: the rest of that observation, such as that it is not Ready, is then no older
// than the mark, and no pod is being bound to it.
func (k upkeep) evictAll(ctx context.Context, end plan.Terminate) (empty bool, err error) {
	if err := k.c.nodes.taint(ctx, end.Node, "termination"); err != nil || !end.Marked {
		return false, err
	}
	progress, err := k.c.nodes.evict(ctx, end.Node, drain.Limits{})
	return err == nil && progress.Remaining == 0, err
}

// tidyNodes labels the nodes of workers, deletes the Nodes of instances that are gone, and
// uncordons nodes with the mark of an action that is over. It leaves alone what is being removed by
// now.
func (k upkeep) tidyNodes(ctx context.Context) error {
	u := k.c.decision.Upkeep
	return errors.Join(
		k.c.each(ctx, len(u.Restore), func(i int) error { return k.restoreNode(ctx, u.Restore[i]) }),
		k.c.each(ctx, len(u.Delete), func(i int) error { return k.deleteNode(ctx, u.Delete[i]) }),
		k.c.each(ctx, len(u.Label), func(i int) error { return k.c.labels.label(ctx, u.Label[i]) }),
	)
}

func (k upkeep) restoreNode(ctx context.Context, r plan.Restore) error {
	if k.c.record.Leaves(r.InstanceID) {
		return nil
	}
	err := k.c.nodes.restore(ctx, r.Node)
	if err == nil {
		k.c.event(journal.Event{Reason: journal.EventRestored, Node: r.Node, Instance: r.InstanceID,
			Action: r.Action, Message: r.Message})
	}
	return err
}

func (k upkeep) deleteNode(ctx context.Context, n plan.Delete) error {
	if k.c.record.Leaves(n.InstanceID) {
		return nil
	}
	err := k.c.nodes.deleteNode(ctx, n.Node, n.ProviderID)
	if err == nil {
		k.c.event(journal.Event{
			Reason: journal.EventNodeDeleted, Node: n.Node, Instance: n.InstanceID,
			Message: fmt.Sprintf("Deleted node %s, whose instance is gone", n.Node),
		})
	}
	return err
}
