package nodeusage

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/nodequery"
)

func TestFromMetricsAPIToForecasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		api := &fakeAPI{}
		api.set(func(now time.Time) ([]v1beta1.NodeMetrics, error) {
			at := scraped(now)
			cores := 1 + 0.1*at.Sub(began).Minutes()
			return []v1beta1.NodeMetrics{
				metricsOf("still", at, "1500m", "4Gi"),
				metricsOf("growing", at, fmt.Sprintf("%dn", int64(cores*1e9)), "1Gi"),
			}, nil
		})
		f := running(t, Options{Source: &MetricsAPI{Client: api}})
		synctest.Wait()
		require.NoError(t, f.Ready(), "one read is enough, as who has no forecast can go by requests")
		require.Zero(t, f.NodeLoads().Nodes["still"].CPU, "but it is too early to tell")

		time.Sleep(90 * time.Second)
		synctest.Wait()
		loads := f.NodeLoads()
		require.NoError(t, loads.SourceErr)
		require.Len(t, loads.Nodes, 2)
		read := scraped(loads.At)
		horizon := loads.At.Add(2 * time.Minute).Sub(read)
		still := loads.Nodes["still"]
		assert.True(t, read.Equal(still.CPU.Sampled), still.CPU.Sampled)
		assert.Equal(t, 20*time.Second, still.CPU.Window)
		assert.InDelta(t, float64(horizon), float64(still.CPU.Horizon), float64(time.Millisecond))
		assert.Equal(t, 1.5, still.CPU.Now)
		assert.InDelta(t, 1.5, still.CPU.Predicted, 1e-9)
		assert.InDelta(t, 1.5, still.CPU.Upper, 1e-9)
		assert.Equal(t, snapshot.Use{
			Sampled: still.Memory.Sampled, Horizon: still.CPU.Horizon, Now: 4 << 30, Predicted: 4 << 30, Upper: 4 << 30,
		}, still.Memory)

		time.Sleep(13 * time.Minute)
		synctest.Wait()
		loads = f.NodeLoads()
		growing := loads.Nodes["growing"].CPU
		actual := 1 + 0.1*loads.At.Add(2*time.Minute).Sub(began).Minutes()
		assert.InDelta(t, actual, growing.Predicted, 0.02, "and not %v", growing.Now)
		assert.Greater(t, growing.Upper, growing.Predicted)
		assert.Less(t, growing.Upper, 1.1*growing.Predicted)
	})
}

func TestNotReadyBeforeTheFirstRead(t *testing.T) {
	f, err := New(Options{Source: &MetricsAPI{Client: &fakeAPI{}}})
	require.NoError(t, err)
	loads := f.NodeLoads()
	require.NotNil(t, loads)
	require.Empty(t, loads.Nodes)
	require.EqualError(t, loads.SourceErr, "node use has not been read yet")
	require.EqualError(t, f.Ready(), "forecasts of nodes have not been started")
}

func TestReadsAreAnIntervalApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(serving("a"))
		running(t, Options{Source: &MetricsAPI{Client: api}})
		time.Sleep(10 * time.Minute)
		times := api.times()
		require.InDelta(t, 41, len(times), 1)
		for i := range times[2:] {
			assert.Equal(t, 15*time.Second, times[i+2].Sub(times[i+1]))
		}
	})
}

// gone is the error of an API server where nothing serves metrics.k8s.io.
func gone() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "list",
		schema.GroupResource{Group: "metrics.k8s.io", Resource: "nodes"}, "", "404 page not found", 0, true)
}

func TestFailingSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(serving("a", "b"))
		f := running(t, Options{Source: &MetricsAPI{Client: api}})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, f.NodeLoads().Nodes, 2)
		known := f.NodeLoads().Nodes

		api.set(func(time.Time) ([]v1beta1.NodeMetrics, error) { return nil, gone() })
		time.Sleep(time.Minute)
		synctest.Wait()
		loads := f.NodeLoads()
		require.ErrorContains(t, loads.SourceErr, "metrics.k8s.io is not served: install metrics-server")
		require.Equal(t, known, loads.Nodes, "what was known is, until it is stale")
		require.NoError(t, f.Ready())

		time.Sleep(2*time.Minute + 20*time.Second)
		synctest.Wait()
		require.Equal(t, known, f.NodeLoads().Nodes, "no one goes by it, but it can be told that there was something")
		require.False(t, known["a"].CPU.Fresh(time.Now(), 3*time.Minute))

		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Empty(t, f.NodeLoads().Nodes)
		require.NoError(t, f.Ready())

		api.times()
		api.set(serving("a", "b"))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		require.NoError(t, f.NodeLoads().SourceErr)
		require.Zero(t, f.NodeLoads().Nodes["a"].CPU, "what was before the gap says nothing")
		time.Sleep(70 * time.Second)
		synctest.Wait()
		require.InDelta(t, 1.5, f.NodeLoads().Nodes["a"].CPU.Predicted, 1e-9)
	})
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(func(time.Time) ([]v1beta1.NodeMetrics, error) { return nil, gone() })
		f := running(t, Options{Source: &MetricsAPI{Client: api}})
		time.Sleep(59 * time.Second)
		require.ErrorContains(t, f.Ready(), "metrics.k8s.io is not served")
		time.Sleep(61 * time.Second)
		require.NoError(t, f.Ready(), "a start does not wait for ever")
		var gaps []time.Duration
		times := api.times()
		for i := range times[1:] {
			gaps = append(gaps, times[i+1].Sub(times[i]))
		}
		assert.Equal(t, time.Second, gaps[0])
		for _, gap := range gaps {
			assert.True(t, gap > 0 && gap <= 15*time.Second, gap)
		}
		assert.Less(t, len(gaps), 14)

		api.set(nil) // it does not answer
		time.Sleep(time.Minute)
		synctest.Wait()
		require.ErrorContains(t, f.NodeLoads().SourceErr, "the NodeMetrics were not listed within 10s")
	})
}

func TestReadyReportsAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		reads := 0
		f := running(t, Options{Source: scripted(func(time.Time) ([]Reading, error) {
			if reads++; reads > 1 {
				<-stuck
			}
			return nil, nil
		})})
		time.Sleep(2 * time.Minute)
		require.NoError(t, f.Ready())
		time.Sleep(time.Minute)
		require.EqualError(t, f.Ready(), "node use has not been read for 3m0s")
		close(stuck)
	})
}

func TestRemovedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(serving("a", "b", "c"))
		var present atomic.Pointer[[]nodequery.Node]
		set := func(nodes []nodequery.Node) { present.Store(&nodes) }
		set(nodesOf("a", "b"))
		f := running(t, Options{Source: &MetricsAPI{Client: api},
			Nodes: func() []nodequery.Node { return *present.Load() }})
		known := func() (out []string) {
			synctest.Wait()
			for _, name := range []string{"a", "b", "c"} {
				if f.NodeLoads().Nodes[name].CPU.Now > 0 {
					out = append(out, name)
				}
			}
			return out
		}
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"a", "b"}, known(), "c is no Node")

		set(nodesOf("a"))
		time.Sleep(15 * time.Second)
		require.Equal(t, []string{"a"}, known())

		other := nodesOf("a")
		other[0].UID, other[0].Created = "another", time.Now()
		set(other)
		time.Sleep(15 * time.Second)
		require.Empty(t, known(), "another Node of the name has been read for too short a time")
		time.Sleep(75 * time.Second)
		require.Equal(t, []string{"a"}, known())

		set(nil)
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"a", "b", "c"}, known(), "which Nodes there are is not known")

		set(nodesOf())
		time.Sleep(15 * time.Second)
		require.Empty(t, known(), "there are none")
	})
}

func TestHalfOfTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(serving("a", "b"))
		f := running(t, Options{Source: &MetricsAPI{Client: api}})
		time.Sleep(2 * time.Minute)
		api.set(serving("b"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		loads := f.NodeLoads()
		require.NoError(t, loads.SourceErr)
		require.True(t, loads.Nodes["b"].CPU.Fresh(time.Now(), 20*time.Second))
		require.True(t, loads.Nodes["a"].CPU.Fresh(time.Now(), 3*time.Minute))
		require.False(t, loads.Nodes["a"].CPU.Fresh(time.Now(), time.Minute))
		time.Sleep(4*time.Minute + 30*time.Second)
		synctest.Wait()
		require.NotContains(t, f.NodeLoads().Nodes, "a")
	})
}

func TestIncompleteNodeMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(func(now time.Time) ([]v1beta1.NodeMetrics, error) {
			half, negative, timeless := metricsOf("half", scraped(now), "1", "1"),
				metricsOf("negative", scraped(now), "-1", "1"), metricsOf("timeless", time.Time{}, "1", "1")
			delete(half.Usage, "cpu")
			return []v1beta1.NodeMetrics{half, negative, timeless}, nil
		})
		f := running(t, Options{Source: &MetricsAPI{Client: api}})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		nodes := f.NodeLoads().Nodes
		require.Len(t, nodes, 2)
		for _, name := range []string{"half", "negative"} {
			assert.Zero(t, nodes[name].CPU, name)
			assert.Equal(t, 1.0, nodes[name].Memory.Predicted, name)
		}
	})
}

func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		api.set(serving("a"))
		var ahead atomic.Int64 // by which the clock here is
		ahead.Store(int64(time.Hour))
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		api.set(func(time.Time) ([]v1beta1.NodeMetrics, error) { return serving("a")(now()) })
		f := running(t, Options{Source: &MetricsAPI{Client: api}, Now: now})
		time.Sleep(5 * time.Minute)
		ahead.Store(0)
		time.Sleep(16 * time.Second)
		synctest.Wait()
		require.Empty(t, f.NodeLoads().Nodes["a"].CPU.Sampled, "what was dated ahead is forgotten")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		u := f.NodeLoads().Nodes["a"].CPU
		require.InDelta(t, 1.5, u.Predicted, 1e-9)
		require.WithinDuration(t, time.Now(), u.Sampled, 30*time.Second)

		ahead.Store(int64(time.Hour)) // samples date from an hour ago by it
		api.set(serving("a"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Empty(t, f.NodeLoads().Nodes)
		require.NoError(t, f.NodeLoads().SourceErr)
	})
}

func TestTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		api := &fakeAPI{}
		api.set(func(now time.Time) ([]v1beta1.NodeMetrics, error) {
			return []v1beta1.NodeMetrics{metricsOf("a", scraped(now), "1", "1"),
				metricsOf("b", scraped(now), "1", "-1")}, nil
		})
		f := running(t, Options{Source: &MetricsAPI{Client: api}, Registry: registry})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		reads := observations(t, f.telemetry.duration.WithLabelValues("success"))
		require.Greater(t, reads, 7.0)
		require.Equal(t, reads, testutil.ToFloat64(f.telemetry.rejected[badValue]))
		age := time.Since(f.NodeLoads().Nodes["a"].CPU.Sampled).Seconds()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP foresail_node_sample_age_seconds Age of the newest samples that forecasts of nodes are made of: the median, the 0.99 quantile and the oldest. Its count is that of nodes with a forecast.
