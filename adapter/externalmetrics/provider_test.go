package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// memory is a Reader of snapshots that can be published at any time.
type memory struct {
	mu   sync.RWMutex
	held map[types.NamespacedName]snapshot.Snapshot
}

func newMemory(snapshots ...snapshot.Snapshot) *memory {
	m := &memory{held: map[types.NamespacedName]snapshot.Snapshot{}}
	m.publish(snapshots...)
	return m
}

func (m *memory) publish(snapshots ...snapshot.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range snapshots {
		m.held[s.Metric] = s
	}
}

func (m *memory) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.held[metric]
	return s, ok
}

func (m *memory) List(namespace string) []snapshot.Snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []snapshot.Snapshot
	for _, s := range m.held {
		if s.Metric.Namespace == namespace {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b snapshot.Snapshot) int { return strings.Compare(a.Metric.Name, b.Metric.Name) })
	return list
}

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthy returns a snapshot of shop/name for Deployment shop/target, as fresh as can be.
func healthy(name, target string) snapshot.Snapshot {
	return snapshot.Snapshot{
		Metric:     types.NamespacedName{Namespace: "shop", Name: name},
		TargetKind: "Deployment", TargetName: target,
		Threshold: 0.7, StaleAfter: 30 * time.Second,
		Forecast:     pipeline.Forecast{Required: 14.27, Serve: 0.7 * 14.27},
		Joint:        snapshot.Joint{Wanted: 14, Metrics: 1},
		NewestSample: testNow.Add(-2 * time.Second), At: testNow.Add(-time.Second),
		Ready: 10,
	}
}

func changed(s snapshot.Snapshot, change func(*snapshot.Snapshot)) snapshot.Snapshot {
	change(&s)
	return s
}

func newTestProvider(reader Reader) *Provider {
	return New(reader, func() time.Time { return testNow })
}

func get(p *Provider, metric, selector string) (*external_metrics.ExternalMetricValueList, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	return p.GetExternalMetric(context.Background(), "shop", parsed, provider.ExternalMetricInfo{Metric: metric})
}

func TestValues(t *testing.T) {
	p := newTestProvider(newMemory(healthy("checkout-elu", "checkout")))
	for metric, want := range map[string]string{
		LoadTotal: "10010m", // 14.3 instances
		Load:      "1001m",
		Replicas:  "14",
	} {
		t.Run(metric, func(t *testing.T) {
			list, err := get(p, metric, "predictedmetric=checkout-elu")
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			item := list.Items[0]
			assert.Equal(t, want, item.Value.String())
			assert.Equal(t, metric, item.MetricName)
			assert.Equal(t, map[string]string{"predictedmetric": "checkout-elu", "kind": "Deployment", "target": "checkout"}, item.MetricLabels)
			assert.Equal(t, metav1.NewTime(testNow.Add(-2*time.Second)), item.Timestamp)
			assert.Nil(t, item.WindowSeconds)
		})
	}
}

func TestTimestampIsNotInTheFuture(t *testing.T) {
	ahead := changed(healthy("a", "x"), func(s *snapshot.Snapshot) { s.NewestSample = testNow.Add(time.Second) })
	list, err := get(newTestProvider(newMemory(ahead)), LoadTotal, "")
	require.NoError(t, err)
	assert.Equal(t, metav1.NewTime(testNow), list.Items[0].Timestamp)
}

