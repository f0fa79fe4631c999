package nodepool

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
)

// A pool that uses too much CPU to be idle removes the workers whose pods fit on the
// others, within the budget, and no more than the predicted load allows.
func TestUnderutilizedWorkersGo(t *testing.T) {
	r := newRig(t)
	r.world.add(6)
	r.oneZone()
	r.spec.Plan.Min, r.spec.Plan.Consolidate = 1, true
	r.spec.Plan.Idle = plan.Idle{For: 10 * time.Minute, CPU: 0.3, Memory: 0.5}
	r.spec.Disruption.Budgets = config.ParseBudgets([]v1alpha1.DisruptionBudget{{Nodes: intstr.FromInt32(2)}})
	for i, n := range r.nodeNames() {
		r.world.nodes[n].object.Labels[corev1.LabelHostname] = n
		if i < 2 { // they have one pod each that may run on no other's node
			r.world.objects = append(r.world.objects, replica(fmt.Sprint("web-", i), n))
		}
	}
	needs := 3
	signals := func() {
		r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Now: 0.6, Predicted: 0.6, Threshold: 0.7,
			Desired: needs, Fits: needs, Needs: needs, CPU: true, Memory: true}}
	}
	signals()
	r.pass(9 * time.Minute)
	require.Empty(t, r.world.terminated)
	r.until("the first go", 10*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	require.Len(t, r.world.terminated, 2, "the budget")
	r.until("another goes, after the cooldown", 20*time.Minute,
		func() bool { return r.count(journal.EventScaledDown) == 2 })
	require.Len(t, r.world.terminated, 3, "the load needs the others")
	r.pass(time.Hour)
	require.Len(t, r.world.terminated, 3)
	needs = 1
	signals()
	r.pass(2 * time.Hour)
	require.Equal(t, []string{"node-i-old0", "node-i-old1"}, r.nodeNames(), "their pods have no other node")
	require.Zero(t, r.world.launches)
	r.clean()
}

// A share is one of all workers in service: it does not become smaller while workers leave.
func TestAShareOfTheWorkersStaysTheSameWhileTheyGo(t *testing.T) {
	r := idle(t, 11)
	r.spec.Plan.Max, r.spec.Plan.MaxBatchDown, r.spec.Disruption.Budgets = 20, 10, budgets("10%")
	for _, name := range r.nodeNames() {
		r.load(name, &fakePod{name: "web"})
	}
	r.until("the first have gone", 5*time.Minute, func() bool { return r.count(journal.EventScaledDown) == 1 })
	require.Len(t, r.world.terminated, 2, "a tenth, rounded up")
	require.Zero(t, r.count(journal.EventScaleDownAborted))
}
