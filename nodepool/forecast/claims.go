package forecast

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
)

// ClaimedFor is how long the claims of a pool last without another cycle of it.
const ClaimedFor = time.Minute

// Claims prevents the pools of a process from launching nodes for the same pods. Of the pools whose
// nodes could run a pod, the one with the largest weight launches, and of equal ones the first by
// name, as long as it can launch. It is safe for concurrent use.
type Claims struct {
	mu    sync.Mutex
	pools map[string]claim
}

// claim is the result of the last cycle of a pool.
type claim struct {
	weight int
	seen   time.Time // time of its view of pods
	pods   map[types.NamespacedName]bool
}

// NewClaims returns an empty set of claims.
func NewClaims() *Claims { return &Claims{pools: map[string]claim{}} }

// Decided replaces the claims of a pool after a decision by the pods that its nodes will run. A
// pool that cannot launch now claims none.
func (c *Claims) Decided(o *observe.Observation, f Forecast, d plan.Decision) {
	pool, next := o.Pool, claimOf(o, f, d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[pool] = next
}

// Forget drops the claims of a pool that is gone.
func (c *Claims) Forget(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, pool)
}

// left returns the pods that are not claimed by a pool which takes precedence. A pod that such a
// pool has not seen yet is left to it until its next cycle.
func (c *Claims) left(pool string, weight int, pods []cluster.Pending, now time.Time) []cluster.Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	var before []claim
	for name, other := range c.pools {
		first := other.weight > weight || other.weight == weight && name < pool
		if name != pool && first && other.pods != nil && now.Sub(other.seen) < ClaimedFor {
			before = append(before, other)
		}
	}
	if len(before) == 0 {
		return pods
	}
	var out []cluster.Pending
	for _, p := range pods {
		if !claimedBy(before, p) {
			out = append(out, p)
		}
	}
	return out
}

func claimedBy(pools []claim, p cluster.Pending) bool {
	for _, c := range pools {
		if p.Since.After(c.seen) || c.pods[nameOf(p)] {
			return true
		}
	}
	return false
}

func nameOf(p cluster.Pending) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
}

// claimOf returns the claims of a pool after a decision: the pods that its nodes run, including
// those that it can launch.
func claimOf(o *observe.Observation, f Forecast, d plan.Decision) claim {
	out := claim{weight: o.Spec.Weight, seen: o.Cluster.At}
	if !canLaunch(o, f, d) {
		return out
	}
	left := setOf(f.beyond)
	for _, u := range f.Pending.Unhelped {
		left[u.Pod] = true
	}
	for _, names := range f.added[min(len(f.added), max(0, o.Spec.Plan.Max-d.Workers)):] {
		for _, name := range names { // the maximum allows no node for them
			left[name] = true
		}
	}
	out.pods = map[types.NamespacedName]bool{}
	for _, p := range f.pods {
		if name := nameOf(p); !left[name.String()] {
			out.pods[name] = true
		}
	}
	return out
}

// canLaunch reports whether pods can rely on a pool.
func canLaunch(o *observe.Observation, f Forecast, d plan.Decision) bool {
	if o.Spec.DryRun || o.Spec.Plan.Deleting || !f.Pending.Known {
		return false
	}
	switch d.Reason {
	case plan.AtMaximum, plan.InsufficientCapacity, plan.LaunchesUnknown, plan.BackingOff, plan.WorkersUnknown,
		plan.SignalsDisagree:
		return false
	}
	return true
}
