package custommetrics

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/kubeapi"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

func newTestProvider(reader serving.Reader) *Provider {
	return New(reader, func() time.Time { return servingtest.Now })
}

func of(metric string) provider.CustomMetricInfo {
	return provider.CustomMetricInfo{GroupResource: described(), Namespaced: true, Metric: metric}
}

func get(p *Provider, name string, info provider.CustomMetricInfo,
	selector labels.Selector) (*custom_metrics.MetricValue, error) {
	return p.GetMetricByName(context.Background(), types.NamespacedName{Namespace: "shop", Name: name}, info, selector)
}

// The values are those that every door serves of the same snapshot.
func TestValues(t *testing.T) {
	m := servingtest.NewMemory(servingtest.Healthy("checkout-elu", "checkout"),
		servingtest.Healthy("other", "checkout"))
	p := newTestProvider(m)
	for metric, want := range map[string]string{serving.LoadTotal: "10010m",
		serving.Load: "1001m", serving.Replicas: "14"} {
		t.Run(metric, func(t *testing.T) {
			got, err := get(p, "checkout-elu", of(metric), labels.Everything())
			require.NoError(t, err)
			assert.Equal(t, want, got.Value.String())
			assert.Equal(t, custom_metrics.ObjectReference{
				APIVersion: "foresail.dev/v1alpha1", Kind: "PredictedMetric", Namespace: "shop", Name: "checkout-elu",
			}, got.DescribedObject)
			assert.Equal(t, custom_metrics.MetricIdentifier{Name: metric}, got.Metric)
			assert.Equal(t, metav1.NewTime(servingtest.Now.Add(-2*time.Second)), got.Timestamp)
			assert.Nil(t, got.WindowSeconds)

			item, err := serving.Read(m,
				serving.Query{Namespace: "shop", Selector: serving.ByName("checkout-elu"), Metric: metric,
					Now: servingtest.Now})
			require.NoError(t, err)
			assert.Equal(t, item.Milli, got.Value.MilliValue())
		})
	}
}

