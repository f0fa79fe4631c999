package externalmetrics

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/kubeapi"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

func newTestProvider(reader serving.Reader) *Provider {
	return New(reader, func() time.Time { return servingtest.Now })
}

func get(p *Provider, metric, selector string) (*external_metrics.ExternalMetricValueList, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	return p.GetExternalMetric(context.Background(), "shop", parsed, provider.ExternalMetricInfo{Metric: metric})
}

func TestValues(t *testing.T) {
	p := newTestProvider(servingtest.NewMemory(servingtest.Healthy("checkout-elu", "checkout")))
	for metric, want := range map[string]string{
		serving.LoadTotal: "10010m", // 14.3 instances
		serving.Load:      "1001m",
		serving.Replicas:  "14",
	} {
		t.Run(metric, func(t *testing.T) {
			list, err := get(p, metric, "predictedmetric=checkout-elu")
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			item := list.Items[0]
			assert.Equal(t, want, item.Value.String())
			assert.Equal(t, metric, item.MetricName)
			assert.Equal(t, map[string]string{"predictedmetric": "checkout-elu", "kind": "Deployment",
				"target": "checkout"},
				item.MetricLabels)
			assert.Equal(t, metav1.NewTime(servingtest.Now.Add(-2*time.Second)), item.Timestamp)
			assert.Nil(t, item.WindowSeconds)
		})
	}
}

func TestStatusOfErrors(t *testing.T) {
	waiting := servingtest.Changed(servingtest.Healthy("waiting", "x"),
		func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	large := servingtest.Changed(servingtest.Healthy("large", "y"),
		func(s *snapshot.Snapshot) { s.Forecast.ServedLoad = 1e300 })
	dry := servingtest.Changed(servingtest.Healthy("dry", "z"), func(s *snapshot.Snapshot) { s.DryRun = true })
	held := servingtest.NewMemory(servingtest.Healthy("a", "x"), waiting, large, dry)
	details := func(name string) *metav1.StatusDetails {
		return &metav1.StatusDetails{Group: "foresail.dev", Kind: "predictedmetrics", Name: name}
	}
	for _, c := range []struct {
		name, metric, selector string
		code                   int32
		is                     func(error) bool
		details                *metav1.StatusDetails
		result                 string
	}{
		{"unknown metric", "none", "", http.StatusNotFound, apierrors.IsNotFound, nil, serving.ReasonUnknownMetric},
		{"no match", serving.Load, "predictedmetric=b", http.StatusNotFound, apierrors.IsNotFound,
			nil, serving.ReasonNotFound},
		{"ambiguous load", serving.LoadTotal, "target=x", http.StatusBadRequest, apierrors.IsBadRequest,
			nil, serving.ReasonAmbiguous},
		{"ambiguous", serving.Load, "", http.StatusBadRequest, apierrors.IsBadRequest, nil, serving.ReasonAmbiguous},
		{"no samples", serving.Load, "predictedmetric=waiting", http.StatusServiceUnavailable,
			apierrors.IsServiceUnavailable,
			details("waiting"), "WaitingForSamples"},
		{"dry run", serving.Replicas, "predictedmetric=dry", http.StatusServiceUnavailable,
			apierrors.IsServiceUnavailable,
			details("dry"), serving.ReasonDryRun},
		{"too large", serving.LoadTotal, "predictedmetric=large", http.StatusInternalServerError,
			apierrors.IsInternalError,
			details("large"), serving.ReasonOutOfRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTestProvider(held)
			list, err := get(p, c.metric, c.selector)
			require.Nil(t, list)
			require.Error(t, err)
			assert.True(t, c.is(err))
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			assert.Equal(t, c.code, status.Status().Code)
			assert.Equal(t, err.Error(), status.Status().Message)
			assert.Equal(t, c.details, status.Status().Details)
			seconds, retry := apierrors.SuggestsClientDelay(err)
			assert.Falsef(t, retry, "the client has to wait for %d s", seconds)

			counted := c.metric
			if c.result == serving.ReasonUnknownMetric {
				counted = kubeapi.OtherMetric
			}
			assert.InDelta(t, 1, observations(t, p.Duration.WithLabelValues(counted, c.result)), 0)
		})
	}
}

func TestListAllExternalMetrics(t *testing.T) {
	assert.Equal(t, []provider.ExternalMetricInfo{{Metric: serving.LoadTotal},
		{Metric: serving.Load}, {Metric: serving.Replicas}},
		newTestProvider(servingtest.NewMemory()).ListAllExternalMetrics())
}

func TestTelemetry(t *testing.T) {
	now := servingtest.Now
	p := New(servingtest.NewMemory(servingtest.Healthy("a", "x")), func() time.Time {
		now = now.Add(3 * time.Microsecond)
		return now
	})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(p))
	for _, metric := range []string{serving.Load, serving.Load, "made-up", "another"} {
		_, _ = get(p, metric, "")
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

// Reads while snapshots are published see one snapshot or the other, never a mix.
func TestReadsWhilePublishing(t *testing.T) {
	version := func(n int) snapshot.Snapshot {
		return servingtest.Changed(servingtest.Healthy("a", "x"), func(s *snapshot.Snapshot) {
			s.Forecast.ServedLoad = 0.7 * float64(n)
			s.Combined.Desired = n
			s.NewestSample = servingtest.Now.Add(-time.Duration(n) * time.Second)
		})
	}
	m := servingtest.NewMemory(version(1))
	p := newTestProvider(m)
	const readers, reads = 4, 2000
	var done atomic.Bool
	var publisher, all sync.WaitGroup
	publisher.Go(func() {
		for n := 0; !done.Load(); n++ {
			m.Publish(version(1+n%9),
				servingtest.Changed(version(1), func(s *snapshot.Snapshot) { s.Metric.Name = fmt.Sprint("b-", n%50) }))
		}
	})
	for i := range readers {
		all.Go(func() {
			metric, scale := []string{serving.LoadTotal, serving.Replicas}[i%2], []float64{0.7, 1}[i%2]
			for range reads {
				list, err := get(p, metric, "predictedmetric=a")
				if !assert.NoError(t, err) {
					return
				}
				item := list.Items[0]
				n := servingtest.Now.Sub(item.Timestamp.Time).Seconds()
				if !assert.InDelta(t, scale*n, item.Value.AsApproximateFloat64(), 1e-9) {
					return
				}
			}
		})
	}
	all.Wait()
	done.Store(true)
	publisher.Wait()
}

func many(n int) []snapshot.Snapshot {
	list := make([]snapshot.Snapshot, n)
	for i := range list {
		list[i] = servingtest.Healthy(fmt.Sprintf("m-%04d", i), fmt.Sprintf("t-%04d", i))
	}
	return list
}
