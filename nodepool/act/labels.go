package act

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
)

// labels sets the labels of the pool on Nodes, once for each in a cycle.
type labels struct {
	c    *cycle
	done map[string]bool // nodes that this cycle has labelled, which the cluster does not show yet
}

// ensureLabelled labels the Node of a worker, unless it has the pool's label.
func (b *labels) ensureLabelled(ctx context.Context, node string) error {
	n := b.c.seen.NodeNamed(node)
	if n == nil || n.ControlPlane() || n.Object.Labels[cluster.LabelPool] == b.c.journal.Pool {
		return nil
	}
	return b.label(ctx, node)
}

// label sets the labels of the pool on a Node, once in a cycle.
func (b *labels) label(ctx context.Context, node string) error {
	if b.done[node] {
		return nil
	}
	if err := b.c.nodes.label(ctx, node, config.NodeLabels(b.c.journal.Pool, b.c.seen.Spec.Template.Labels)); err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	b.done[node] = true
	return nil
}
