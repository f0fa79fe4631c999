package e2e

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

//go:embed zero.yaml
var zeroYAML []byte

// gateway says how many requests are open for pods that there may be none of.
type gateway struct{ open atomic.Uint64 }

func (g *gateway) set(open float64) { g.open.Store(math.Float64bits(open)) }

func (g *gateway) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "# TYPE gateway_open_requests gauge\ngateway_open_requests %g\n",
		math.Float64frombits(g.open.Load()))
}

// TestFromAndToZero has a plain HPA scale a target from zero by a load that is there without pods,
// and back: what is not above the activation wakes nothing.
func TestFromAndToZero(t *testing.T) {
	t.Parallel()
	server := startPrometheus(t, monitoring.PrometheusOptions{Name: "prometheus-zero", Selector: "app=gateway"})
	_, err := shared.Cluster.Apply(t.Context(), bytes.ReplaceAll(zeroYAML, []byte("ADDRESS"), []byte(server.URL)))
	require.NoError(t, err)
	app := stack.App{Namespace: "zero", Name: "worker", Metric: "predicted_load_total"}
	eventually(t, 2*time.Minute, "the gateway is ready", func(c *assert.CollectT) {
		gateway, err := shared.Cluster.Client().AppsV1().Deployments("zero").Get(t.Context(), "gateway",
			metav1.GetOptions{})
		require.NoError(c, err)
		assert.EqualValues(c, 1, gateway.Status.ReadyReplicas)
	})
	load := &gateway{}
	require.NoError(t, shared.ServePages(t.Context(), app.Namespace, "app=gateway", load))

	replicas := func(c require.TestingT) int {
		state, err := shared.Look(suite, app)
		require.NoError(c, err)
		return state.Replicas
	}
	waitForForecastWithin(t, app, 2*time.Minute)
	asleep := func() {
		eventually(t, 2*time.Minute, "nothing is left to do", func(c *assert.CollectT) {
			assert.Zero(c, replicas(c), "%v", hpaConditions(c, app))
		})
	}
	asleep()
	served, err := stack.ReadMetric(metricsClient(t), app)
	require.NoError(t, err)
	assert.Zero(t, served)
	eventually(t, time.Minute, "it is reported why the load of pods cannot wake it", func(c *assert.CollectT) {
		ready := conditionOf(statusOf(c, stack.App{Namespace: "zero", Name: "blind"}), v1alpha1.ConditionReady)
		assert.Equal(c, metav1.ConditionFalse, ready.Status)
		assert.Contains(c, ready.Message, "scaled to 0 replicas")
	})

	load.set(4)
	begin := time.Now()
	for time.Since(begin) < 2*hpaSync*time.Second {
		require.Zero(t, replicas(t), "a load that is not above the activation")
		time.Sleep(500 * time.Millisecond) // between two looks
	}
	for range 2 {
		load.set(120)
		eventually(t, time.Minute, "the load has woken as many pods as it needs", func(c *assert.CollectT) {
			assert.GreaterOrEqual(c, replicas(c), 3, "%v", hpaConditions(c, app))
		})
		load.set(0)
		asleep()
	}
	eventually(t, time.Minute, "the status, which is written later, says so", func(c *assert.CollectT) {
		decision := statusOf(c, app).LastDecision
		require.NotNil(c, decision)
		assert.Equal(c, "Idle", decision.Reason)
	})
}

// hpaConditions says what the HPA of an application makes of what it reads.
func hpaConditions(c require.TestingT, a stack.App) (out []string) {
	hpa, err := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(a.Namespace).Get(suite, a.Name,
		metav1.GetOptions{})
	require.NoError(c, err)
	for _, x := range hpa.Status.Conditions {
		out = append(out, fmt.Sprintf("%s %s: %s", x.Type, x.Status, x.Message))
	}
	return append(out, fmt.Sprintf("%+v", statusOf(c, a).LastDecision))
}
