package nodepool

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// foreignTaint is a taint that all new nodes have and that does not apply to later ones.
var foreignTaint = corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}

// helpless is a pool whose new nodes do not take the pending pod.
func helpless(t *testing.T) *rig {
	r := newRig(t)
	r.spec.Plan.CooldownUp = 0
	r.tainting(foreignTaint)
	r.pend(1)
	r.until("the first launch has failed", 10*time.Minute,
		func() bool { return len(r.record().Attempts) == 1 && r.record().Attempts[0].Failed == 1 })
	require.Equal(t, 1, r.world.launches)
	return r
}

// TestANodeThatDidNotHelpIsNotFollowedByAnother at once: the wait doubles, another process knows it, and the pod
// needs no node meanwhile.
func TestANodeThatDidNotHelpIsNotFollowedByAnother(t *testing.T) {
	r := helpless(t)
	require.Equal(t, 1, r.last.Snapshot.Pending.BackingOff)
	require.Zero(t, r.last.Snapshot.Pending.Pods)
	require.Contains(t, r.last.Snapshot.Pending.Unhelped[0].Reason,
		"it did not use the node that was launched for it, and the next launch is tried at 2026-03-02T")
	began := r.clock.now()
	for launches, wait := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute,
		40 * time.Minute, 80 * time.Minute} {
		r.pass(wait - 2*time.Minute)
		require.LessOrEqual(t, r.world.launches, launches+1, "after %s", r.clock.now().Sub(began))
		r.restart()
		r.pass(6 * time.Minute)
		require.Equal(t, launches+1, r.world.launches, "after %s", r.clock.now().Sub(began))
	}
}

// TestOneUnluckyNodeIsFollowedByAnother: a node that was never initialized does not represent the next one, but two do.
func TestOneUnluckyNodeIsFollowedByAnother(t *testing.T) {
	r := newRig(t)
	r.spec.Template.StartupTaints = []corev1.Taint{foreignTaint}
	r.tainting(foreignTaint)
	r.pend(1)
	r.until("the first is followed by another", 13*time.Minute, func() bool { return r.world.launches == 2 })
	r.until("that has failed as well", 13*time.Minute, func() bool { return r.record().Attempts[0].Failed == 2 })
	r.pass(9 * time.Minute)
	require.Equal(t, 2, r.world.launches)
}

// TestBackOffsOfPodsEnd when the failed configuration changes.
func TestBackOffsOfPodsEnd(t *testing.T) {
	untaint := func(r *rig) { r.world.dress = nil }
	for name, change := range map[string]func(*rig){
		"the pod asks for something else": func(r *rig) {
			untaint(r)
			r.world.pending[0].Pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("900m")
		},
		"nodes are launched by another spec": func(r *rig) { untaint(r); r.spec.LaunchSpec = "mended" },
		"nodes have other labels": func(r *rig) {
			untaint(r)
			r.spec.Template.Labels = map[string]string{"team": "shop"}
		},
		"a node of another kind joins": func(r *rig) { untaint(r); r.spec.Plan.Min = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			r := helpless(t)
			change(r)
			before := r.world.launches
			if r.spec.Plan.Min > 0 {
				before++ // that one is full, as all are here
			}
			r.until("another is launched", 4*time.Minute, func() bool { return r.world.launches > before })
		})
	}
	t.Run("nothing", func(t *testing.T) {
		r := helpless(t)
		r.pass(8 * time.Minute)
		require.Equal(t, 1, r.world.launches)
	})
}

// TestPodsThatBackOffHoldUpNoRemoval, and no launch for others.
func TestPodsThatBackOffHoldUpNoRemoval(t *testing.T) {
	r := helpless(t)
	r.world.dress = nil
	r.spec.Plan.Idle.For, r.spec.Plan.CooldownDown = time.Minute, 0
	r.until("the node that did not help goes", 5*time.Minute, func() bool { return len(r.world.terminated) == 1 })
	r.pend(2)
	r.world.pending = r.world.pending[1:]
	for i := range r.world.pending {
		r.world.pending[i].Pod.Name = fmt.Sprint("other-", i)
	}
	r.until("others get a node", 2*time.Minute, func() bool { return r.world.launches == 2 })
	require.Equal(t, plan.PodsPending, r.actions[len(r.actions)-1])
}

// TestNodesForOtherPodsProveNothing: a node that was launched for other pods joins while the one
// that a pod needs has no capacity. The pod does not back off for that.
func TestNodesForOtherPodsProveNothing(t *testing.T) {
	r := newRig(t)
	r.spec.Plan.CooldownUp = 0
	with := r.world.offers[0]
	with.InstanceType, with.Allocatable = "p3", maps.Clone(with.Allocatable)
	with.Allocatable[gpu] = resource.MustParse("1")
	r.world.offers = append(r.world.offers, with)
	r.world.capacity = func(l provider.Launch) error {
		if l.InstanceType == "p3" {
			return refused(provider.Capacity)
		}
		return nil
	}
	r.pend(2)
	r.world.pending[0].Pod.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
	r.until("the other pod's node has joined", 5*time.Minute,
		func() bool { return r.world.launches == 1 && r.count(journal.EventScaledUp) == 1 })
	r.world.pending = r.world.pending[:1]
	r.pass(10 * time.Minute)
	for _, one := range r.record().Attempts {
		require.Zero(t, one.Failed, "%+v", one)
	}
	r.world.capacity = nil
	r.until("its own node is launched", 5*time.Minute, func() bool { return r.world.launches == 2 })
}
