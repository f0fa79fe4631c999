package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/test/env/stack"
)

// TestSeveralMetricsOfOneTarget has two PredictedMetrics of the same pods, one with half the
// threshold of the other, and an HPA that reads the one that asks for less: it gets what they ask
// for together. While nothing is known of the one that asks for more, the target is not scaled
// down.
func TestSeveralMetricsOfOneTarget(t *testing.T) {
	t.Parallel()
	const loosely, strictly = 3, 5 // replicas that a load of 1.6 needs at 0.7, and at 0.35
	app := newApp("joint", "loose", "predicted_replicas")
	app.ServiceTime, app.Replicas, app.Min = 80*time.Millisecond, 2, 2
	app.ScaleDownWindow = 5
	deploy(t, app)
	strict := addMetric(t, app, "strict", func(spec map[string]any) { spec["threshold"] = "350m" })
	waitForForecast(t, strict)
	s := beginSteady(t, app, 20)

	eventually(t, 2*time.Minute, "the lower threshold drives", func(c *assert.CollectT) {
		state, err := shared.Look(t.Context(), app)
		require.NoError(c, err)
		assert.GreaterOrEqual(c, state.Replicas, strictly)
		for _, a := range []stack.App{app, strict} {
			assert.Equal(c, strict.Name, statusOf(c, a).DrivenBy, a.Name)
		}
		serveAlike(c, t, app, strict)
	})

	blind(t, strict)
	client := metricsClient(t)
	eventually(t, time.Minute, "nothing is known of the one that drives", func(c *assert.CollectT) {
		_, err := stack.ReadMetric(client, strict)
		assert.True(c, apierrors.IsServiceUnavailable(err), "%v", err)
		assert.Equal(c, strict.Name, statusOf(c, app).DrivenBy)
	})
	from := time.Now()
	s.next(t, from.Add(2*hpaSync*time.Second), time.Minute, "two syncs", func(sighting) bool { return true })
	for _, x := range s.since(from) {
		require.NoError(t, x.Err)
		assert.GreaterOrEqual(t, x.Served, float64(strictly), "replicas served at %s", x.At)
	}
	s.keptReplicas(t, from)

	metrics := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace)
	require.NoError(t, metrics.Delete(t.Context(), strict.Name, metav1.DeleteOptions{}))
	eventually(t, 2*time.Minute, "the one that is left decides alone", func(c *assert.CollectT) {
		state, err := shared.Look(t.Context(), app)
		require.NoError(c, err)
		assert.Less(c, state.Replicas, strictly)
		assert.GreaterOrEqual(c, state.Replicas, loosely)
		assert.Equal(c, app.Name, statusOf(c, app).DrivenBy)
	})
}

// serveAlike: the metrics of one target serve one number. It may change between two readings, but not twice.
func serveAlike(c *assert.CollectT, t *testing.T, one, other stack.App) {
	client := metricsClient(t)
	before, err := stack.ReadMetric(client, one)
	require.NoError(c, err)
	between, err := stack.ReadMetric(client, other)
	require.NoError(c, err)
	after, err := stack.ReadMetric(client, one)
	require.NoError(c, err)
	assert.Equal(c, before, after)
	assert.Equal(c, before, between)
}

// blind has a PredictedMetric read what its pods do not expose.
func blind(t *testing.T, a stack.App) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"source": map[string]any{"pods": map[string]any{"metric": "no_such_metric"}}}})
	require.NoError(t, err)
	_, err = shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(a.Namespace).
		Patch(t.Context(), a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}
