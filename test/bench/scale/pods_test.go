package scale

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// servePods serves the metrics of every pod of a population at the pod's own address until the
// benchmark ends.
func servePods(b *testing.B, p population) {
	b.Helper()
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, podPage(0.5+0.02*rand.NormFloat64()))
	}
	server := &http.Server{Handler: http.HandlerFunc(page)}
	for i := range p.apps {
		for k := range p.podsPerApp {
			listener, err := net.Listen("tcp", netip.AddrPortFrom(p.address(i, k), podPort).String())
			require.NoError(b, err)
			go func() { _ = server.Serve(listener) }()
		}
	}
	b.Cleanup(func() { _ = server.Close() })
}

// podPage is a small page of metrics: that of the process, and the load.
func podPage(load float64) string {
	return fmt.Sprintf("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 117.25\n"+
		"# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 81190912\n"+
		"# TYPE %[1]s gauge\n%[1]s %[2]s\n", loadMetric, strconv.FormatFloat(load, 'g', -1, 64))
}
