package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestRollingUpdate replaces every pod under a constant load: what is served shows neither a spike nor a fall, and nothing is
// scaled.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	const rps = 55.0
	app := newApp("rollout", "app", "predicted_load_total")
	app.Replicas, app.Min = 5, 5
	deploy(t, app)
	deployments := shared.Cluster.Client().AppsV1().Deployments(app.Namespace)
	s := beginSteady(t, app, rps)
	s.settle(t)
	// A steep rise may be forecast to go on for a moment, and need more pods.
	s.next(t, time.Now(), 2*time.Minute, "no more replicas than the load needs", func(x sighting) bool { return x.Replicas == app.Replicas })

	begin := time.Now()
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted-at":%q}}}}}`, begin)
	_, err := deployments.Patch(t.Context(), app.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	s.next(t, begin.Add(3*time.Minute/timeScale), 3*time.Minute, "the update and its effects", func(sighting) bool { return true })
	deployment, err := deployments.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, deployment.Status.Replicas, deployment.Status.UpdatedReplicas, "the update is complete")
	require.Positive(t, deployment.Status.ObservedGeneration-1, "there was an update")

	load := rps * app.ServiceTime.Seconds()
	var values []float64
	for _, x := range s.since(begin) {
		require.Equal(t, app.Replicas, x.Replicas, "replicas at %s, when %.2f is served", x.At, x.Served)
		require.NoError(t, x.Err, "at %s", x.At)
		values = append(values, x.Served)
	}
	low, high := bounds(values)
	t.Logf("served %.2f to %.2f for a load of %.2f", low, high, load)
	assert.LessOrEqual(t, high, max(load*1.4, carried(app, app.Replicas)))
	assert.GreaterOrEqual(t, low, load*0.7)
}
