package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// The size that is aimed at: each pod gives one sample a second.
const (
	benchMetrics = 5000
	benchPods    = 20
	benchBatch   = 2000 // as Prometheus sends them
)

// discard is a sink that takes no time.
type discard struct{}

func (discard) Append(string, ...pipeline.Sample) {}
func (discard) Fail(_ string, err error)          { panic(err) }
func (discard) SourceFailed(error)                {}

// crowd sets the subscriptions of all metrics, and returns a series of each of their pods.
func crowd(s *Source, namespaces int, pod func(metric, n int) string) (series []string) {
	for m := range benchMetrics {
		namespace := fmt.Sprint("team-", m%namespaces)
		var all []podtracker.Instance
		for n := range benchPods {
			i := instance(namespace, pod(m, n))
			i.ID = fmt.Sprint("uid-", m, "-", n)
			all = append(all, i)
			series = append(series, fmt.Sprintf("load{container=app,endpoint=metrics,instance=10.%d.%d.%d:9090,job=%s/app-%d,namespace=%s,node=node-%d,pod=%s,service=app-%d}",
				m/250, m%250, n, namespace, m, namespace, m%100, i.Pod.Name, m))
		}
		s.Set(types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("app-", m)}, gauge(),
			sourcetest.NewFleet(all...), discard{})
	}
	return series
}

// deployment names pods as Deployments do, statefulSet as equal StatefulSets in namespaces of their own do.
func deployment(metric, n int) string { return fmt.Sprintf("app-%d-6d4cf56db6-x%04d", metric, n) }
func statefulSet(_, n int) string     { return fmt.Sprint("web-", n) }

// BenchmarkReceive takes the samples of one second from every pod over and over, in requests as Prometheus makes them.
func BenchmarkReceive(b *testing.B) {
	for _, layout := range []struct {
		name       string
		namespaces int
		pod        func(metric, n int) string
	}{
		{"namespaces=1", 1, deployment},
		{"namespaces=5000", benchMetrics, statefulSet},
	} {
		for _, e := range encodings {
			b.Run(layout.name+"/"+e.name, func(b *testing.B) {
				r := newReceiver()
				series := crowd(r.Source, layout.namespaces, layout.pod)
				// a request has what was scraped at the same time, from everywhere
				shuffle := rand.New(rand.NewPCG(1, 2))
				shuffle.Shuffle(len(series), func(i, j int) { series[i], series[j] = series[j], series[i] })
				receive(b, r, e, requestsOf(e, series))
				require.Zero(b, int(sourcetest.Gathered(b, r.registry, "foresail_remote_write_samples_total",
					"unknown_pod")))
			})
		}
	}
}

// BenchmarkSkip takes samples that no subscription reads.
func BenchmarkSkip(b *testing.B) {
	for _, e := range encodings {
		b.Run(e.name, func(b *testing.B) {
			r := newReceiver()
			series := crowd(r.Source, 1, deployment)
			for i := range series {
				series[i] = "un" + series[i]
			}
			receive(b, r, e, requestsOf(e, series))
		})
	}
}

// requestsOf returns the bodies of the requests that hold one sample of each series.
func requestsOf(e encoding, series []string) (bodies [][]byte) {
	for len(series) > 0 {
		n := min(benchBatch, len(series))
		var all []pushed
		for i, s := range series[:n] {
			all = append(all, push(s, at(0, float64(i))))
		}
		bodies = append(bodies, snappy.Encode(nil, e.encode(all...)))
		series = series[n:]
	}
	return bodies
}

// receive sends one request after the other, and reports the number of samples per second of one
// core. Requests are the same each round: gauges are passed on whether their times are new or not.
func receive(b *testing.B, r *receiver, e encoding, bodies [][]byte) {
	for _, body := range bodies { // make the state of each pod
		require.Equal(b, http.StatusNoContent, do(r.handler, post(e.contentType, body)).Code)
	}
	runtime.GC()
	b.ReportAllocs()
	n, before := 0, processorTime(b)
	for b.Loop() {
		if w := do(r.handler, post(e.contentType, bodies[n%len(bodies)])); w.Code != http.StatusNoContent {
			b.Fatal(w.Code, w.Body)
		}
		n++
	}
	b.ReportMetric(float64(n*benchBatch)/(processorTime(b)-before).Seconds(), "samples/core-s")
}

// processorTime is what the process has used of processors, collecting garbage included: others
// that run at the same time do not change it.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLibrary has the library decode the requests of BenchmarkReceive, and nothing is done with what it returns.
func BenchmarkLibrary(b *testing.B) {
	for _, e := range encodings {
		b.Run(e.name, func(b *testing.B) {
			bodies := requestsOf(e, crowd(newReceiver().Source, 1, deployment))
			b.ReportAllocs()
			n, before := 0, processorTime(b)
			for b.Loop() {
				plain, err := snappy.Decode(nil, bodies[n%len(bodies)])
				require.NoError(b, err)
				if e.name == "v1" {
					err = new(prompb.WriteRequest).Unmarshal(plain)
				} else {
					err = new(writev2.Request).Unmarshal(plain)
				}
				require.NoError(b, err)
				n++
			}
			b.ReportMetric(float64(n*benchBatch)/(processorTime(b)-before).Seconds(), "samples/core-s")
		})
	}
}