# TYPE foresail_node_sample_age_seconds summary
foresail_node_sample_age_seconds{resource="cpu",quantile="0.5"} %[1]v
foresail_node_sample_age_seconds{resource="cpu",quantile="0.99"} %[1]v
foresail_node_sample_age_seconds{resource="cpu",quantile="1"} %[1]v
foresail_node_sample_age_seconds_sum{resource="cpu"} %[2]v
foresail_node_sample_age_seconds_count{resource="cpu"} 2
foresail_node_sample_age_seconds{resource="memory",quantile="0.5"} %[1]v
foresail_node_sample_age_seconds{resource="memory",quantile="0.99"} %[1]v
foresail_node_sample_age_seconds{resource="memory",quantile="1"} %[1]v
foresail_node_sample_age_seconds_sum{resource="memory"} %[1]v
foresail_node_sample_age_seconds_count{resource="memory"} 1
# HELP foresail_node_source_failing 1 while the use of nodes cannot be read, or only a part of it, else 0.
# TYPE foresail_node_source_failing gauge
foresail_node_source_failing 0
`, age, 2*age)), "foresail_node_sample_age_seconds", "foresail_node_source_failing"))

		api.set(func(time.Time) ([]v1beta1.NodeMetrics, error) { return nil, gone() })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Positive(t, observations(t, f.telemetry.duration.WithLabelValues("missing")))
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP foresail_node_source_failing 1 while the use of nodes cannot be read, or only a part of it, else 0.
# TYPE foresail_node_source_failing gauge
foresail_node_source_failing 1
`), "foresail_node_source_failing"))
	})
}

func TestPartOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, Options{Source: scripted(func(now time.Time) ([]Reading, error) {
			return []Reading{{Node: "a", Resource: CPU, Samples: every(scraped(now).UnixMilli(), same(8, 2)...)}},
				errors.New("half is lost")
		})})
		synctest.Wait()
		loads := f.NodeLoads()
		require.EqualError(t, loads.SourceErr, "half is lost")
		require.Equal(t, 2.0, loads.Nodes["a"].CPU.Predicted)
		require.Zero(t, loads.Nodes["a"].Memory)
		require.NoError(t, f.Ready())
	})
}

func TestRejectsWrongOptions(t *testing.T) {
	source := scripted(func(time.Time) ([]Reading, error) { return nil, nil })
	for want, o := range map[string]Options{
		"Source: <nil>: must be given": {},
		"Interval: 100ms: must be a whole number of milliseconds, at least 1s": {Source: source,
			Interval: 100 * time.Millisecond, Window: 10 * time.Second},
		"Window: 1m0s: must be from 10 to 1000 intervals":    {Source: source, Window: time.Minute},
		"Window: 24h0m0s: must be from 10 to 1000 intervals": {Source: source, Window: 24 * time.Hour},
		"Horizon: -1s: must be from 0s to 24h0m0s":           {Source: source, Horizon: -time.Second},
		"StaleAfter: 20s: must be at least two intervals": {Source: source,
			StaleAfter: 20 * time.Second},
	} {
		_, err := New(o)
		assert.EqualError(t, err, want)
	}
}

// What API servers answer where metrics-server is not as it should be, as the generated client reads it.
func TestAnswersOfAnAPIServer(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nodes.metrics.k8s.io is forbidden"}`
	for name, test := range map[string]struct {
		code               int
		body, result, says string
	}{
		"no APIService": {http.StatusNotFound, "404 page not found", "missing",
			"metrics.k8s.io is not served: install metrics-server: "},
		"forbidden": {http.StatusForbidden, status, "forbidden",
			"the verb list on the resource nodes of metrics.k8s.io is forbidden: grant it: "},
		"server away": {http.StatusServiceUnavailable, "service unavailable", "unavailable",
			"see whether metrics-server is ready: "},
		"not understood": {http.StatusOK, "<html>", "error", "list the NodeMetrics: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/apis/metrics.k8s.io/v1beta1/nodes", r.URL.Path)
				if test.body == status {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			client, err := metricsclient.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			readings, err := (&MetricsAPI{Client: client}).Read(t.Context(), time.Now())
			require.Empty(t, readings)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, test.result, resultOf(0, err))
		})
	}
}

// observations returns how many values a histogram has observed.
func observations(t *testing.T, of prometheus.Observer) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, of.(prometheus.Metric).Write(&m))
	return float64(m.GetHistogram().GetSampleCount())
}
