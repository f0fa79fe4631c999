package observe

import (
	"context"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Cluster sees the cluster. Each pool has one of its own, as a wake is received once.
type Cluster interface {
	// Observe returns what is known of the cluster, and an error until it is known.
	Observe(ctx context.Context) (*cluster.Cluster, error)
	// Wake receives when something is worth an early cycle.
	Wake() <-chan struct{}
}
