package scale

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

var (
	span    = flag.Duration("span", 2*time.Minute, "how long a process is measured once it is in its steady state")
	sustain = flag.Duration("sustain", 10*time.Minute, "how long one core is held to remote write")
)

// window is how long memory and work grow after a start: the default of PredictedMetrics.
var window = pipeline.AdaptiveParams().Window

// containerMemory is the memory limit of a Foresail that is held to one (bytes).
const containerMemory = 1228 << 20

// startLimit bounds the time to the first forecast of the last PredictedMetric.
const startLimit = 10 * time.Minute

// BenchmarkRemoteWrite measures Foresail as it is sent a sample of every pod once a second.
func BenchmarkRemoteWrite(b *testing.B) {
	for _, apps := range []int{1000, 2500, 5000, 7500} {
		b.Run(fmt.Sprintf("metrics=%d", apps), func(b *testing.B) { remoteWrite(b, apps, *span) })
	}
}

// BenchmarkSustainedRemoteWrite holds a Foresail that may use a single core, and has a container of
// 1.2 GiB, to remote write at 100,000 samples a second: nothing may be lost.
func BenchmarkSustainedRemoteWrite(b *testing.B) {
	b.Run("metrics=5000/procs=1/for="+sustain.String(), func(b *testing.B) {
		remoteWrite(b, 5000, *sustain, "GOMAXPROCS=1", "FORESAIL_MEMORY_LIMIT="+strconv.Itoa(containerMemory))
	})
}

func remoteWrite(b *testing.B, apps int, span time.Duration, environment ...string) {
	c := startCluster(b)
	p := population{
		apps: apps, podsPerApp: 20, namespaces: 50, network: netip.MustParsePrefix("10.0.0.0/16"),
		source: remoteWriteSource(), born: time.Now().Add(-time.Hour),
	}
	require.NoError(b, fill(b.Context(), c, p))
	f := startForesail(b, c, environment...)
	w := startPushing(b, f, p, remoteWriteV1())
	toServed := steady(b, f, p)
	for b.Loop() {
		before := w.acknowledged.Load()
		w.latencies.reset()
		measure(b, f, span)
		b.ReportMetric(float64(w.acknowledged.Load()-before)/span.Seconds(), "samples/s")
	}
	b.ReportMetric(w.latencies.quantile(0.99)*1000, "ms-push-p99")
	b.ReportMetric(ageP99(b, f), "s-age-p99")
	reportStart(b, toServed)
	b.ReportMetric(0, "ns/op")
	require.NoError(b, f.served(b.Context(), p.apps))
	w.stop()
	b.ReportMetric(float64(w.retried.Load()), "requests-retried")
	b.ReportMetric(float64(w.sent.Load())-taken(b, f), "samples-lost")
	require.Equal(b, w.sent.Load(), w.acknowledged.Load(), "samples acknowledged")
	require.Equal(b, float64(w.sent.Load()), taken(b, f), "samples taken, by Foresail's own count")
}

// taken is how many samples Foresail has found the pods of.
func taken(b *testing.B, f *adapter) float64 {
	b.Helper()
	return count(b, f, "foresail_remote_write_samples_total", "result", "taken")
}

// ageP99 is the age of the newest sample of a PredictedMetric (s), exceeded by one in a hundred at
// this moment.
func ageP99(b *testing.B, f *adapter) float64 {
	b.Helper()
	var ages quantiles
	for _, m := range f.MustMetrics(b)["foresail_sample_age_seconds"].GetMetric() {
		ages.add(m.GetGauge().GetValue())
	}
	return ages.quantile(0.99)
}

// BenchmarkPods measures Foresail as it reads every pod once a second.
func BenchmarkPods(b *testing.B) {
	for _, apps := range []int{25, 125, 250, 400} {
		b.Run(fmt.Sprintf("pods=%d", 20*apps), func(b *testing.B) {
			c := startCluster(b)
			p := population{apps: apps, podsPerApp: 20, namespaces: 10, network: c.PodCIDR(),
				born: time.Now().Add(-time.Hour)}
			p.source.Pods = &v1alpha1.PodsSource{Port: intstr.FromInt32(podPort), Metric: loadMetric}
			require.NoError(b, fill(b.Context(), c, p))
			servePods(b, p)
			f := startForesail(b, c)
			toServed := steady(b, f, p)
			before := count(b, f, "foresail_scrape_duration_seconds", "result", "success")
			for b.Loop() {
				measure(b, f, *span)
			}
			scraped := count(b, f, "foresail_scrape_duration_seconds", "result", "success") - before
			b.ReportMetric(scraped/b.Elapsed().Seconds(), "samples/s")
			reportStart(b, toServed)
			b.ReportMetric(0, "ns/op")
			require.NoError(b, f.served(b.Context(), p.apps))
		})
	}
}

// start is what it takes until every PredictedMetric is served: time, and processor time of Foresail.
type start struct{ took, used time.Duration }

func reportStart(b *testing.B, s start) {
	b.ReportMetric(s.took.Seconds(), "s-to-all-served")
	b.ReportMetric(s.used.Seconds(), "cpu-s-to-all-served")
}

// steady waits until every PredictedMetric is served, and then for its window to be full. It
// returns what the first took.
func steady(b *testing.B, f *adapter, p population) start {
	b.Helper()
	begun := time.Now()
	waitServed(b, f, p)
	toServed := start{time.Since(begun), f.MustUsage(b).CPU}
	select {
	case <-f.Ended():
		b.Fatal(f.Failure())
	case <-time.After(window):
	}
	return toServed
}

// waitServed waits until every PredictedMetric is served.
func waitServed(b *testing.B, f *adapter, p population) {
	b.Helper()
	ctx, cancel := context.WithTimeoutCause(b.Context(), startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	require.NoError(b, f.waitServed(ctx, p.apps))
}

func count(b *testing.B, f *adapter, name string, labels ...string) float64 {
	b.Helper()
	families := f.MustMetrics(b)
	require.Contains(b, families, name)
	return families.Sum(name, labels...)
}
