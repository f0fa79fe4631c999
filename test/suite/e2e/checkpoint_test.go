package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// TestWhatIsLearnedOutlivesTheProcess: the elected replica writes a checkpoint with the rights of
// the manifests, a process that starts goes on from it, and it goes with its PredictedMetric.
func TestWhatIsLearnedOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	app := newApp("learned", "web", "predicted_load_total")
	deploy(t, app)
	checkpoints := shared.Cluster.Dynamic().Resource(schema.GroupVersionResource{
		Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Resource: "predictedmetriccheckpoints",
	}).Namespace(app.Namespace)
	loaded, idle := context.WithCancel(t.Context()) // of a load that is 0 nothing is learned
	var carried sync.WaitGroup
	carried.Go(func() {
		_ = shared.Carry(loaded, app, loadgen.Profile{{At: 0, RPS: 20}, {At: 5 * time.Minute, RPS: 20}},
			func(stack.Moment) {})
	})
	defer carried.Wait()
	defer idle()
	eventually(t, 4*time.Minute, "no checkpoint", func(c *assert.CollectT) {
		_, err := checkpoints.Get(t.Context(), app.Name, metav1.GetOptions{})
		require.NoError(c, err)
	})

	again, err := startAdapter(suite, "learned", "--namespaces=learned")
	require.NoError(t, err)
	defer func() { assert.NoError(t, again.Stop()) }()
	eventually(t, time.Minute, "the checkpoint is not adopted", func(c *assert.CollectT) {
		families, err := again.Metrics(t.Context())
		require.NoError(c, err)
		assert.Positive(c, families.Sum("foresail_checkpoint_reads_total", "result", "Adopted"))
	})

	require.NoError(t, shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace).Delete(t.Context(),
		app.Name, metav1.DeleteOptions{}))
	eventually(t, time.Minute, "the checkpoint is left", func(c *assert.CollectT) {
		_, err := checkpoints.Get(t.Context(), app.Name, metav1.GetOptions{})
		assert.True(c, apierrors.IsNotFound(err), "%v", err)
	})
}
