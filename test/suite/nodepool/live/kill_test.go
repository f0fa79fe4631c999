package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/nodepool/state"
)

// TestTheProcessIsKilled kills the process while one pool grows and another drains, has an instance
// of a third vanish with its Node while nobody looks, and starts another process, which waits for
// the lease of the first to expire and goes on.
//
// Others, whose process it would kill, run only once the second one does.
func TestTheProcessIsKilled(t *testing.T) {
	first := startForesail(t)
	grows, drains, loses := newPool(t, "grows"), newPool(t, "drains"), newPool(t, "loses")
	grows.create(1, 3, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.JoinDelay = after(10 * time.Second) })
	drains.create(2, 2, nil)
	loses.create(2, 2, nil)
	drains.settled(2)
	template := drains.template("slow", "")
	template.Finalizers = []string{hold}
	drains.deploy(drains.name, 4, template)
	vanishing := loses.settled(2)[0]
	grows.settled(1)

	drains.change(func(s *v1alpha1.WorkerPoolSpec) { s.Min, s.Max = 1, 1 })
	var victim state.Removal
	drains.until("pods of the drained node to be leaving", func() bool {
		if a := drains.record().Action; a != nil {
			victim = a.Targets[0]
		}
		return victim.State == state.RemovalDraining && drains.leaving(victim.Node)
	})
	grows.change(func(s *v1alpha1.WorkerPoolSpec) { s.Min = 3 })
	grows.until("an instance that has not joined", func() bool { return len(grows.instances()) > 1 })
	require.NoError(t, first.Kill())

	open := grows.record().Action
	require.NotNil(t, open)
	require.Less(t, grows.ready(), 3, "in the midst of it")
	require.NotNil(t, drains.record().Action)
	owner := grows.record().Owner
	loses.annotate(vanishing.ID, simulated.AnnotationVanish, "true")
	for range 2 { // nobody else moves the cloud on
		require.NoError(t, loses.cloud.Step(t.Context(), time.Now()))
	}
	require.NotContains(t, loses.nodes(), vanishing.ProviderID)

	killed := time.Now()
	running(t)
	t.Parallel()
	drains.release()
	grown := grows.settled(3)
	shrunk := drains.settled(1)
	whole := loses.settled(2)
	t.Logf("all at rest %s after the kill", time.Since(killed).Round(time.Second))

	assert.NotEqual(t, owner, grows.record().Owner)
	finished := 0
	for _, i := range grown {
		if i.Action == open.ID {
			finished++
		}
	}
	assert.Equal(t, 2, finished, "the scale-up that was open is finished, and no other begun")
	assert.Len(t, grows.fates(), 3, "nothing was launched twice")
	assert.NotEqual(t, victim.InstanceID, shrunk[0].ID)
	assert.Len(t, drains.fates(), 2)
	drains.runs(drains.name, "slow", 4)
	assert.NotContains(t, ids(whole), vanishing.ID)
	assert.Len(t, loses.fates(), 3)
	for _, p := range []*pool{grows, drains, loses} {
		p.untouched(p.nodes())
	}
	drains.release()
}

// leaving tells whether a pod on a node is leaving.
func (p *pool) leaving(node string) bool {
	p.Helper()
	for _, pod := range p.pods(p.name, "slow") {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// release lets pods that take their time go.
func (p *pool) release() {
	p.Helper()
	for _, pod := range p.pods(p.name, "slow") {
		_, err := cluster.Client().CoreV1().Pods(p.name).Patch(p.Context(), pod.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(p, err)
	}
}
