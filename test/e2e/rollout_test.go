package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/test/loadgen"
)

// TestRollingUpdate replaces every pod under a constant load: what is served shows neither a spike nor a fall, and nothing is
// scaled.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	const (
		grow   = 60 * time.Second / timeScale
		settle = 100 * time.Second / timeScale
		span   = settle + 3*time.Minute/timeScale
		rps    = 55.0
	)
	app := newApp("rollout", "app", "predicted_load_total")
	app.Replicas, app.Min = 5, 5
	deploy(t, app)
	deployments := shared.Cluster.Client().AppsV1().Deployments(app.Namespace)

	update := time.AfterFunc(settle, func() {
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted-at":%q}}}}}`, time.Now())
		_, err := deployments.Patch(t.Context(), app.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		assert.NoError(t, err)
	})
	defer update.Stop()
	// It rises slowly: a steep rise may be forecast to go on for a moment, and need a pod more.
	profile := loadgen.Profile{{At: 0, RPS: 0.8 * rps}, {At: grow, RPS: rps}, {At: span, RPS: rps}}
	run, err := shared.Play(t.Context(), app, profile, nil)
	require.NoError(t, err)

	deployment, err := deployments.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, deployment.Status.Replicas, deployment.Status.UpdatedReplicas, "the update is complete")
	require.Positive(t, deployment.Status.ObservedGeneration-1, "there was an update")

	load := rps * app.ServiceTime.Seconds()
	before, after := served(during(run, settle-20*time.Second/timeScale, settle)), served(during(run, settle, span))
	lowest, highest := bounds(before)
	low, high := bounds(after)
	t.Logf("served %.2f to %.2f before the update, %.2f to %.2f during and after it, for a load of %.2f", lowest, highest, low, high, load)
	assert.LessOrEqual(t, high, max(load*1.4, carried(app, app.Replicas)))
	assert.GreaterOrEqual(t, low, load*0.7)
	for _, m := range during(run, grow, span) {
		require.Equal(t, app.Replicas, m.Replicas, "replicas at %s, when %.2f is served", m.At, m.Served)
		require.NoError(t, m.Err, "at %s", m.At)
	}
}
