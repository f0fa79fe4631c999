package act

import (
	"math/rand/v2"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

// Waits until a node is drained again after a drain that failed, doubling.
const (
	DrainBackoffMin = 10 * time.Minute
	// the first after what is not likely to pass, and the longest where nothing else can go instead
	drainBackoffMax = time.Hour
	// drainBackoffDeleting is the first of a pool that is being deleted: no other node can go instead.
	drainBackoffDeleting = time.Minute
)

// Backoff returns a random wait that doubles with each try.
func Backoff(random *rand.Rand, try int, least, most time.Duration) time.Duration {
	wait := least
	for i := 1; i < try && wait < most; i++ {
		wait *= 2
	}
	wait = min(wait, most)
	return wait/2 + time.Duration(random.Int64N(int64(wait/2)+1))
}

// backOffDrain leaves an instance alone for a time: at first the least one, doubling with each drain that fails.
func backOffDrain(c *cycle, instance string, least time.Duration) {
	if c.record.DrainBackoff == nil {
		c.record.DrainBackoff = map[string]time.Time{}
	}
	if c.record.FailedDrains == nil {
		c.record.FailedDrains = map[string]int{}
	}
	c.record.FailedDrains[instance]++
	c.record.DrainSpec = c.seen.Spec.Drain.Identity()
	wait, longest := least, drainBackoffMax
	if c.record.Target(instance) != nil && !c.record.Action.DeletesPool() {
		longest = state.DrainBackoffMax
	}
	for i := 1; i < c.record.FailedDrains[instance] && wait < longest; i++ {
		wait *= 2
	}
	c.record.DrainBackoff[instance] = c.now().Add(min(wait, longest))
}
