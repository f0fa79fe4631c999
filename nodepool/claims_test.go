package nodepool

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/provider"
)

// pools are two pools that could run the same pods, in one process, each with instances of its own.
func pools(t *testing.T, weights ...int) []*rig {
	claims := forecast.NewClaims()
	var out []*rig
	for i, weight := range weights {
		r := newRig(t)
		r.spec.Weight = weight
		r.change(func(o *Options) { o.Name, o.Claims = []string{"first", "second"}[i], claims })
		out = append(out, r)
	}
	return out
}

// passAll lets time pass in all of them, the last one first: it must not be the order of their cycles that decides.
func passAll(pools []*rig, d time.Duration) {
	for end := pools[0].clock.now().Add(d); pools[0].clock.now().Before(end); {
		for _, r := range slices.Backward(pools) {
			r.tick()
		}
		for _, r := range pools {
			r.clock.advance(2 * time.Second)
		}
	}
}

// TestOnePoolLaunchesForAPod: one of two pools that could run pods launches for them, by weight and then by name.
func TestOnePoolLaunchesForAPod(t *testing.T) {
	for name, c := range map[string]struct{ weights, launches []int }{
		"of equals the first by name": {[]int{0, 0}, []int{1, 0}},
		"the one with more weight":    {[]int{0, 10}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			all := pools(t, c.weights...)
			passAll(all, 10*time.Second)
			for _, r := range all {
				r.pend(1)
			}
			passAll(all, 2*time.Minute)
			require.Equal(t, c.launches, []int{all[0].world.launches, all[1].world.launches})
		})
	}
}

// TestTheNextPoolTakesOver: if the pool with precedence cannot launch, or could not run the pod, the next one does.
func TestTheNextPoolTakesOver(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"it has no capacity": func(r *rig) {
			r.world.capacity = func(provider.Launch) error { return refused(provider.Capacity) }
		},
		"it is at its maximum": func(r *rig) { r.spec.Plan.Max = 1; r.world.add(1) },
		"it is in dry run":     func(r *rig) { r.spec.DryRun = true },
		"it is being deleted":  func(r *rig) { r.spec.Plan.Deleting = true },
		"it could not run a pod": func(r *rig) {
			r.world.offers = []provider.Offer{offer("a", "a", "small", "500m")}
		},
		"it is not known what it could launch": func(r *rig) { r.world.offers = nil },
		"its cloud does not answer":            func(r *rig) { r.world.listErr = errLost },
	} {
		t.Run(name, func(t *testing.T) {
			all := pools(t, 10, 0)
			change(all[0])
			passAll(all, 10*time.Second)
			for _, r := range all {
				r.pend(1)
			}
			passAll(all, 3*time.Minute)
			require.Zero(t, all[0].world.launches)
			require.Equal(t, 1, all[1].world.launches)
		})
	}
}

// TestPodsBeyondAMaximum: the next pool launches at once for pods that exceed the maximum or the
// capacity of the first, and does not wait for the scale-up of the first.
func TestPodsBeyondAMaximum(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"maximum": func(r *rig) { r.spec.Plan.Max = 2 },
		"capacity": func(r *rig) {
			r.world.offers = append(r.world.offers, offer("a", "subnet-a", "c5.4xlarge", "16"))
			r.world.pending[0].Pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("8")
			r.world.capacity = func(l provider.Launch) error {
				if l.InstanceType == "c5.4xlarge" {
					return refused(provider.Capacity)
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := pools(t, 10, 0)
			for _, r := range all {
				r.world.joinDelay = 9 * time.Minute
				r.pend(8) // of which a node takes two
			}
			change(all[0])
			all[1].world.offers, all[1].world.pending = all[0].world.offers, all[0].world.pending
			passAll(all, 3*time.Minute)
			launched := []int{all[0].world.launches, all[1].world.launches}
			require.Equal(t, map[string][]int{"maximum": {2, 2}, "capacity": {4, 1}}[name], launched,
				all[1].last.Decision.Message)
		})
	}
}

// TestClaimsEnd: a pool without cycles claims nothing.
func TestClaimsEnd(t *testing.T) {
	all := pools(t, 10, 0)
	all[0].world.capacity = func(provider.Launch) error { return refused(provider.Unknown) }
	all[1].pend(1)
	all[0].pend(1)
	passAll(all, time.Minute)
	require.Zero(t, all[1].world.launches, "the launch may have happened")
	passAll(all[1:], 2*forecast.ClaimedFor)
	require.Equal(t, 1, all[1].world.launches)
}
