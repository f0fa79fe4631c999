package act

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
)

// labels gives Nodes the labels that nodes of the pool have, each once in a cycle.
type labels struct {
	c    *cycle
	done map[string]bool // nodes that this cycle has labelled, which the cluster does not show yet
}

// claim labels the Node of a worker with the pool, unless it has none.
func (b *labels) claim(ctx context.Context, node string) error {
	n := b.c.seen.NodeNamed(node)
	if n == nil || n.ControlPlane() || n.Object.Labels[cluster.LabelPool] == b.c.journal.Pool {
		return nil
	}
	return b.label(ctx, node)
}

// label gives a Node the labels that nodes of the pool have, once in a cycle.
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
