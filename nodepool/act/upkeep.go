package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// endPending terminates the instances that are pending termination and whose time has come, and forgets those that stay or have gone.
func (e *executor) endPending(ctx context.Context) error {
	u := e.decision.Upkeep
	var errs []error
	for _, p := range u.Problems {
		errs = append(errs, errors.New(p))
	}
	for _, id := range u.Tag {
		errs = append(errs, e.guard.markJoinFailed(ctx, id))
	}
	for _, f := range u.Forget {
		errs = append(errs, e.forget(ctx, f))
	}
	for _, end := range u.Terminate {
		if err := e.execute(ctx, end); errors.Is(err, journal.ErrLeaseLost) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forget takes an instance out of the journal, once its Node is labelled: a process that starts when the instance is gone finds the
// Node by the label alone.
func (e *executor) forget(ctx context.Context, f plan.Forget) error {
	if err := e.claim(ctx, f.Node); err != nil {
		return err
	}
	if f.Joined {
		e.Event(journal.Event{Reason: journal.EventJoined, Instance: f.InstanceID, Node: f.Node, Message: fmt.Sprintf("Node %s of %s has joined after all", f.Node, f.InstanceID)})
	}
	e.Record.PendingTerminations = slices.DeleteFunc(e.Record.PendingTerminations, func(c state.PendingTermination) bool { return c.InstanceID == f.InstanceID })
	e.Dirty = true
	return nil
}

// execute terminates an instance that the journal still speaks of. If it has a Node that was never Ready, pods that tolerate
// that are evicted first. What is seen of Nodes may be old by now, so that the cluster is asked once more.
func (e *executor) execute(ctx context.Context, end plan.Terminate) error {
	if e.Record.PendingTermination(end.InstanceID) == nil {
		return nil
	}
	var empty bool
	var err error
	switch {
	case end.Stopped:
		empty = true // nothing runs on it
	case end.Node == "":
		empty, err = e.nodeless(ctx, end)
	default:
		empty, err = e.vacate(ctx, end)
	}
	if err != nil || !empty {
		return err
	}
	if err := e.order(ctx, end.InstanceID); err != nil {
		return fmt.Errorf("terminate %s: %w", end.InstanceID, err)
	}
	e.Event(journal.Event{Reason: journal.EventTerminated, Instance: end.InstanceID, Message: fmt.Sprintf("Terminated %s: %s", end.InstanceID, end.Reason)})
	return nil
}

// order tells the cloud to terminate an instance. Whatever lists say from then on, it is no worker any more.
func (e *executor) order(ctx context.Context, id string) error {
	if err := e.guard.terminate(ctx, id); err != nil {
		return err
	}
	e.ended = append(e.ended, id)
	return nil
}

// nodeless tells whether an instance has no Node in truth. That it has one is an error.
func (e *executor) nodeless(ctx context.Context, end plan.Terminate) (bool, error) {
	name, err := e.guard.nodeOf(ctx, fleet.Instance{ID: end.InstanceID, ProviderID: end.ProviderID})
	switch {
	case err != nil:
		return false, fmt.Errorf("instance %s is not terminated: whether it has a node: %w", end.InstanceID, err)
	case name != "":
		return false, fmt.Errorf("instance %s is not terminated: it has node %s, which has not been seen yet", end.InstanceID, name)
	}
	return true, nil
}

// vacate evicts the pods of such a node, and tells whether it is empty. It begins once the mark is seen on the Node:
// what is seen of it then, such as that it is not Ready, is no older than the mark, and no pod is on its way to it.
func (e *executor) vacate(ctx context.Context, end plan.Terminate) (empty bool, err error) {
	if err := e.guard.taint(ctx, end.Node, "condemned"); err != nil || !end.Marked {
		return false, err
	}
	progress, err := e.guard.evict(ctx, end.Node, drain.Limits{})
	return err == nil && progress.Remaining == 0, err
}

// tidyNodes labels the nodes of workers, deletes the Nodes of instances that have gone, and restores nodes that carry the
// mark of an action that is over. What is being removed by now is left alone.
func (e *executor) tidyNodes(ctx context.Context) error {
	u := e.decision.Upkeep
	return errors.Join(
		e.each(ctx, len(u.Restore), func(i int) error { return e.restoreNode(ctx, u.Restore[i]) }),
		e.each(ctx, len(u.Delete), func(i int) error { return e.deleteNode(ctx, u.Delete[i]) }),
		e.each(ctx, len(u.Label), func(i int) error { return e.label(ctx, u.Label[i]) }),
	)
}

func (e *executor) restoreNode(ctx context.Context, r plan.Restore) error {
	if e.Record.Leaves(r.InstanceID) {
		return nil
	}
	err := e.guard.restore(ctx, r.Node)
	if err == nil {
		e.Event(journal.Event{Reason: journal.EventRestored, Node: r.Node, Instance: r.InstanceID, Action: r.Action, Message: r.Message})
	}
	return err
}

func (e *executor) deleteNode(ctx context.Context, n plan.Delete) error {
	if e.Record.Leaves(n.InstanceID) {
		return nil
	}
	err := e.guard.deleteNode(ctx, n.Node, n.ProviderID)
	if err == nil {
		e.Event(journal.Event{
			Reason: journal.EventNodeDeleted, Node: n.Node, Instance: n.InstanceID,
			Message: fmt.Sprintf("Deleted node %s, whose instance has gone", n.Node),
		})
	}
	return err
}

// claim labels the Node of a worker with the pool, unless it has none.
func (e *executor) claim(ctx context.Context, node string) error {
	n := e.seen.NodeNamed(node)
	if n == nil || n.ControlPlane() || n.Object.Labels[cluster.LabelPool] == e.Pool {
		return nil
	}
	return e.label(ctx, node)
}

// label gives a Node the labels that nodes of the pool have, once in a cycle.
func (e *executor) label(ctx context.Context, node string) error {
	if e.labelled[node] {
		return nil
	}
	if err := e.guard.label(ctx, node, config.NodeLabels(e.Pool, e.seen.Spec.Template.Labels)); err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	e.labelled[node] = true
	return nil
}
