package act

import (
	"context"

	"github.com/foresail/foresail/nodepool/drain"
)

// Drainer empties nodes. All its calls may be repeated.
type Drainer interface {
	// Taint keeps new pods from the node, and tells the action that it leaves by.
	Taint(ctx context.Context, node, action string) error
	// Cordon marks the node unschedulable.
	Cordon(ctx context.Context, node string) error
	// Restore undoes both; a node that has gone is no error.
	Restore(ctx context.Context, node string) error
	// Blockers returns why the node must not be drained, as a fresh list of its pods tells.
	Blockers(ctx context.Context, node string) ([]string, error)
	// Arriving tells whether a scheduler may have found a node for pods that are not bound yet, as a fresh list tells.
	Arriving(ctx context.Context) (bool, error)
	// Evict evicts, without waiting, the pods that are not yet leaving.
	Evict(ctx context.Context, node string, l drain.Limits) (drain.Progress, error)
	// Attached returns the volumes that are attached, by node.
	Attached(ctx context.Context) (map[string][]string, error)
	// NodeOf returns the name of the Node of an instance, as a fresh list of all Nodes tells, "" if it has none.
	NodeOf(ctx context.Context, providerID, instanceID string) (string, error)
	// DeleteNode deletes the node if it still has the provider id; one that has gone is no error.
	DeleteNode(ctx context.Context, node, providerID string) error
}

// Labeler sets labels of the node of a worker that joins: [cluster.LabelPool], so that it is known for one of the pool's
// when its instance has gone, and those of the template. A node that has gone is no error.
type Labeler interface {
	Label(ctx context.Context, node string, labels map[string]string) error
}
