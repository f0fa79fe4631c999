package externalmetrics

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"

	"github.com/foresail/foresail/adapter/door/custommetrics"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

const (
	customPath  = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/predictedmetrics.foresail.dev/"
	olderCustom = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/predictedmetrics.foresail.dev/"
)

func serveCustom(t *testing.T, snapshots ...snapshot.Snapshot) *served {
	t.Helper()
	memory := servingtest.NewMemory(snapshots...)
	return serveConfig(t, Config{Custom: custommetrics.New(memory, time.Now)}, memory)
}

// Both doors read one snapshot: the value, the time and the error of both are the same.
func TestCustomMetricsEqualExternalOnes(t *testing.T) {
	waiting := servingtest.Changed(fresh("waiting", "y"), func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	s := serveCustom(t, fresh("a", "x"), waiting)
	for _, metric := range serving.Metrics() {
		var want external.ExternalMetricValueList
		s.get(t, "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/"+metric+
			"?labelSelector=predictedmetric%3Da", hpaUser).decode(t, &want)
		require.Len(t, want.Items, 1)

		var got v1beta2.MetricValueList
		s.get(t, customPath+"a/"+metric, hpaUser).decode(t, &got)
		assert.Equal(t, metav1.TypeMeta{APIVersion: "custom.metrics.k8s.io/v1beta2", Kind: "MetricValueList"},
			got.TypeMeta)
		require.Len(t, got.Items, 1)
		assert.Equal(t, want.Items[0].Value.String(), got.Items[0].Value.String())
		assert.Equal(t, want.Items[0].Timestamp, got.Items[0].Timestamp)
		assert.Equal(t, metric, got.Items[0].Metric.Name)
		assert.Equal(t, "PredictedMetric", got.Items[0].DescribedObject.Kind)
		assert.Equal(t, "a", got.Items[0].DescribedObject.Name)

		var older v1beta1.MetricValueList
		s.get(t, olderCustom+"a/"+metric, hpaUser).decode(t, &older)
		require.Len(t, older.Items, 1)
		assert.Equal(t, want.Items[0].Value.String(), older.Items[0].Value.String())
		assert.Equal(t, metric, older.Items[0].MetricName)

		status := func(path string) (status metav1.Status) {
			answer := s.get(t, path, hpaUser)
			assert.Equal(t, http.StatusServiceUnavailable, answer.code)
			assert.Empty(t, answer.header.Get("Retry-After"))
			require.NoError(t, json.Unmarshal(answer.body, &status))
			return status
		}
		if metric == serving.LoadTotal {
			assert.Equal(t, status("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/"+metric+
				"?labelSelector=predictedmetric%3Dwaiting"), status(customPath+"waiting/"+metric))
		}
	}
}

func TestReadsOfCustomMetricsThatAreRefused(t *testing.T) {
	s := serveCustom(t, fresh("a", "x"))
	for name, c := range map[string]struct {
		path, token string
		code        int
		message     string
	}{
		"a user without the right": {customPath + "a/predicted_load", visitorUser, http.StatusForbidden, visitorUser},
		"no one":                   {customPath + "a/predicted_load", "", http.StatusForbidden, "anonymous"},
		"several at once": {customPath + "*/predicted_load", hpaUser, http.StatusBadRequest,
			"name one of them instead of *"},
		"a selector of the metric": {customPath + "a/predicted_load?metricLabelSelector=a%3Db", hpaUser,
			http.StatusBadRequest, `the metric selector \"a=b\" must be left out`},
		"a PredictedMetric of nowhere": {customPath + "b/predicted_load", hpaUser, http.StatusNotFound,
			"matches no PredictedMetric: the namespace has a"},
		"another metric": {customPath + "a/requests", hpaUser, http.StatusNotFound,
			`there is no metric \"requests\"`},
		"another kind": {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/requests", hpaUser,
			http.StatusNotFound, `there are no metrics of \"pods\"`},
		"a namespace": {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/requests", hpaUser,
			http.StatusNotFound, `there are no metrics of \"namespaces\"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.get(t, c.path, c.token)
			assert.Equal(t, c.code, got.code)
			assert.Contains(t, string(got.body), c.message)
		})
	}
}

func TestBothGroupsAreDiscovered(t *testing.T) {
	s := serveCustom(t)
	custom := []string{"predictedmetrics.foresail.dev/predicted_load_total",
		"predictedmetrics.foresail.dev/predicted_load", "predictedmetrics.foresail.dev/predicted_replicas"}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		var list metav1.APIResourceList
		s.get(t, "/apis/custom.metrics.k8s.io/"+version, visitorUser).decode(t, &list)
		var names []string
		for _, r := range list.APIResources {
			names = append(names, r.Name)
		}
		assert.Equal(t, custom, names, version)
	}
	// This is the document that the cluster's API server requests.
	var aggregated apidiscovery.APIGroupDiscoveryList
	s.get(t, "/apis", visitorUser, "Accept", discovery.AcceptV2).decode(t, &aggregated)
	found := map[string]int{}
	for _, group := range aggregated.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				found[version.Version+"."+group.Name] += max(1, len(r.Subresources))
			}
		}
	}
	assert.Equal(t, map[string]int{"v1beta1.external.metrics.k8s.io": 3, "v1beta1.custom.metrics.k8s.io": 3,
		"v1beta2.custom.metrics.k8s.io": 3}, found)

	var index struct{ Paths map[string]any }
	s.get(t, "/openapi/v3", visitorUser).decode(t, &index)
	assert.Contains(t, index.Paths, "apis/custom.metrics.k8s.io/v1beta2")
	assert.Contains(t, index.Paths, "apis/custom.metrics.k8s.io/v1beta1")
	assert.Equal(t, http.StatusOK, s.get(t, "/openapi/v2", visitorUser).code)
}

func TestCustomMetricsAreOffByDefault(t *testing.T) {
	s := serve(t, fresh("a", "x"))
	assert.Equal(t, http.StatusNotFound, s.get(t, customPath+"a/predicted_load", hpaUser).code)
	var groups metav1.APIGroupList
	s.get(t, "/apis", visitorUser).decode(t, &groups)
	assert.Len(t, groups.Groups, 1)
}
