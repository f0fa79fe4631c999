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

// TestRollingUpdate replaces every pod under a constant load: the forecast shows no spike, and nothing is scaled.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	const (
		settle = 90 * time.Second // the load begins all at once, which is a spike at first
		span   = settle + 3*time.Minute
	)
	app := newApp("rollout", "steady", "predicted_load_total")
	app.Replicas, app.Min = 5, 5
	app.ScaleDownWindow = 600 // what changes the replicas then is the forecast alone
	deploy(t, app)
	deployments := shared.Cluster.Client().AppsV1().Deployments(app.Namespace)

	update := time.AfterFunc(settle, func() {
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted-at":%q}}}}}`, time.Now())
		_, err := deployments.Patch(t.Context(), app.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		assert.NoError(t, err)
	})
	defer update.Stop()
	run, err := shared.Play(t.Context(), app, loadgen.Constant(55, span), nil) // 2.2 pods' worth, 0.44 a pod
	require.NoError(t, err)

	deployment, err := deployments.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	kept := during(run, settle-time.Second, settle)[0].Replicas
	require.Equal(t, int32(kept), deployment.Status.UpdatedReplicas, "the update is complete")
	require.Equal(t, int32(kept), deployment.Status.Replicas, "the update is complete")

	_, highest := bounds(served(during(run, settle-30*time.Second, settle)))
	_, high := bounds(served(during(run, settle, span)))
	t.Logf("served at most %.2f before the update, %.2f during and after it", highest, high)
	assert.LessOrEqual(t, high, highest*1.2)
	for _, m := range during(run, settle, span) {
		require.Equal(t, kept, m.Replicas, "replicas at %s", m.At)
		require.NoError(t, m.Err, "at %s", m.At)
	}
}
