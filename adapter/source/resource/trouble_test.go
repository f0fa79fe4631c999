package resource

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/metricsapi"
)

func TestFailedListsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := newAPI(func(_ context.Context, now time.Time) ([]v1beta1.PodMetrics, error) {
			if now.Sub(began) < time.Minute {
				return nil, errors.New("broken")
			}
			return []v1beta1.PodMetrics{metricsOf("a", now, container("app", "1", "0"))}, nil
		})
		s, sink := running(t, Options{Client: a, MaxBackoff: 20 * time.Second}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(started("a", began)), sink)
		sourcetest.Pass(59 * time.Second)
		var seconds []float64
		for _, at := range a.times("shop") {
			seconds = append(seconds, at.Seconds())
		}
		assert.Equal(t, []float64{0, 1, 3, 7, 15, 31, 51}, seconds)
		require.Equal(t, `list the PodMetrics of the namespace "shop": broken`, sink.LastSourceError())
		require.Empty(t, sink.Failures("uid-a"), "it is no pod's fault")

		sourcetest.Pass(13 * time.Second)
		require.Empty(t, sink.LastSourceError())
		require.Len(t, sink.Values("uid-a"), 1)
		listed := len(a.times("shop"))
		sourcetest.Pass(time.Minute)
		assert.Len(t, a.times("shop"), listed+4, "each 15 s again")
	})
}

func TestHangingListTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(ctx context.Context, _ time.Time) ([]v1beta1.PodMetrics, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		registry := prometheus.NewRegistry()
		s, sink := running(t, Options{Client: a, Timeout: 3 * time.Second,
			Registerer: registry}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(), sink)
		sourcetest.Pass(3 * time.Second)
		require.Equal(t, `the PodMetrics of the namespace "shop" were not listed within 3s: context deadline exceeded`,
			sink.LastSourceError())
		assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_resource_list_duration_seconds", "timeout"))
	})
}

// A list that is under way when its last subscription goes is no one's failure.
func TestRemoveCancelsARunningList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(ctx context.Context, _ time.Time) ([]v1beta1.PodMetrics, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		registry := prometheus.NewRegistry()
		s, sink := running(t, Options{Client: a, Registerer: registry}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(), sink)
		synctest.Wait()
		s.Remove(key("pm"))
		sourcetest.Pass(time.Minute)
		assert.Zero(t, sink.Calls())
		assert.Len(t, a.times("shop"), 1)
		assert.Zero(t, sourcetest.Gathered(t, registry, "foresail_resource_list_duration_seconds", ""))
	})
}

// TestAnswersOfAnAPIServer has the generated client read what API servers answer where there is no metrics-server.
func TestAnswersOfAnAPIServer(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods.metrics.k8s.io is forbidden"}`
	for name, test := range map[string]struct {
		code int
		body string
		want metricsapi.Result
		says string
	}{
		"no APIService": {http.StatusNotFound, "404 page not found\n", metricsapi.Missing,
			"metrics.k8s.io is not served: install metrics-server: "},
		"forbidden": {http.StatusForbidden, status, metricsapi.Forbidden,
			`the verb list on the resource pods of metrics.k8s.io is forbidden in the namespace "shop": grant it: `},
		"server away": {http.StatusServiceUnavailable, "service unavailable\n", metricsapi.Unavailable,
			"metrics.k8s.io is registered, but its server does not answer: see whether metrics-server is ready: "},
		"time up at a gateway": {http.StatusGatewayTimeout, "", metricsapi.Timeout,
			`the PodMetrics of the namespace "shop" were not listed within 10s: `},
		"not understood": {http.StatusOK, "<html>", metricsapi.Failed, `list the PodMetrics of the namespace "shop": `},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", r.URL.Path)
				if test.body == status {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			client, err := metricsclient.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			registry := prometheus.NewRegistry()
			l := New(Options{Client: client, Registerer: registry}).list(t.Context(), "shop")
			require.ErrorContains(t, l.err, test.says)
			assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_resource_list_duration_seconds",
				string(test.want)))
		})
	}
}
