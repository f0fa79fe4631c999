package observe

import (
	"context"

	"github.com/foresail/foresail/nodepool/cluster"
)

// Cluster observes the cluster. Each pool has its own, because a wake is received only once.
type Cluster interface {
	// Observe returns what is known of the cluster, and an error until it is known.
	Observe(ctx context.Context) (*cluster.Cluster, error)
	// Wake receives a value when an early cycle is worthwhile.
	Wake() <-chan struct{}
}
