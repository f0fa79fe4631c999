package poolintent

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/report"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/test/env/controlplane"
)

// told is what the tick of a pool came to that removes one node, would remove another next, and has room for more.
func told() nodepool.CycleReport {
	return nodepool.CycleReport{
		Pool: "workers", At: time.Now(), Leading: true,
		Decision: plan.Decision{At: time.Now(), Step: plan.Hold, Reason: plan.ActionOpen,
			Message:    "a scale-down is open",
			Candidates: []plan.Target{{Node: "next"}}},
		Snapshot: plan.Snapshot{Now: time.Now(), Instances: []plan.Instance{
			{Instance: fleet.Instance{ID: "i-1"}, Worker: true, Node: plan.Node{Name: "next", Ready: true}},
		}},
		Record: state.Record{Action: &state.Action{ID: "down-1", Kind: state.ActionDown,
			Started: time.Now(), Targets: []state.Removal{
				{InstanceID: "i-0", Node: "gone-soon", State: state.RemovalPlanned},
			}}},
	}
}

// TestInACluster: what a pool tells is known here, in a cluster that comes to know WorkerPools
// later, and once more when it has forgotten them for a while.
func TestInACluster(t *testing.T) {
	c := controlplane.BorrowFor(t)
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	pools, err := ctrlcache.New(c.RESTConfig(), ctrlcache.Options{Scheme: scheme})
	require.NoError(t, err)
	w := New(pools, time.Now)
	w.again = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- pools.Start(ctx) }()
	go func() { ended <- w.Run(ctx) }()

	until := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, time.Minute, 20*time.Millisecond, what)
	}
	until("there are none", func() bool { return w.Ready() == nil })
	definition, err := os.ReadFile("../../../../manifests/crds/foresail.dev_workerpools.yaml")
	require.NoError(t, err)
	crds := c.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	for range 2 {
		_, err = c.Apply(t.Context(), definition)
		require.NoError(t, err)
		objects, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
		require.NoError(t, err)
		pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
		pool.Spec = v1alpha1.WorkerPoolSpec{Min: 1, Max: 5,
			Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}}}
		require.NoError(t, objects.Create(t.Context(), pool))
		reporter := report.New("workers",
			report.Options{Client: objects, Metrics: report.NewMetrics(prometheus.NewRegistry())})
		reporter.Report(t.Context(), told())
		until("it is known", func() bool { return len(w.PoolIntent().Removing) > 0 })
		s := w.PoolIntent()
		assert.Equal(t, map[string]string{"gone-soon": "workers"}, s.Removing)
		assert.Equal(t, map[string]string{"next": "workers"}, s.Candidates)
		assert.Equal(t, []string{"workers", "workers"}, growing(s), "in both zones")

		require.NoError(t, crds.Delete(t.Context(), "workerpools.foresail.dev", metav1.DeleteOptions{}))
		until("it has gone", func() bool {
			return len(w.PoolIntent().Removing)+len(w.PoolIntent().Candidates)+len(w.PoolIntent().Growing) == 0
		})
	}
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}