func TestSelectors(t *testing.T) {
	p := newTestProvider(newMemory(
		healthy("cart-cpu", "cart"),
		healthy("cart-elu", "cart"),
		changed(healthy("db-elu", "db"), func(s *snapshot.Snapshot) { s.TargetKind = "StatefulSet" }),
		changed(healthy("cart-elu", "cart"), func(s *snapshot.Snapshot) { s.Metric.Namespace = "other" }),
	))
	all := []string{"cart-cpu", "cart-elu", "db-elu"}
	for selector, want := range map[string][]string{
		"":                              all,
		"predictedmetric=cart-elu":      {"cart-elu"},
		"predictedmetric==cart-elu":     {"cart-elu"},
		"predictedmetric in (cart-elu)": {"cart-elu"},
		"predictedmetric in (cart-elu, db-elu, none)":    {"cart-elu", "db-elu"},
		"predictedmetric!=cart-elu":                      {"cart-cpu", "db-elu"},
		"predictedmetric notin (cart-elu, cart-cpu)":     {"db-elu"},
		"predictedmetric":                                all,
		"!owner":                                         all,
		"kind=StatefulSet":                               {"db-elu"},
		"target=cart":                                    {"cart-cpu", "cart-elu"},
		"target=cart,predictedmetric!=cart-cpu":          {"cart-elu"},
		"predictedmetric=cart-elu,target=cart":           {"cart-elu"},
		"predictedmetric=cart-elu,kind in (Deployment)":  {"cart-elu"},
		"predictedmetric=cart-elu,target=db":             nil,
		"predictedmetric=cart-elu,predictedmetric=other": nil,
		"predictedmetric=none":                           nil,
		"!predictedmetric":                               nil,
		"owner":                                          nil,
		"owner=me":                                       nil,
		"target>1":                                       nil,
		"target<1":                                       nil,
	} {
		t.Run(selector, func(t *testing.T) {
			list, err := get(p, LoadTotal, selector)
			if want == nil {
				require.Truef(t, apierrors.IsNotFound(err), "%v", err)
				return
			}
			require.NoError(t, err)
			var names []string
			for _, item := range list.Items {
				names = append(names, item.MetricLabels[LabelMetric])
			}
			assert.Equal(t, want, names)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		_, err := p.GetExternalMetric(t.Context(), "shop", labels.Nothing(), provider.ExternalMetricInfo{Metric: LoadTotal})
		assert.True(t, apierrors.IsNotFound(err))
	})
}

func TestRefusals(t *testing.T) {
	shop := func(change func(*snapshot.Snapshot)) []snapshot.Snapshot {
		return []snapshot.Snapshot{changed(healthy("checkout-elu", "checkout"), change)}
	}
	const more = " (kubectl describe predictedmetric -n shop checkout-elu tells more)"
	const notNow = http.StatusServiceUnavailable
	for _, c := range []struct {
		name     string
		held     []snapshot.Snapshot
		metric   string // empty: all three
		selector string
		code     int32
		result   string
		message  string
	}{
		{
			name: "unknown metric", held: []snapshot.Snapshot{healthy("a", "x")}, metric: "predicted_loads",
			code: http.StatusNotFound, result: resultUnknownMetric,
			message: `there is no external metric "predicted_loads"; there are predicted_load_total, predicted_load, predicted_replicas`,
		},
		{
			name: "empty namespace", selector: "predictedmetric=a",
			code: http.StatusNotFound, result: resultNotFound,
			message: `the selector "predictedmetric=a" in namespace "shop" matches no PredictedMetric: there is none in the namespace`,
		},
		{
			name: "no match", held: []snapshot.Snapshot{healthy("b", "x"), healthy("a", "x")}, selector: "predictedmetric=c",
			code: http.StatusNotFound, result: resultNotFound,
			message: `the selector "predictedmetric=c" in namespace "shop" matches no PredictedMetric: there is a, b; the labels to select by are predictedmetric, kind and target`,
		},
		{
			name: "no match among many", held: many(8), selector: "target=none",
			code: http.StatusNotFound, result: resultNotFound,
			message: `the selector "target=none" in namespace "shop" matches no PredictedMetric: there is m-0000, m-0001, m-0002, m-0003, m-0004, 3 more; the labels to select by are predictedmetric, kind and target`,
		},
		{
			name: "ambiguous value", held: []snapshot.Snapshot{healthy("b", "x"), healthy("a", "x")}, metric: Load, selector: "target=x",
			code: http.StatusBadRequest, result: resultAmbiguous,
			message: `the selector "target=x" in namespace "shop" matches 2 PredictedMetrics (a, b), and a sum of their predicted_load means nothing: select one with predictedmetric=NAME`,
		},
		{
			name: "ambiguous count", held: many(8), metric: Replicas,
			code: http.StatusBadRequest, result: resultAmbiguous,
			message: `the empty selector in namespace "shop" matches 8 PredictedMetrics (m-0000, m-0001, m-0002, m-0003, m-0004, 3 more), and a sum of their predicted_replicas means nothing: select one with predictedmetric=NAME`,
		},
		{
			name: "no samples", held: shop(func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} }),
			code: notNow, result: "WaitingForSamples",
			message: "PredictedMetric shop/checkout-elu: there is no forecast: no sample has been read yet" + more,
		},
		{
			name: "no forecast", held: shop(func(s *snapshot.Snapshot) {
				s.Err = &snapshot.Unavailable{Reason: snapshot.WarmingUp, Message: "3 of 4 s have been read"}
			}),
			code: notNow, result: "WarmingUp",
			message: "PredictedMetric shop/checkout-elu: there is no forecast: 3 of 4 s have been read" + more,
		},
		{
			name: "no forecast for another reason", held: shop(func(s *snapshot.Snapshot) { s.Err = errors.New("it broke") }),
			code: notNow, result: resultNoForecast,
			message: "PredictedMetric shop/checkout-elu: there is no forecast: it broke" + more,
		},
		{
			name: "found stale by the forecaster", held: shop(func(s *snapshot.Snapshot) {
				s.Err = &snapshot.Unavailable{Reason: snapshot.Stale, Message: "the newest sample is 42.117s old"}
				s.NewestSample = testNow.Add(-42 * time.Second)
			}),
			code: notNow, result: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest sample is over 30s old (2026-03-01T11:59:18Z), staleAfter is 30s" + more,
		},
		{
			name: "found stale here", held: shop(func(s *snapshot.Snapshot) { s.NewestSample = testNow.Add(-30*time.Second - 1) }),
			code: notNow, result: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest sample is over 30s old (2026-03-01T11:59:29Z), staleAfter is 30s" + more,
		},
		{
			name: "the forecaster hangs", held: shop(func(s *snapshot.Snapshot) {
				s.At, s.NewestSample = testNow.Add(-3*time.Minute), testNow.Add(-3*time.Minute-time.Second)
			}),
			code: notNow, result: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest forecast is over 2m old (2026-03-01T11:57:00Z), staleAfter is 30s" + more,
		},
		{
			name: "the forecaster hangs on samples from the future", held: shop(func(s *snapshot.Snapshot) {
				s.At, s.NewestSample = testNow.Add(-31*time.Second), testNow.Add(time.Hour)
			}),
			code: notNow, result: "Stale",
			message: "PredictedMetric shop/checkout-elu: the newest forecast is over 30s old (2026-03-01T11:59:29Z), staleAfter is 30s" + more,
		},
		{
			name: "no ready pods", held: shop(func(s *snapshot.Snapshot) { s.Ready = 0 }), metric: Load,
			code: notNow, result: "NoReadyPods",
			message: "PredictedMetric shop/checkout-elu: Deployment checkout has no ready pod to divide the load by; predicted_load_total with a target of type AverageValue needs none" + more,
		},
		{
			name: "too large", held: shop(func(s *snapshot.Snapshot) { s.Forecast.Serve = 1e300 }), metric: LoadTotal,
			code: http.StatusInternalServerError, result: resultUnservable,
			message: "PredictedMetric shop/checkout-elu: predicted_load_total cannot be told in milli-units: a load of 1e+300 is not a number up to 9007199254740; scale the metric",
		},
		{
			name: "a sum with one missing", metric: LoadTotal, selector: "target=checkout",
			held: append(shop(func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} }), healthy("a", "checkout"), healthy("z", "checkout")),
			code: notNow, result: "WaitingForSamples",
			message: `the selector "target=checkout" in namespace "shop" matches 3 PredictedMetrics, and their sum without one of them would be too low: PredictedMetric shop/checkout-elu: there is no forecast: no sample has been read yet` + more,
		},
	} {
		metrics := []string{c.metric}
		if c.metric == "" {
			metrics = []string{LoadTotal, Load, Replicas}
		}
		for _, metric := range metrics {
			t.Run(c.name+"/"+metric, func(t *testing.T) {
				p := newTestProvider(newMemory(c.held...))
				list, err := get(p, metric, c.selector)
				require.Nil(t, list)
				require.EqualError(t, err, c.message)

				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status)
				assert.Equal(t, c.code, status.Status().Code)
				assert.Equal(t, c.message, status.Status().Message)
				seconds, retry := apierrors.SuggestsClientDelay(err)
				assert.Falsef(t, retry, "the client is told to wait for %d s", seconds)

				counted := metric
				if c.result == resultUnknownMetric {
					counted = otherMetric
				}
				assert.Contains(t, results(), c.result)
				assert.InDelta(t, 1, testutil.ToFloat64(p.requests.WithLabelValues(counted, c.result)), 0)
			})
		}
	}
}

