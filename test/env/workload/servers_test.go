package workload

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve opens a pod on a loopback address of its own and returns the base URLs of its ports.
func serve(t *testing.T, p *Pod, ip string) (app, metrics string) {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		var err error
		listeners[i], err = net.Listen("tcp", ip+":0")
		require.NoError(t, err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(listeners[0], listeners[1]) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Shutdown(ctx)
		require.NoError(t, <-served)
	})
	return "http://" + listeners[0].Addr().String(), "http://" + listeners[1].Addr().String()
}

// get returns status and body; a request that fails fails the test.
func get(t *testing.T, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body), response.Header
}

// scrape returns the pod's series by name.
func scrape(t *testing.T, metrics string) map[string]float64 {
	t.Helper()
	values, err := read(metrics)
	require.NoError(t, err)
	return values
}

func read(metrics string) (map[string]float64, error) {
	response, err := http.Get(metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for name, family := range families {
		if family.GetType() == dto.MetricType_COUNTER {
			values[name] = family.Metric[0].GetCounter().GetValue()
		} else {
			values[name] = family.Metric[0].GetGauge().GetValue()
		}
	}
	return values, nil
}

// load sends requests evenly, each in its own time, until the returned function is called.
func load(t *testing.T, url string, every time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			all.Go(func() {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					panic(err)
				}
				if response, err := http.DefaultClient.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			})
		}
	})
	return func() { cancel(); all.Wait() }
}

func TestUtilizationOverHTTP(t *testing.T) {
	p := newPod(t, Model{ServiceTime: 20 * ms, QueueLimit: 1000})
	app, metrics := serve(t, p, "127.0.0.31")

	stop := load(t, app, time.Second/30)
	defer stop()
	var values map[string]float64
	require.Eventually(t, func() bool {
		latest, err := read(metrics)
		values = latest
		return err == nil && latest["workload_requests_served_total"] >= 30
	}, time.Minute, 100*ms)
	assert.Positive(t, values["nodejs_eventloop_utilization"])
	assert.InDelta(t, values["workload_requests_served_total"]*0.020, values["workload_busy_seconds_total"], 0.021)
	assert.Zero(t, values["workload_requests_rejected_total"])
}

func TestSaturationOverHTTP(t *testing.T) {
	p := newPod(t, Model{ServiceTime: 20 * ms, QueueLimit: 20})
	app, metrics := serve(t, p, "127.0.0.32")

	stop := load(t, app, time.Second/100)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // on a busy machine it takes a while until requests come fast enough
		values, err := read(metrics)
		require.NoError(c, err)
		assert.Equal(c, 1.0, values["nodejs_eventloop_utilization"])
		assert.Greater(c, values["workload_queue_length"], 10.0)
		assert.NotZero(c, values["workload_requests_rejected_total"])
	}, time.Minute, 20*ms)
	stop()

	require.Eventually(t, func() bool { return p.Usage().Length == 0 }, time.Minute, 5*ms,
		"clients that leave are noticed and leave the queue")
	assert.NotZero(t, p.Usage().Abandoned)
}

func TestEndpoints(t *testing.T) {
	p := newPod(t, DefaultModel())
	app, metrics := serve(t, p, "127.0.0.33")

	status, body, _ := get(t, app+"/any/path")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "test/pod\n", body)
	assert.EqualValues(t, 1, p.Usage().Served)

	status, _, _ = get(t, app+"/healthz")
	assert.Equal(t, http.StatusOK, status)
	assert.EqualValues(t, 1, p.Usage().Received, "health checks take no service")

	_, text, header := get(t, metrics+"/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	assert.Contains(t, header.Get("Content-Type"), "application/openmetrics-text")
	assert.Contains(t, text, "workload_requests_total 1.0\n")
	assert.True(t, strings.HasSuffix(text, "# EOF\n"))

	status, _, _ = get(t, metrics+"/")
	assert.Equal(t, http.StatusNotFound, status)
}

func TestFullQueueAnswers503(t *testing.T) {
	p := newPod(t, Model{ServiceTime: time.Minute, QueueLimit: 1})
	app, _ := serve(t, p, "127.0.0.34")
	stop := load(t, app, 10*ms)
	defer stop()
	require.Eventually(t, func() bool { return p.Usage().Length == 1 }, time.Minute, 5*ms)
	status, body, _ := get(t, app)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "queue is full\n", body)
}

func TestShutdownLetsRequestsEnd(t *testing.T) {
	p := newPod(t, Model{ServiceTime: time.Second, QueueLimit: 10})
	app, metrics := serve(t, p, "127.0.0.35")
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get(app)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	require.Eventually(t, func() bool { return p.Usage().Received == 1 }, time.Minute, ms)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.Shutdown(ctx)
	assert.Equal(t, http.StatusOK, <-answered)
	for _, url := range []string{app, metrics} {
		_, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second)
		require.ErrorContains(t, err, "refused")
	}
}
