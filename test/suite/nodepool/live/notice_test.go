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

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
)

// TestTheCloudTakesAnInstanceBack has a simulated cloud do so, with pods on the instance that leave
// one by one.
func TestTheCloudTakesAnInstanceBack(t *testing.T) {
	t.Parallel()
	running(t)
	p := newPool(t, "taken")
	p.create(2, 4, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Zones = []string{"a", "b"} })
	before := p.settled(2)
	p.deploy(p.name, 6, p.template("shop", ""))
	p.budget("shop", 5, 1)
	victim := p.occupied(before[0].ProviderID, before[1].ProviderID)
	instance := before[slices.IndexFunc(before, func(i fleet.Instance) bool { return i.ProviderID == victim })].ID

	const notice = 100 * time.Second
	p.annotate(instance, simulated.AnnotationInterrupt, notice.String())
	p.event(journal.EventInterrupted)
	p.settled(2)
	p.runs(p.name, "shop", 6)
	rescheduled := time.Now()

	fates := p.fates()
	deadline := fates[instance].TakenAt
	told := deadline.Add(-notice)
	var asked time.Time
	for id, f := range fates {
		if id != before[0].ID && id != before[1].ID {
			require.Zero(t, asked, "one instance replaces it")
			asked = f.Launched
		}
	}
	t.Logf("replacement asked for %s after the notice, instance ended %s before the deadline, pods ready elsewhere %s before it",
		asked.Sub(told).Round(time.Millisecond), deadline.Sub(fates[instance].EndsAt).Round(time.Second), deadline.Sub(rescheduled).Round(time.Second))
	require.NotZero(t, asked)
	require.NotZero(t, fates[instance].EndsAt)
	assert.True(t, asked.Before(fates[instance].EndsAt), "replaced before it is drained")
	assert.True(t, fates[instance].EndsAt.Before(deadline), "drained and terminated, not taken")
	assert.True(t, rescheduled.Before(deadline))
	assert.Contains(t, p.event(journal.EventDrained), "is empty")
	p.untouched(p.nodes())
}

// occupied returns that of the nodes, by provider id, that has pods of the shop.
func (p *pool) occupied(candidates ...string) string {
	p.Helper()
	on := map[string]int{}
	for _, pod := range p.pods(p.name, "shop") {
		on[pod.Spec.NodeName]++
	}
	nodes := p.nodes()
	best := slices.MaxFunc(candidates, func(a, b string) int { return on[nodes[a].Name] - on[nodes[b].Name] })
	require.GreaterOrEqual(p, on[nodes[best].Name], 3)
	return best
}

// away waits until no pod of an app is on a node.
func (p *pool) away(app, node string) {
	p.Helper()
	p.until("no pod of "+app+" on "+node, func() bool {
		return !slices.ContainsFunc(p.pods(p.name, app), func(pod corev1.Pod) bool { return pod.Spec.NodeName == node })
	})
}