func TestReasonsOfRefusals(t *testing.T) {
	waiting := changed(healthy("waiting", "x"), func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	p := newTestProvider(newMemory(healthy("a", "x"), waiting))
	_, err := get(p, "none", "")
	assert.True(t, apierrors.IsNotFound(err))
	_, err = get(p, Load, "")
	assert.True(t, apierrors.IsBadRequest(err))
	_, err = get(p, Load, "predictedmetric=waiting")
	assert.True(t, apierrors.IsServiceUnavailable(err))
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	assert.Equal(t, &metav1.StatusDetails{Group: "foresail.dev", Kind: "predictedmetrics", Name: "waiting"}, status.Status().Details)
}

func TestServedUpToTheLimitOfStaleness(t *testing.T) {
	s := changed(healthy("a", "x"), func(s *snapshot.Snapshot) { s.NewestSample = testNow.Add(-s.StaleAfter) })
	_, err := get(newTestProvider(newMemory(s)), LoadTotal, "")
	assert.NoError(t, err)
}

// Readiness and the other metrics' needs are no concern of a metric that does not use them.
func TestNoReadyPodsConcernThePerPodLoadAlone(t *testing.T) {
	p := newTestProvider(newMemory(changed(healthy("a", "x"), func(s *snapshot.Snapshot) { s.Ready = 0 })))
	for _, metric := range []string{LoadTotal, Replicas} {
		list, err := get(p, metric, "")
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
	}
}

// A scale that cannot be read concerns decisions alone.
func TestUnreadableScaleConcernsReplicasAlone(t *testing.T) {
	p := newTestProvider(newMemory(changed(healthy("a", "x"), func(s *snapshot.Snapshot) { s.ReplicasLost = s.At.Add(-time.Hour) })))
	for _, metric := range []string{LoadTotal, Load} {
		_, err := get(p, metric, "")
		require.NoError(t, err)
	}
	_, err := get(p, Replicas, "")
	require.ErrorContains(t, err, "the scale of Deployment x cannot be read since")
	require.ErrorContains(t, err, "predicted_load_total needs none")
}

// The message of one cause stays the same over the reads of some minutes, so that an HPA's status does too.
func TestMessagesOfStaleDataRarelyChange(t *testing.T) {
	now := testNow
	p := New(newMemory(healthy("a", "x")), func() time.Time { return now })
	messages := map[string]bool{}
	for ; now.Before(testNow.Add(9 * time.Minute)); now = now.Add(time.Second) {
		if _, err := get(p, LoadTotal, ""); err != nil {
			messages[err.Error()] = true
		}
	}
	assert.Len(t, messages, 5) // the sample over 30s old, then the forecast over 30s, 60s, 2m and 5m
}

func TestRoughly(t *testing.T) {
	for age, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 4999 * time.Millisecond: "2s", 59 * time.Second: "30s", 2 * time.Minute: "2m",
		time.Hour - 1: "30m", 5 * time.Hour: "3h", 1000 * time.Hour: "24h",
	} {
		assert.Equal(t, want, roughly(age), age)
	}
}

