package e2e

import (
	_ "embed"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/stack"
)

//go:embed canary.yaml
var canaryYAML []byte

// TestCanary has the HPA of spec.autoscaler scale a Rollout by the load of its stable and its
// canary pods together, with the rights that the manifests grant. A pod of the canary is busier by
// half.
func TestCanary(t *testing.T) {
	t.Parallel()
	applyRollout(t, canaryYAML)
	r := rollout{t, "canary"}
	app := stack.App{Namespace: r.namespace, Name: "app", Metric: "predicted_load_total"}
	var milli atomic.Int64 // what a stable pod reads
	milli.Store(600)
	for version, pods := range map[string]int{"stable": 3, "canary": 1} {
		factor := map[string]float64{"stable": 1, "canary": 1.5}[version]
		r.scale(version, pods)
		err := shared.ServePages(t.Context(), r.namespace, "rollouts-pod-template-hash="+version,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "# TYPE nodejs_eventloop_utilization gauge\nnodejs_eventloop_utilization %g\n",
					factor*float64(milli.Load())/1000)
			}))
		require.NoError(t, err)
	}
	r.selects("app=app")

	client := metricsClient(t)
	eventually(t, 3*time.Minute, "the load of both versions has its pods", func(c *assert.CollectT) {
		served, err := stack.ReadMetric(client, app)
		require.NoError(c, err)
		assert.InDelta(c, 3*0.6+0.9, served, 0.2)
		ready := conditionOf(statusOf(c, app), v1alpha1.ConditionAutoscalerReady)
		assert.Equal(c, "AsRecommended", ready.Reason, ready.Message)
		hpa, err := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(r.namespace).Get(suite, "app",
			metav1.GetOptions{})
		require.NoError(c, err)
		assert.Equal(c, "Rollout", hpa.Spec.ScaleTargetRef.Kind)
		assert.Equal(c, 4, r.replicas(c))
	})

	milli.Store(900)
	eventually(t, 2*time.Minute, "the Rollout has the replicas of a higher load", func(c *assert.CollectT) {
		assert.GreaterOrEqual(c, r.replicas(c), 6, "%v", hpaConditions(c, app))
	})
}
