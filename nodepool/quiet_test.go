package nodepool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/plan"
)

// quietWorlds is the number of random clusters, one for each seed.
const quietWorlds = 12

// randomWorkload returns a workload with random constraints.
func randomWorkload(r *rand.Rand, app string) *workload {
	w := &workload{app: app, replicas: 1 + r.IntN(6), template: plain(fmt.Sprintf("%dm", 100*(1+r.IntN(8)))),
		budget: r.IntN(3), stateful: r.IntN(3) == 0}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		if r.IntN(3) > 0 {
			continue
		}
		c := corev1.TopologySpreadConstraint{MaxSkew: 1 + r.Int32N(2), TopologyKey: key,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}
		if r.IntN(3) == 0 {
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}
		w.template.TopologySpreadConstraints = append(w.template.TopologySpreadConstraints, c)
	}
	if r.IntN(5) == 0 {
		w.template.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector,
				TopologyKey: corev1.LabelHostname}}}}
	}
	return w
}

// A cluster in which nothing changes is left alone, once it has settled: no pod is evicted and no node launched for
// three hours. Where all nodes must be replaced before, they are.
func TestQuietClustersStayQuiet(t *testing.T) {
	for seed := range uint64(quietWorlds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			r := newRig(t)
			r.world.podGrace = time.Duration(random.IntN(60)) * time.Second
			r.spec.Plan.Max, r.spec.Plan.Consolidate, r.spec.Plan.CooldownDown = 12, true, 0
			r.spec.Plan.Idle.For, r.spec.Plan.MaxBatchDown = 5*time.Minute, 1+random.IntN(3)
			r.world.add(random.IntN(8))
			var all []*workload
			for i := range 1 + random.IntN(4) {
				all = append(all, randomWorkload(random, fmt.Sprint("app-", i)))
			}
			s := r.world.play(all...)
			s.limit = random.IntN(2) * 4
			if random.IntN(2) == 0 {
				s.daemon = "300m"
			}
			r.settled(s)
			r.pass(3 * time.Hour)
			if random.IntN(2) == 0 {
				r.ages()
				r.pass(3 * time.Hour)
			}
			waiting, evictions, launches := s.waiting(), s.evictions, r.world.launches
			r.pass(3 * time.Hour)
			require.Equal(t, evictions, s.evictions, "evictions; %s", r.last.Decision.Message)
			require.Equal(t, launches, r.world.launches, "launches; %s", r.last.Decision.Message)
			require.LessOrEqual(t, s.waiting(), waiting)
			if r.last.Decision.Reason != plan.AtMaximum {
				require.Len(t, r.last.Snapshot.Pending.Unhelped, s.waiting(), "pods that wait could run nowhere")
			}
		})
	}
}