func TestErrorsHaveTheSentenceOfEveryDoor(t *testing.T) {
	waiting := servingtest.Changed(servingtest.Healthy("waiting", "x"),
		func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	stale := servingtest.Changed(servingtest.Healthy("stale", "x"), func(s *snapshot.Snapshot) {
		s.At, s.NewestSample = s.At.Add(-time.Minute), s.NewestSample.Add(-time.Minute)
	})
	large := servingtest.Changed(servingtest.Healthy("large", "y"),
		func(s *snapshot.Snapshot) { s.Forecast.ServedLoad = 1e300 })
	dry := servingtest.Changed(servingtest.Healthy("dry", "z"), func(s *snapshot.Snapshot) { s.DryRun = true })
	m := servingtest.NewMemory(waiting, stale, large, dry)
	for _, c := range []struct {
		name, metric string
		code         int32
	}{
		{"none", serving.LoadTotal, http.StatusNotFound},
		{"waiting", "requests", http.StatusNotFound},
		{"waiting", serving.LoadTotal, http.StatusServiceUnavailable},
		{"stale", serving.Replicas, http.StatusServiceUnavailable},
		{"large", serving.LoadTotal, http.StatusInternalServerError},
		{"dry", serving.Replicas, http.StatusServiceUnavailable},
	} {
		t.Run(c.name+" "+c.metric, func(t *testing.T) {
			p := newTestProvider(m)
			_, err := get(p, c.name, of(c.metric), labels.Everything())
			_, same := serving.Read(m,
				serving.Query{Namespace: "shop", Selector: serving.ByName(c.name), Metric: c.metric,
					Now: servingtest.Now})
			require.Error(t, same)
			require.EqualError(t, err, same.Error())
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.Equal(t, c.code, status.Status().Code)
			_, retry := apierrors.SuggestsClientDelay(err)
			assert.False(t, retry, "the HPA's client would wait")
			counted, reason := c.metric, serving.AsError(same).Reason
			if reason == serving.ReasonUnknownMetric {
				counted = kubeapi.OtherMetric
			}
			assert.InDelta(t, 1, observations(t, p.Duration.WithLabelValues(counted, reason)), 0)
		})
	}
}

func TestWhatIsNotServedIsRefusedInWords(t *testing.T) {
	byLabel, err := labels.Parse("predictedmetric=a")
	require.NoError(t, err)
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		read    func(*Provider) error
		code    int32
		message string
		counted []string
	}{
		"a metric of another kind": {func(p *Provider) error {
			_, err := get(p, "web-1",
				provider.CustomMetricInfo{GroupResource: pods, Namespaced: true,
					Metric: serving.LoadTotal}, labels.Everything())
			return err
		}, http.StatusNotFound, `there are no metrics of "pods": must be a PredictedMetric of foresail.dev/v1alpha1, whose metrics are predicted_load_total, predicted_load, predicted_replicas`,
			[]string{kubeapi.OtherMetric, serving.ReasonUnknownMetric}},
		"metrics of all pods": {func(p *Provider) error {
			_, err := p.GetMetricBySelector(context.Background(), "shop", labels.Everything(),
				provider.CustomMetricInfo{GroupResource: pods, Namespaced: true,
					Metric: "requests"}, labels.Everything())
			return err
		}, http.StatusNotFound, `there are no metrics of "pods"`, []string{kubeapi.OtherMetric,
			serving.ReasonUnknownMetric}},
		"a selector of the metric": {func(p *Provider) error {
			_, err := get(p, "a", of(serving.LoadTotal), byLabel)
			return err
		}, http.StatusBadRequest,
			`the metric selector "predictedmetric=a" must be left out: the described object names the PredictedMetric`,
			[]string{serving.LoadTotal, ReasonInvalidRead}},
		"several at once": {func(p *Provider) error {
			_, err := p.GetMetricBySelector(context.Background(), "shop", byLabel, of(serving.Replicas),
				labels.Everything())
			return err
		}, http.StatusBadRequest,
			`predicted_replicas of all PredictedMetrics in namespace "shop" at once is not served: name one of them instead of *`,
			[]string{serving.Replicas, ReasonInvalidRead}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestProvider(servingtest.NewMemory(servingtest.Healthy("a", "x")))
			err := c.read(p)
			require.ErrorContains(t, err, c.message)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.Equal(t, c.code, status.Status().Code)
			assert.InDelta(t, 1, observations(t, p.Duration.WithLabelValues(c.counted...)), 0)
		})
	}
}

func TestListAllMetrics(t *testing.T) {
	assert.Equal(t, []provider.CustomMetricInfo{of(serving.LoadTotal), of(serving.Load), of(serving.Replicas)},
		newTestProvider(servingtest.NewMemory()).ListAllMetrics())
}

func TestTelemetry(t *testing.T) {
	p := newTestProvider(servingtest.NewMemory(servingtest.Healthy("a", "x")))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(p))
	for _, metric := range []string{serving.Load, serving.Load, "made-up", "another"} {
		_, _ = get(p, "a", of(metric), labels.Everything())
	}
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.InDelta(t, 2, observations(t, p.Duration.WithLabelValues(serving.Load, kubeapi.ResultOK)), 0)
	assert.InDelta(t, 2, observations(t, p.Duration.WithLabelValues(kubeapi.OtherMetric, serving.ReasonUnknownMetric)),
		0)
	series, err := testutil.GatherAndCount(registry, "foresail_metric_request_duration_seconds")
	require.NoError(t, err)
	assert.Equal(t, 3*len(serving.Reasons())+1, series, "names that clients make up add no series")
}

// observations returns how many values a histogram has observed.
func observations(t *testing.T, of prometheus.Observer) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, of.(prometheus.Metric).Write(&m))
	return float64(m.GetHistogram().GetSampleCount())
}
