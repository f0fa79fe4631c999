package act

import (
	"context"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// watchEndingFor is the time for which the loop frequently checks whether a terminated instance is
// gone. Most take less than a minute.
const watchEndingFor = 10 * time.Minute

// endings are the removals whose instances are shutting down or gone.
type endings struct{ c *cycle }

// advance deletes the Nodes of instances that are gone. An accepted termination is no proof: a
// machine that hangs may run its containers for minutes more, and a StatefulSet starts the same pod
// elsewhere as soon as the Node is deleted.
func (e endings) advance(ctx context.Context) error {
	over := slices.DeleteFunc(slices.Clone(e.c.record.Endings), func(r state.Removal) bool {
		return !e.c.seen.Gone(r.InstanceID) || e.c.seen.Cluster == nil ||
			e.c.seen.Ambiguity(e.c.seen.Known[r.InstanceID]) != ""
	})
	deleted := make([]bool, len(over))
	err := e.c.each(ctx, len(over), func(i int) (err error) {
		deleted[i], err = e.deleteNode(ctx, over[i])
		return err
	})
	for i, r := range over {
		if deleted[i] {
			e.c.record.Endings = slices.DeleteFunc(e.c.record.Endings,
				func(x state.Removal) bool { return x.InstanceID == r.InstanceID })
			e.c.changed()
		}
	}
	return err
}

// deleteNode deletes the Node of an instance that is gone, and reports whether no Node is left.
func (e endings) deleteNode(ctx context.Context, r state.Removal) (deleted bool, err error) {
	if r.Node == "" || r.ProviderID == "" {
		// The node was not known when the removal began, or no process has seen the instance listed. A
		// later process would not find a Node without the pool's label.
		if r.Node, err = e.c.nodes.nodeOf(ctx, fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID}); err != nil {
			return false, err
		}
	}
	if r.Node == "" {
		return true, nil
	}
	if r.ProviderID == "" {
		n := e.c.seen.NodeNamed(r.Node)
		if n == nil || provider.IDOf(n.Object.Spec.ProviderID) != r.InstanceID {
			return false, nil // the watch does not show it yet
		}
		r.ProviderID = n.Object.Spec.ProviderID
	}
	err = e.c.nodes.deleteNode(ctx, r.Node, r.ProviderID)
	return err == nil, err
}

// Watches reports whether an instance was terminated recently, and so is likely to be gone soon.
func Watches(r state.Record, now time.Time) bool {
	return slices.ContainsFunc(r.Endings, func(x state.Removal) bool { return now.Sub(x.Since) < watchEndingFor })
}
