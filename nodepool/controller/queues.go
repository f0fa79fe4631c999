package controller

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/api/v1alpha1"
)

// ownQueue returns why a pool cannot have its queue: another has it that was there first. Each of two would delete the
// messages that are for the other.
func (c *Controller) ownQueue(ctx context.Context, pool *v1alpha1.WorkerPool) error {
	queue := queueOf(pool)
	if queue == "" {
		return nil
	}
	var pools v1alpha1.WorkerPoolList
	if err := c.options.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("look at the queues of other WorkerPools: %w", err)
	}
	for i := range pools.Items {
		if other := &pools.Items[i]; queueOf(other) == queue && wasFirst(other, pool) {
			return fmt.Errorf("provider.ec2.interruptionQueue: %q is the one of WorkerPool %s: want a queue for each pool, as a pool deletes messages"+
				" about instances that are not its own", queue, other.Name)
		}
	}
	return nil
}

// wasFirst tells whether one of two pools was created before the other; of one second, by their names.
func wasFirst(one, other *v1alpha1.WorkerPool) bool {
	if one.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return one.Name < other.Name
	}
	return one.CreationTimestamp.Before(&other.CreationTimestamp)
}

func queueOf(pool *v1alpha1.WorkerPool) string {
	if pool.Spec.Provider.EC2 == nil {
		return ""
	}
	return pool.Spec.Provider.EC2.InterruptionQueue
}
