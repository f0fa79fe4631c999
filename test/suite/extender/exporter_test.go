package extender

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/test/env/monitoring"
)

// startPrometheus runs a Prometheus that knows of each node what its kubelet's cAdvisor would tell,
// by the meter, and returns its address.
func startPrometheus(t *testing.T) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: &exporter{last: map[string]reading{}, worked: map[string]float64{}},
		ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	p, err := monitoring.StartPrometheus(t.Context(), cluster, monitoring.PrometheusOptions{
		Progress: os.Stderr, Targets: []string{listener.Addr().String()}, Selector: "none=none",
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	require.NoError(t, p.WaitReady(t.Context()))
	return p.URL
}

// askPrometheus returns the flags by which a process reads there what nodes use.
func askPrometheus(url string) []string {
	return []string{
		"--prometheus", url,
		"--extender-cpu-query", `sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))`,
		"--extender-memory-query", `sum by (node) (last_over_time(container_memory_working_set_bytes{id="/"}[1m]))`,
	}
}

// exporter tells what nodes use in the names of cAdvisor. It is scraped by one server, a scrape at a time.
type exporter struct {
	last   map[string]reading
	worked map[string]float64 // CPU seconds
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	at := time.Now()
	for _, object := range uses.nodes.GetStore().List() {
		name := object.(*corev1.Node).Name
		now := reading{at, uses.now(name, at)}
		if last, ok := e.last[name]; ok {
			e.worked[name] += (last.cpu + now.cpu) / 2 * at.Sub(last.at).Seconds()
		}
		e.last[name] = now
		fmt.Fprintf(w, "container_cpu_usage_seconds_total{id=\"/\",node=%q} %f\n", name, e.worked[name])
		fmt.Fprintf(w, "container_memory_working_set_bytes{id=\"/\",node=%q} %f\n", name, now.memory)
	}
}
