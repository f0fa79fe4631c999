package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// endCondemned terminates the condemned instances whose time has come, and forgets those that stay or have gone.
func (t *cycle) endCondemned(ctx context.Context) error {
	u := t.decision.Upkeep
	var errs []error
	for _, p := range u.Problems {
		errs = append(errs, errors.New(p))
	}
	for _, id := range u.Tag {
		errs = append(errs, t.act.markJoinFailed(ctx, id))
	}
	for _, f := range u.Forget {
		errs = append(errs, t.forget(ctx, f))
	}
	for _, end := range u.Terminate {
		if err := t.execute(ctx, end); errors.Is(err, errLeaseLost) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forget takes an instance out of the journal, once its Node is labelled: a process that starts when the instance is gone finds the
// Node by the label alone.
func (t *cycle) forget(ctx context.Context, f plan.Forget) error {
	if err := t.claim(ctx, f.Node); err != nil {
		return err
	}
	if f.Joined {
		t.event(Event{Reason: EventJoined, Instance: f.InstanceID, Node: f.Node, Message: fmt.Sprintf("Node %s of %s has joined after all", f.Node, f.InstanceID)})
	}
	t.record.Condemned = slices.DeleteFunc(t.record.Condemned, func(c state.Condemned) bool { return c.InstanceID == f.InstanceID })
	t.dirty = true
	return nil
}

// execute terminates a condemned instance that the journal still speaks of. If it has a Node that was never Ready, pods that tolerate
// that are evicted first. What is seen of Nodes may be old by now, so that the cluster is asked once more.
func (t *cycle) execute(ctx context.Context, end plan.Terminate) error {
	if condemned(t.record, end.InstanceID) == nil {
		return nil
	}
	var empty bool
	var err error
	switch {
	case end.Stopped:
		empty = true // nothing runs on it
	case end.Node == "":
		empty, err = t.nodeless(ctx, end)
	default:
		empty, err = t.vacate(ctx, end)
	}
	if err != nil || !empty {
		return err
	}
	if err := t.end(ctx, end.InstanceID); err != nil {
		return fmt.Errorf("terminate %s: %w", end.InstanceID, err)
	}
	t.event(Event{Reason: EventTerminated, Instance: end.InstanceID, Message: fmt.Sprintf("Terminated %s: %s", end.InstanceID, end.Reason)})
	return nil
}

// end terminates an instance. Whatever lists say from then on, it is no worker any more.
func (t *cycle) end(ctx context.Context, id string) error {
	if err := t.act.terminate(ctx, id); err != nil {
		return err
	}
	t.ended = append(t.ended, id)
	return nil
}

// nodeless tells whether an instance has no Node in truth. That it has one is an error.
func (t *cycle) nodeless(ctx context.Context, end plan.Terminate) (bool, error) {
	name, err := t.act.nodeOf(ctx, provider.Instance{ID: end.InstanceID, ProviderID: end.ProviderID})
	switch {
	case err != nil:
		return false, fmt.Errorf("instance %s is not terminated: whether it has a node: %w", end.InstanceID, err)
	case name != "":
		return false, fmt.Errorf("instance %s is not terminated: it has node %s, which has not been seen yet", end.InstanceID, name)
	}
	return true, nil
}

// vacate evicts the pods of a condemned node, and tells whether it is empty. It begins once the mark is seen on the Node:
// what is seen of it then, such as that it is not Ready, is no older than the mark, and no pod is on its way to it.
func (t *cycle) vacate(ctx context.Context, end plan.Terminate) (empty bool, err error) {
	if err := t.act.taint(ctx, end.Node, "condemned"); err != nil || !end.Marked {
		return false, err
	}
	progress, err := t.act.evict(ctx, end.Node, drain.Limits{})
	return err == nil && progress.Remaining == 0, err
}

// tidyNodes labels the nodes of workers, deletes the Nodes of instances that have gone, and restores nodes that carry the
// mark of an action that is over. What is being removed by now is left alone.
func (t *cycle) tidyNodes(ctx context.Context) error {
	u := t.decision.Upkeep
	var errs []error
	for _, r := range u.Restore {
		if leaves(t.record, r.InstanceID) {
			continue
		}
		err := t.act.restore(ctx, r.Node)
		if err == nil {
			t.event(Event{Reason: EventRestored, Node: r.Node, Instance: r.InstanceID, Action: r.Action, Message: r.Message})
		}
		errs = append(errs, err)
	}
	for _, n := range u.Delete {
		if leaves(t.record, n.InstanceID) {
			continue
		}
		err := t.act.deleteNode(ctx, n.Node, n.ProviderID)
		if err == nil {
			t.event(Event{Reason: EventNodeDeleted, Node: n.Node, Instance: n.InstanceID, Message: fmt.Sprintf("Deleted node %s, whose instance has gone", n.Node)})
		}
		errs = append(errs, err)
	}
	for _, node := range u.Label {
		errs = append(errs, t.label(ctx, node))
	}
	return errors.Join(errs...)
}

// claim labels the Node of a worker with the pool, unless it has none.
func (t *cycle) claim(ctx context.Context, node string) error {
	n := t.seen.nodeNamed(node)
	if n == nil || controlPlane(n.Object) || n.Object.Labels[LabelPool] == t.pool {
		return nil
	}
	return t.label(ctx, node)
}

// label labels a Node with the pool, once in a cycle.
func (t *cycle) label(ctx context.Context, node string) error {
	if t.labelled[node] {
		return nil
	}
	if err := t.act.label(ctx, node, t.pool); err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	t.labelled[node] = true
	return nil
}
