package loadgen_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/workload"
)

// fleet opens pods on loopback addresses of their own.
func fleet(t testing.TB, count int, model workload.Model) ([]*workload.Pod, loadgen.Static) {
	t.Helper()
	var pods []*workload.Pod
	var addresses loadgen.Static
	for i := range count {
		pod, err := workload.NewPod(fmt.Sprint("pod-", i), model, 1)
		require.NoError(t, err)
		var listeners [2]net.Listener
		for port := range listeners {
			listeners[port], err = net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1))
			require.NoError(t, err)
		}
		served := make(chan error, 1)
		go func() { served <- pod.Serve(listeners[0], listeners[1]) }()
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			pod.Shutdown(ctx)
			require.NoError(t, <-served)
		})
		pods, addresses = append(pods, pod), append(addresses, listeners[0].Addr().String())
	}
	return pods, addresses
}

// TestLoadReachesPods sends a real load to real pods at 60% of what they can serve, then takes them away.
func TestLoadReachesPods(t *testing.T) {
	pods, addresses := fleet(t, 4, workload.DefaultModel())
	generator, err := loadgen.New(loadgen.Config{Profile: loadgen.Constant(120, 4*time.Second), Endpoints: addresses})
	require.NoError(t, err)
	report, err := generator.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 480, report.Sent)
	assert.Equal(t, 480, report.OK, "failures: %v", report.Failures)
	assert.Zero(t, report.Dropped)
	assert.Greater(t, report.Latency.P50, 10*time.Millisecond, "no request takes less than half the mean service time")
	var received uint64
	for _, pod := range pods {
		assert.EqualValues(t, 120, pod.Usage().Received, "round robin")
		received += pod.Usage().Served
	}
	assert.EqualValues(t, 480, received)

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, pod := range pods {
		pod.Shutdown(gone)
	}
	generator, err = loadgen.New(loadgen.Config{Profile: loadgen.Constant(50, time.Second), Endpoints: addresses})
	require.NoError(t, err)
	report, err = generator.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"connection refused": 50}, report.Failures)
}

// BenchmarkFleet is what a second of 400 requests costs over 12 pods, generator and pods together, in cores.
func BenchmarkFleet(b *testing.B) {
	_, addresses := fleet(b, 12, workload.DefaultModel())
	for b.Loop() {
		before, begin := cpu(b), time.Now()
		generator, err := loadgen.New(loadgen.Config{Profile: loadgen.Constant(400, 10*time.Second),
			Endpoints: addresses, Poisson: true})
		require.NoError(b, err)
		report, err := generator.Run(b.Context())
		require.NoError(b, err)
		require.Equal(b, 1.0, report.Success())
		b.ReportMetric((cpu(b)-before).Seconds()/time.Since(begin).Seconds(), "cores")
		b.ReportMetric(float64(report.Latency.P50.Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(report.Latency.P99.Microseconds())/1000, "p99-ms")
	}
}

// cpu returns what this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestFailuresOfOneKindCountTogether cuts answers short, each on a connection of its own.
func TestFailuresOfOneKindCountTogether(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
	}))
	defer server.Close()
	generator, err := loadgen.New(loadgen.Config{
		Profile: loadgen.Constant(50, time.Second), Endpoints: loadgen.Static{server.Listener.Addr().String()},
	})
	require.NoError(t, err)
	report, err := generator.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"unexpected EOF": 50}, report.Failures)
}
