package act

import (
	"context"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/fleet"
)

// Drainer drains nodes. All its calls may be repeated.
type Drainer interface {
	// Taint keeps new pods off the node, and marks it with the action that removes it.
	Taint(ctx context.Context, node, action string) error
	// Cordon marks the node unschedulable.
	Cordon(ctx context.Context, node string) error
	// Restore undoes both. A node that no longer exists is no error.
	Restore(ctx context.Context, node string) error
	// Blockers returns why the node must not be drained, from a fresh list of its pods.
	Blockers(ctx context.Context, node string) ([]string, error)
	// Arriving reports whether a scheduler may have chosen a node for pods that are not bound yet,
	// from a fresh list.
	Arriving(ctx context.Context) (bool, error)
	// Evict evicts, without waiting, the pods that are not terminating yet.
	Evict(ctx context.Context, node string, l drain.Limits) (drain.Progress, error)
	// Attached returns the attached volumes, by node.
	Attached(ctx context.Context) (map[string][]string, error)
	// NodeOf returns the name of the Node of an instance, from a fresh list of all Nodes, "" if it has
	// none.
	NodeOf(ctx context.Context, providerID, instanceID string) (string, error)
	// DeleteNode deletes the node if it still has the provider id. One that no longer exists is no
	// error.
	DeleteNode(ctx context.Context, node, providerID string) error
}

// Labeler sets labels on the node of a worker that joins: [cluster.LabelPool], so that it is
// recognised as the pool's after its instance is gone, and those of the template. A node that no
// longer exists is no error.
type Labeler interface {
	Label(ctx context.Context, node string, labels map[string]string) error
}

// guardedNodes are the Nodes of the cluster under the lease.
type guardedNodes struct {
	guard   guard
	drainer Drainer
	labeler Labeler
	volumes *volumes
}

func (n guardedNodes) taint(ctx context.Context, node, action string) error {
	return n.guard.act(ctx, func(ctx context.Context) error { return n.drainer.Taint(ctx, node, action) })
}

func (n guardedNodes) cordon(ctx context.Context, node string) error {
	return n.guard.act(ctx, func(ctx context.Context) error { return n.drainer.Cordon(ctx, node) })
}

func (n guardedNodes) restore(ctx context.Context, node string) error {
	return n.guard.act(ctx, func(ctx context.Context) error { return n.drainer.Restore(ctx, node) })
}

func (n guardedNodes) blockers(ctx context.Context, node string) (why []string, err error) {
	err = n.guard.act(ctx, func(ctx context.Context) error {
		why, err = n.drainer.Blockers(ctx, node)
		return err
	})
	return why, err
}

func (n guardedNodes) arriving(ctx context.Context) (arriving bool, err error) {
	err = n.guard.act(ctx, func(ctx context.Context) error {
		arriving, err = n.drainer.Arriving(ctx)
		return err
	})
	return arriving, err
}

func (n guardedNodes) evict(ctx context.Context, node string, l drain.Limits) (progress drain.Progress, err error) {
	err = n.guard.act(ctx, func(ctx context.Context) error {
		progress, err = n.drainer.Evict(ctx, node, l)
		return err
	})
	return progress, err
}

// attached returns the volumes by node. Tasks that call it at the same time share one answer, which
// covers all nodes.
func (n guardedNodes) attached(ctx context.Context) (volumes map[string][]string, err error) {
	err = n.guard.act(ctx, func(ctx context.Context) error {
		volumes, err = n.volumes.get(ctx, n.drainer.Attached)
		return err
	})
	return volumes, err
}

func (n guardedNodes) nodeOf(ctx context.Context, i fleet.Instance) (name string, err error) {
	err = n.guard.act(ctx, func(ctx context.Context) error {
		name, err = n.drainer.NodeOf(ctx, i.ProviderID, i.ID)
		return err
	})
	return name, err
}

func (n guardedNodes) deleteNode(ctx context.Context, node, providerID string) error {
	return n.guard.act(ctx, func(ctx context.Context) error { return n.drainer.DeleteNode(ctx, node, providerID) })
}

func (n guardedNodes) label(ctx context.Context, node string, labels map[string]string) error {
	return n.guard.act(ctx, func(ctx context.Context) error { return n.labeler.Label(ctx, node, labels) })
}

// volumes caches the attached volumes for one cycle.
type volumes struct {
	turn   chan struct{} // holds a value while a call reads
	asked  bool
	byNode map[string][]string
	err    error
}

func newVolumes() *volumes { return &volumes{turn: make(chan struct{}, 1)} }

func (v *volumes) get(
	ctx context.Context, ask func(context.Context) (map[string][]string, error),
) (map[string][]string, error) {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	if !v.asked {
		v.byNode, v.err = ask(ctx)
		v.asked = true
	}
	return v.byNode, v.err
}
