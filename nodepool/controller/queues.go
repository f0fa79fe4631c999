package controller

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/api/v1alpha1"
)

// ownQueue returns an error if an older pool uses the queue of a pool. Each of the two would delete
// messages for the other.
func (c *Controller) ownQueue(ctx context.Context, pool *v1alpha1.WorkerPool) error {
	queue, field := queueOf(pool)
	if queue == "" {
		return nil
	}
	var pools v1alpha1.WorkerPoolList
	if err := c.options.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("list the queues of other WorkerPools: %w", err)
	}
	for i := range pools.Items {
		other := &pools.Items[i]
		if theirs, _ := queueOf(other); theirs == queue && wasFirst(other, pool) {
			return fmt.Errorf("provider.%s: %q is used by WorkerPool %s: must be a queue of its own, "+
				"because a pool deletes messages about other instances", field, queue, other.Name)
		}
	}
	return nil
}

// wasFirst reports whether one of two pools was created before the other; names decide within the
// same second.
func wasFirst(one, other *v1alpha1.WorkerPool) bool {
	if one.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return one.Name < other.Name
	}
	return one.CreationTimestamp.Before(&other.CreationTimestamp)
}

func queueOf(pool *v1alpha1.WorkerPool) (queue, field string) {
	_, spec := pool.Spec.Provider.Selected()
	if spec == nil {
		return "", ""
	}
	return spec.Queue()
}