func TestListAllExternalMetrics(t *testing.T) {
	assert.Equal(t, []provider.ExternalMetricInfo{{Metric: LoadTotal}, {Metric: Load}, {Metric: Replicas}},
		newTestProvider(newMemory()).ListAllExternalMetrics())
}

func TestTelemetry(t *testing.T) {
	now := testNow
	p := New(newMemory(healthy("a", "x")), func() time.Time {
		now = now.Add(3 * time.Microsecond)
		return now
	})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(p))
	for _, metric := range []string{Load, Load, "made-up", "another"} {
		_, _ = get(p, metric, "")
	}
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.InDelta(t, 2, testutil.ToFloat64(p.requests.WithLabelValues(Load, resultOK)), 0)
	assert.InDelta(t, 2, testutil.ToFloat64(p.requests.WithLabelValues(otherMetric, resultUnknownMetric)), 0)

	series, err := testutil.GatherAndCount(registry, "foresail_external_metric_requests_total")
	require.NoError(t, err)
	assert.Equal(t, 3*(len(results())-1)+1, series, "names that clients make up add no series")

	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP foresail_external_metric_request_duration_seconds Time to answer a read of an external metric, without authentication, authorization and transport.
# TYPE foresail_external_metric_request_duration_seconds histogram
`+histogram(Load, 2)+histogram(LoadTotal, 0)+histogram(Replicas, 0)+histogram(otherMetric, 2)),
		"foresail_external_metric_request_duration_seconds"))
}

// histogram is the exposition of a count of observations of 3 µs.
func histogram(metric string, count int) string {
	const name = "foresail_external_metric_request_duration_seconds"
	var b strings.Builder
	for _, le := range []string{"1e-06", "4e-06", "1.6e-05", "6.4e-05", "0.000256", "0.001024", "0.004096", "0.016384", "0.065536", "0.262144", "+Inf"} {
		within := count
		if le == "1e-06" {
			within = 0
		}
		fmt.Fprintf(&b, "%s_bucket{metric=%q,le=%q} %d\n", name, metric, le, within)
	}
	fmt.Fprintf(&b, "%s_sum{metric=%q} %v\n%s_count{metric=%q} %d\n", name, metric, float64(count)*3e-6, name, metric, count)
	return b.String()
}

// Reads while snapshots are published see one snapshot or the other, never a mix.
func TestReadsWhilePublishing(t *testing.T) {
	version := func(n int) snapshot.Snapshot {
		return changed(healthy("a", "x"), func(s *snapshot.Snapshot) {
			s.Forecast.Serve = 0.7 * float64(n)
			s.Joint.Wanted = n
			s.NewestSample = testNow.Add(-time.Duration(n) * time.Second)
		})
	}
	m := newMemory(version(1))
	p := newTestProvider(m)
	const readers, reads = 4, 2000
	var done atomic.Bool
	var publisher, all sync.WaitGroup
	publisher.Go(func() {
		for n := 0; !done.Load(); n++ {
			m.publish(version(1+n%9), changed(version(1), func(s *snapshot.Snapshot) { s.Metric.Name = fmt.Sprint("b-", n%50) }))
		}
	})
	for i := range readers {
		all.Go(func() {
			metric, scale := []string{LoadTotal, Replicas}[i%2], []float64{0.7, 1}[i%2]
			for range reads {
				list, err := get(p, metric, "predictedmetric=a")
				if !assert.NoError(t, err) {
					return
				}
				item := list.Items[0]
				n := testNow.Sub(item.Timestamp.Time).Seconds()
				if !assert.InDelta(t, scale*n, item.Value.AsApproximateFloat64(), 1e-9) {
					return
				}
				if _, err := get(p, LoadTotal, ""); !assert.NoError(t, err) {
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
		list[i] = healthy(fmt.Sprintf("m-%04d", i), fmt.Sprintf("t-%04d", i))
	}
	return list
}
