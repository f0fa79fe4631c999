package bench

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
)

var span = flag.Duration("span", 2*time.Minute, "how long a process is measured once it is in its steady state")

const (
	// window is how long memory and work grow after a start: the default of PredictedMetrics.
	window = 90 * time.Second
	// startLimit bounds the time to the first forecast of the last PredictedMetric.
	startLimit = 10 * time.Minute
)

// BenchmarkPods measures Foresail as it reads every pod once a second.
func BenchmarkPods(b *testing.B) {
	for _, apps := range []int{25, 125, 250, 400} {
		b.Run(fmt.Sprintf("pods=%d", 20*apps), func(b *testing.B) {
			c := startCluster(b)
			p := population{apps: apps, podsPerApp: 20, namespaces: 10, network: c.PodCIDR(), born: time.Now().Add(-time.Hour)}
			p.source.Pods = &v1alpha1.PodsSource{Port: fmt.Sprint(podPort), Metric: loadMetric}
			require.NoError(b, fill(b.Context(), c, p))
			servePods(b, p)
			f := startForesail(b, c, 0)
			toServed := steady(b, f, p)
			before := count(b, f, "foresail_scrapes_total", map[string]string{"result": "success"})
			for b.Loop() {
				measure(b, f, *span)
			}
			scraped := count(b, f, "foresail_scrapes_total", map[string]string{"result": "success"}) - before
			b.ReportMetric(scraped/b.Elapsed().Seconds(), "samples/s")
			b.ReportMetric(toServed.Seconds(), "s-to-all-served")
			b.ReportMetric(0, "ns/op")
			require.NoError(b, f.ready(b.Context(), p.apps))
		})
	}
}

// steady waits until every PredictedMetric is served, and then for its window to be full. It returns how long the first took.
func steady(b *testing.B, f *foresail, p population) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeoutCause(b.Context(), startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	begun := time.Now()
	require.NoError(b, f.waitReady(ctx, p.apps))
	toServed := time.Since(begun)
	select {
	case <-f.Ended():
		b.Fatal(f.Failure())
	case <-time.After(window):
	}
	return toServed
}

func count(b *testing.B, f *foresail, name string, labels map[string]string) float64 {
	b.Helper()
	t, err := f.telemetry(b.Context())
	require.NoError(b, err)
	require.Contains(b, t, name)
	return t.sum(name, labels)
}
