package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/internal/crdtest/invalidtest"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/stack"
)

var (
	predictedMetrics = schema.GroupVersionResource{Group: "foresail.dev", Version: "v1alpha1",
		Resource: "predictedmetrics"}
	workerPools = schema.GroupVersionResource{Group: "foresail.dev", Version: "v1alpha1", Resource: "workerpools"}
)

// get reads a path of the API server as kubectl get --raw does.
func get(t *testing.T, path string) []byte {
	t.Helper()
	body, err := shared.Cluster.Client().Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	require.NoError(t, err, path)
	return body
}

func TestDiscoveryAndOpenAPI(t *testing.T) {
	t.Parallel()
	resources, err := shared.Cluster.Client().Discovery().ServerResourcesForGroupVersion("external.metrics.k8s.io/v1beta1")
	require.NoError(t, err)
	var names []string
	for _, r := range resources.APIResources {
		names = append(names, r.Name)
		assert.True(t, r.Namespaced, r.Name)
		assert.Equal(t, "ExternalMetricValueList", r.Kind)
	}
	assert.ElementsMatch(t, []string{"predicted_load", "predicted_load_total", "predicted_replicas"}, names)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the API server fetches it in its own time
		body, err := shared.Cluster.Client().Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/external.metrics.k8s.io/v1beta1").DoRaw(t.Context())
		assert.NoError(c, err)
		assert.Contains(c, string(body), "ExternalMetricValueList")
	}, time.Minute, time.Second)
	assert.Contains(t, string(get(t, "/openapi/v3/apis/foresail.dev/v1alpha1")),
		"The value that the metric of one pod should stay below")
}

// TestRefusals reads what there is no value of, through the API server.
func TestRefusals(t *testing.T) {
	t.Parallel()
	one, two := newApp("refusals", "one", "predicted_load"), newApp("refusals", "two", "predicted_load")
	deploy(t, one)
	deploy(t, two)
	client := metricsClient(t).NamespacedMetrics("refusals")
	for _, c := range []struct {
		name, metric, selector string
		code                   int
		message                []string
	}{
		{"an unknown metric", "load", "predictedmetric=one", http.StatusNotFound,
			[]string{"load", "predicted_load_total"}},
		{"no such PredictedMetric", "predicted_load_total", "predictedmetric=three", http.StatusNotFound,
			[]string{"three", "one"}},
		{"a selector of two", "predicted_load", "kind=Deployment", http.StatusBadRequest, []string{"one", "two"}},
		{"a selector of two", "predicted_replicas", "", http.StatusBadRequest, []string{"one", "two"}},
		{"a selector of two", "predicted_load_total", "", http.StatusBadRequest, []string{"one", "two"}},
	} {
		selector, err := labels.Parse(c.selector)
		require.NoError(t, err)
		_, err = client.List(c.metric, selector)
		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status, "%s", c.name)
		assert.Equal(t, int32(c.code), status.Status().Code, "%s: %v", c.name, err)
		for _, word := range c.message {
			assert.ErrorContains(t, err, word, c.name)
		}
	}
	list, err := client.List("predicted_load_total", labels.SelectorFromSet(labels.Set{"target": "one"}))
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, map[string]string{"predictedmetric": "one", "kind": "Deployment", "target": "one"},
		list.Items[0].MetricLabels)
	assert.WithinDuration(t, time.Now(), list.Items[0].Timestamp.Time, 10*time.Second)
}

// TestNoReadyPods scales a target to nothing: there is no load, and that is not a load of nothing.
func TestNoReadyPods(t *testing.T) {
	t.Parallel()
	app := newApp("nopods", "app", "predicted_load")
	deploy(t, app)
	deployments := shared.Cluster.Client().AppsV1().Deployments(app.Namespace)
	scale, err := deployments.GetScale(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	scale.Spec.Replicas = 0
	_, err = deployments.UpdateScale(t.Context(), app.Name, scale, metav1.UpdateOptions{})
	require.NoError(t, err)
	client := metricsClient(t)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := stack.ReadMetric(client, app)
		assert.True(c, apierrors.IsServiceUnavailable(err), "%v", err)
		assert.ErrorContains(c, err, "nopods/app")
		assert.ErrorContains(c, err, "scaled to 0 replicas")
	}, 20*time.Second, time.Second)
}

