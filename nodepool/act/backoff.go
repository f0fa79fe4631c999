package act

import (
	"math/rand/v2"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

// Waits until a node is drained again after a failed drain. They double with each failure.
const (
	DrainBackoffMin = 10 * time.Minute
	// drainBackoffMax is the first wait after an error that is not likely to pass, and the longest one
	// where no other node can be removed instead.
	drainBackoffMax = time.Hour
	// drainBackoffDeleting is the first wait of a pool that is being deleted, where no other node can
	// be removed instead.
	drainBackoffDeleting = time.Minute
)

// Backoff returns a random wait that doubles with each try.
func Backoff(random *rand.Rand, try int, shortest, longest time.Duration) time.Duration {
	wait := shortest
	for i := 1; i < try && wait < longest; i++ {
		wait *= 2
	}
	wait = min(wait, longest)
	return wait/2 + time.Duration(random.Int64N(int64(wait/2)+1))
}

// backOffDrain keeps an instance from being drained for a time: the shortest at first, doubling
// with each failed drain.
func backOffDrain(c *cycle, instance string, shortest time.Duration) {
	if c.record.DrainBackoff == nil {
		c.record.DrainBackoff = map[string]time.Time{}
	}
	if c.record.FailedDrains == nil {
		c.record.FailedDrains = map[string]int{}
	}
	c.record.FailedDrains[instance]++
	c.record.DrainSpec = c.seen.Spec.Drain.Identity()
	wait, longest := shortest, drainBackoffMax
	if c.record.Target(instance) != nil && !c.record.Action.DeletesPool() {
		longest = state.DrainBackoffMax
	}
	for i := 1; i < c.record.FailedDrains[instance] && wait < longest; i++ {
		wait *= 2
	}
	c.record.DrainBackoff[instance] = c.now().Add(min(wait, longest))
}
