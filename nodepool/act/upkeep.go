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

// upkeep tidies up instances and Nodes that belong to no action.
type upkeep struct{ c *cycle }

// endPending terminates the instances that are pending termination and whose time has come, and
// forgets those that stay or have gone.
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

// forget takes an instance out of the journal, once its Node is labelled: a process that starts
// when the instance is gone finds the Node by the label alone.
func (k upkeep) forget(ctx context.Context, f plan.Forget) error {
	if err := k.c.labels.claim(ctx, f.Node); err != nil {
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

// execute terminates an instance that the journal still speaks of. If it has a Node that was never
// Ready, pods that tolerate that are evicted first. What is seen of Nodes may be old by now, so
// that the cluster is asked once more.
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
		empty, err = k.nodeless(ctx, end)
	default:
		empty, err = k.vacate(ctx, end)
	}
	if err != nil || !empty {
		return err
	}
	if err := k.c.order(ctx, end.InstanceID); err != nil {
		return fmt.Errorf("terminate %s: %w", end.InstanceID, err)
	}
	k.c.event(journal.Event{Reason: journal.EventTerminated, Instance: end.InstanceID,
		Message: fmt.Sprintf("Terminated %s: %s", end.InstanceID, end.Reason)})
	return nil
}

// nodeless tells whether an instance has no Node in truth. That it has one is an error.
func (k upkeep) nodeless(ctx context.Context, end plan.Terminate) (bool, error) {
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

// vacate evicts the pods of such a node, and tells whether it is empty. It begins once the mark is seen on the Node:
// what is seen of it then, such as that it is not Ready, is no older than the mark, and no pod is on its way to it.
func (k upkeep) vacate(ctx context.Context, end plan.Terminate) (empty bool, err error) {
	if err := k.c.nodes.taint(ctx, end.Node, "condemned"); err != nil || !end.Marked {
		return false, err
	}
	progress, err := k.c.nodes.evict(ctx, end.Node, drain.Limits{})
	return err == nil && progress.Remaining == 0, err
}

// tidyNodes labels the nodes of workers, deletes the Nodes of instances that have gone, and
// restores nodes that carry the mark of an action that is over. What is being removed by now is
// left alone.
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
			Message: fmt.Sprintf("Deleted node %s, whose instance has gone", n.Node),
		})
	}
	return err
}