// TestStatus reads what people read: columns, conditions, events.
func TestStatus(t *testing.T) {
	t.Parallel()
	app := newApp("status", "app", "predicted_load_total")
	deploy(t, app)
	resource := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pm, err := resource.Get(t.Context(), app.Name, metav1.GetOptions{})
		if !assert.NoError(c, err) {
			return
		}
		assert.JSONEq(c, `{"Ready":"True","SamplesSufficient":"True","HorizonSufficient":"True","SamplesFresh":"True","TargetFound":"True"}`, conditions(pm.Object))
	}, 30*time.Second, time.Second)

	request := shared.Cluster.Client().Discovery().RESTClient().Get().
		AbsPath("/apis/foresail.dev/v1alpha1/namespaces/status/predictedmetrics").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	body, err := request.DoRaw(t.Context())
	require.NoError(t, err)
	var printed metav1.Table
	require.NoError(t, json.Unmarshal(body, &printed))
	row := map[string]any{}
	for i, column := range printed.ColumnDefinitions {
		row[strings.ToUpper(column.Name)] = printed.Rows[0].Cells[i]
	}
	for column, want := range map[string]any{"NAME": "app", "TARGET": "app", "THRESHOLD": "700m", "REPLICAS": 4.0,
		"DESIRED": 4.0, "READY": "True"} {
		assert.EqualValues(t, want, row[column], column)
	}
	for _, column := range []string{"LOAD", "PREDICTED", "REASON", "AGE"} {
		assert.NotEmpty(t, row[column], column)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		events, err := shared.Cluster.Client().EventsV1().Events(app.Namespace).List(t.Context(), metav1.ListOptions{})
		if !assert.NoError(c, err) {
			return
		}
		var reasons []string
		for _, e := range events.Items {
			if e.Regarding.Kind == "PredictedMetric" {
				reasons = append(reasons, e.Reason)
			}
		}
		assert.Contains(c, reasons, "ForecastServed")
	}, 20*time.Second, time.Second)

	page, err := adapter.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	assert.Contains(t, page, `foresail_forecast_available{namespace="status",predictedmetric="app"} 1`)
}

func conditions(pm map[string]any) string {
	out := map[string]any{}
	status, _ := pm["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		condition := c.(map[string]any)
		out[condition["type"].(string)] = condition["status"]
	}
	encoded, _ := json.Marshal(out) // strings alone
	return string(encoded)
}

// TestAPIServerRefusesBadSpecs creates the invalid objects of the API's own tests on a real API server.
func TestAPIServerRefusesBadSpecs(t *testing.T) {
	t.Parallel()
	root, err := controlplane.Root()
	require.NoError(t, err)
	_, err = shared.Cluster.Apply(t.Context(),
		[]byte(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`))
	require.NoError(t, err)
	for _, c := range invalidtest.Load(t, filepath.Join(root, "api", "v1alpha1", "testdata", "invalid.yaml")).Cases {
		t.Run(c.Name, func(t *testing.T) {
			bad := &unstructured.Unstructured{Object: c.Object}
			_, err := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace("shop").Create(t.Context(), bad,
				metav1.CreateOptions{})
			assert.True(t, apierrors.IsInvalid(err), "%v", err)
			for _, want := range c.Errors {
				assert.ErrorContains(t, err, want.Field+": ")
				assert.ErrorContains(t, err, want.Part)
			}
		})
	}
}

// TestExamplesApply applies the manifests that the documentation has users apply. Examples of one
// pool are alternatives, of which none may be turned into another.
func TestExamplesApply(t *testing.T) {
	t.Parallel()
	root, err := controlplane.Root()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "manifests", "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "keda-") {
			continue // KEDA has the kind
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		applied, err := shared.Cluster.Apply(t.Context(), content)
		assert.NoError(t, err, filepath.Base(file))
		for _, object := range applied {
			if object.GetKind() == "WorkerPool" {
				require.NoError(t, shared.Cluster.Dynamic().Resource(workerPools).Delete(t.Context(), object.GetName(),
					metav1.DeleteOptions{}))
			}
		}
	}
}
