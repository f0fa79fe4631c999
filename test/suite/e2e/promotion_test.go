package e2e

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/test/env/stack"
)

//go:embed rollouts.yaml
var rolloutsYAML []byte

//go:embed promotion.yaml
var promotionYAML []byte

var rollouts = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// rollout is an object as Argo Rollouts keeps it, which this test does in its place.
type rollout struct {
	*testing.T
	namespace string
}

func applyRollout(t *testing.T, manifest []byte) {
	t.Helper()
	for _, m := range [][]byte{rolloutsYAML, manifest} {
		_, err := shared.Cluster.Apply(t.Context(), m)
		require.NoError(t, err)
	}
}

func (r rollout) get(c require.TestingT) *unstructured.Unstructured {
	object, err := shared.Cluster.Dynamic().Resource(rollouts).Namespace(r.namespace).Get(suite, "app",
		metav1.GetOptions{})
	require.NoError(c, err)
	return object
}

func (r rollout) replicas(c require.TestingT) int {
	replicas, found, err := unstructured.NestedInt64(r.get(c).Object, "spec", "replicas")
	require.NoError(c, err)
	require.True(c, found)
	return int(replicas)
}

// follow has the scale be that of a version.
func (r rollout) follow(version string) { r.selects("app=app,rollouts-pod-template-hash=" + version) }

// selects sets the selector of the scale.
func (r rollout) selects(pods string) {
	status := fmt.Sprintf(`{"status":{"replicas":%d,"selector":%q}}`, r.replicas(r), pods)
	_, err := shared.Cluster.Dynamic().Resource(rollouts).Namespace(r.namespace).
		Patch(suite, "app", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(r, err)
}

// scale sets the pods of a version, and waits until they are ready.
func (r rollout) scale(version string, replicas int) {
	sets := shared.Cluster.Client().AppsV1().ReplicaSets(r.namespace)
	_, err := sets.Patch(suite, version, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas),
		metav1.PatchOptions{})
	require.NoError(r, err)
	eventually(r.T, 2*time.Minute, "the pods of "+version+" are ready", func(c *assert.CollectT) {
		set, err := sets.Get(suite, version, metav1.GetOptions{})
		require.NoError(c, err)
		assert.EqualValues(c, replicas, set.Status.ReadyReplicas)
	})
}

// application has the pods of both versions, each of which says what it carries of a constant load:
// the active ones an equal share, the others nothing.
type application struct {
	*testing.T
	namespace string
	share     float64
	active    atomic.Pointer[string]
}

func (a *application) promote(version string) { a.active.Store(&version) }

// serve gives the pods of a version the metrics page of a Node.js process.
func (a *application) serve(version string) {
	err := shared.ServePages(a.Context(), a.namespace, "rollouts-pod-template-hash="+version,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			carried := 0.0
			if *a.active.Load() == version {
				carried = a.share
			}
			fmt.Fprintf(w, "# TYPE nodejs_eventloop_utilization gauge\nnodejs_eventloop_utilization %g\n", carried)
		}))
	require.NoError(a, err)
}

// TestBlueGreenPromotion has the selector of a scale move to the pods of another version, as Argo
// Rollouts has it at each promotion, under a constant load. The real HPA sees neither a rise nor a
// fall: it keeps the replicas while nothing is known.
func TestBlueGreenPromotion(t *testing.T) {
	t.Parallel()
	const replicas, load = 5, 3.1 // for which neither four replicas do nor six are needed
	applyRollout(t, promotionYAML)
	r := rollout{t, "promotion"}
	app := stack.App{Namespace: r.namespace, Name: "app", Metric: "predicted_load_total"}
	carrying := &application{T: t, namespace: r.namespace, share: load / replicas}
	carrying.promote("blue")
	r.scale("blue", replicas)
	carrying.serve("blue")
	r.follow("blue")
	client := metricsClient(t)
	eventually(t, 3*time.Minute, "the HPA reads a forecast of the load", func(c *assert.CollectT) {
		served, err := stack.ReadMetric(client, app)
		require.NoError(c, err)
		assert.InDelta(c, load, served, 0.4)
		hpa, err := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(r.namespace).Get(t.Context(),
			"app", metav1.GetOptions{})
		require.NoError(c, err)
		assert.True(c, slices.ContainsFunc(hpa.Status.Conditions,
			func(x autoscalingv2.HorizontalPodAutoscalerCondition) bool {
				return x.Type == autoscalingv2.ScalingActive && x.Status == corev1.ConditionTrue
			}), "%v", hpa.Status.Conditions)
		assert.Equal(c, replicas, r.replicas(c))
	})
	r.scale("green", replicas)
	carrying.serve("green")

	carrying.promote("green")
	r.follow("green")
	begin := time.Now()
	var values []float64
	for time.Since(begin) < time.Minute {
		served, err := stack.ReadMetric(client, app)
		after := time.Since(begin).Round(time.Millisecond)
		require.Equal(t, replicas, r.replicas(t), "%s after the promotion, when %.2f is served (%v)", after, served,
			err)
		if err == nil {
			values = append(values, served)
		} else {
			require.True(t, apierrors.IsServiceUnavailable(err), "%s after the promotion: %v", after, err)
		}
		time.Sleep(500 * time.Millisecond) // between two looks
	}
	require.NotEmpty(t, values)
	low, high := bounds(values)
	t.Logf("served %.2f to %.2f at %d looks for a load of %.2f", low, high, len(values), load)
	assert.InDelta(t, load, values[len(values)-1], 0.4)
}
