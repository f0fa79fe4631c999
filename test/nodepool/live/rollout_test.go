package live

import (
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/drain"
)

// TestAllNodesAreRolledOut changes what new nodes are, under 20 that their pods fill, with a PodDisruptionBudget: all are
// replaced, up to four at a time, and the pods' own budget is what holds them up.
func TestAllNodesAreRolledOut(t *testing.T) {
	t.Parallel()
	running(t)
	const workers, pods, least, atOnce = 20, 40, 36, 4
	p := newPool(t, "rollout")
	p.create(workers, 2*workers, func(s *v1alpha1.WorkerPoolSpec) {
		s.Disruption.Budgets = []v1alpha1.DisruptionBudget{{Nodes: intstr.FromString("20%")}}
	})
	before := p.settled(workers)
	template := p.template("shop", "")
	template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1900m")
	p.deploy(p.name, pods, template)
	p.budget("shop", least, pods-least)

	began := time.Now()
	p.change(func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Shape["memory"] = resource.MustParse("9Gi") })
	fewestReady, fewestNodes, mostMarked := pods, workers, 0
	p.within(5*patience, "all nodes are others", func() bool {
		ready := 0
		for _, pod := range p.pods(p.name, "shop") {
			if isReady(pod) {
				ready++
			}
		}
		nodes, marked := p.nodes(), 0
		for _, n := range nodes {
			if _, is := drain.MarkOf(&n); is {
				marked++
			}
		}
		fewestReady, fewestNodes, mostMarked = min(fewestReady, ready), min(fewestNodes, len(nodes)), max(mostMarked, marked)
		status := p.get().Status.Rollout
		return status != nil && status.Outdated == 0 && !slices.ContainsFunc(before, func(i fleet.Instance) bool {
			_, there := nodes[i.ProviderID]
			return there
		})
	})
	p.settled(workers)
	p.runs(p.name, "shop", pods)
	t.Logf("%d nodes in %s; at least %d of %d pods were ready, and %d nodes there", workers, time.Since(began).Round(time.Second), fewestReady, pods, fewestNodes)
	assert.GreaterOrEqual(t, fewestReady, least)
	assert.GreaterOrEqual(t, fewestNodes, workers)
	assert.LessOrEqual(t, mostMarked, atOnce)
	for _, i := range before {
		require.NotZero(t, p.fates()[i.ID].EndsAt)
	}
	require.Contains(t, p.event(journal.EventDrained), "is empty")
	p.untouched(p.nodes())
}
