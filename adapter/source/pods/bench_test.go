package pods

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// benchmarkPage is a page of 120 metrics with four series each beside the one that is read (50 KB).
func benchmarkPage() string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(
			&b, "# HELP metric_%d_total How often something of this kind has happened.\n# TYPE metric_%d_total counter\n", i, i)
		for j := range 4 {
			fmt.Fprintf(&b, "metric_%d_total{method=\"GET\",path=\"/api/v1/things\",code=\"%d\"} %d\n", i, 200+j, i*j)
		}
	}
	return b.String() + smallPage
}

const smallPage = "# TYPE load gauge\nload 0.731\n"

func pages() map[string]string {
	return map[string]string{"small": smallPage, "large": benchmarkPage()}
}

// discard is a sink that only counts.
type discard struct {
	b     *testing.B
	taken atomic.Int64
}

func (d *discard) Append(string, ...pipeline.Sample) { d.taken.Add(1) }
func (d *discard) Fail(instance string, err error)   { d.b.Error(instance, err) }
func (d *discard) SourceFailed(err error)            { d.b.Error(err) }

// round reads all endpoints of a source once.
func round(ctx context.Context, s *Source) {
	s.mu.Lock()
	for _, e := range s.queue {
		s.beginScrape(ctx, e)
	}
	s.mu.Unlock()
	s.scraping.Wait()
}

func BenchmarkPage(b *testing.B) {
	for name, text := range pages() {
		b.Run(name, func(b *testing.B) {
			p, w := newPage(), newSelectionSet(newSelection("load", nil, source.Gauge))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, p.read(strings.NewReader(text), w, defaultMaxSeries, false))
				_, err := p.pick(0, asked)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkThousandEndpoints reads 1,000 endpoints, each on an address of its own, once an operation. What the servers
// take, which are in the same process, is in the figures.
func BenchmarkThousandEndpoints(b *testing.B) {
	const endpoints = 1000
	for name, text := range pages() {
		b.Run(name, func(b *testing.B) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
			var all []podtracker.Instance
			for i := range endpoints {
				ip := fmt.Sprintf("127.9.%d.%d", i/250, i%250+1)
				x := instance(strconv.Itoa(i), ip)
				port, err := strconv.Atoi(serve(b, ip, handler))
				require.NoError(b, err)
				x.Ports = map[string]int32{"metrics": int32(port)}
				all = append(all, x)
			}
			s := New(Options{Timeout: time.Minute, AllowLoopback: true})
			defer s.client.CloseIdleConnections()
			c := gauge(time.Second)
			c.Port = "metrics"
			s.Set(key("pm"), c, sourcetest.NewFleet(all...), &discard{b: b})
			round(b.Context(), s)
			b.ReportAllocs()
			for b.Loop() {
				round(b.Context(), s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*endpoints), "ns/scrape")
		})
	}
}

// BenchmarkGateOfAScrape compares the time of a processor that a scrape takes with what the gate takes
// for its reading, with a window of 300 readings that it looks through.
func BenchmarkGateOfAScrape(b *testing.B) {
	const endpoints, rounds = 1000, 20
	for name, text := range pages() {
		b.Run(name, func(b *testing.B) {
			s := newSource(Options{Timeout: time.Minute}.withDefaults(), newNetwork(answering(text)))
			s.Set(key("pm"), gauge(time.Second), fleetOf(endpoints), &discard{b: b})
			p := pipeline.AdaptiveParams()
			p.Threshold, p.Max = 0.7, 20
			limits, all, filter := gate.LimitsOf(&p, false), make([]pipeline.Instance, endpoints), gate.Filter{}
			for i := range all {
				all[i].Samples = make([]pipeline.Sample, 300)
			}
			for b.Loop() {
				before := processorTime(b)
				for range rounds {
					round(b.Context(), s)
				}
				scraped := processorTime(b)
				for range rounds {
					for range endpoints {
						_, _ = limits.Check(0.731)
					}
					filter.Apply(all, gate.Scale{Unit: 0.7, Spacing: time.Second, Highest: math.Inf(1)})
				}
				gated := processorTime(b)
				b.ReportMetric(float64((scraped-before).Microseconds())/rounds/endpoints, "scrape-µs")
				b.ReportMetric(float64((gated-scraped).Microseconds())/rounds/endpoints, "gate-µs")
				b.ReportMetric(100*float64(gated-scraped)/float64(scraped-before), "gate-%")
			}
		})
	}
}

// processorTime returns the time of processors that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSchedule runs 100,000 endpoints at an interval of one second, for a second an operation, on a network that
// costs nothing.
func BenchmarkSchedule(b *testing.B) {
	const endpoints = 100_000
	s := newSource(Options{}.withDefaults(), nothing{})
	sink := &discard{b: b}
	s.Set(key("pm"), gauge(time.Second), fleetOf(endpoints), sink)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	goroutines := 0
	for b.Loop() {
		<-time.After(time.Second)
		goroutines = max(goroutines, runtime.NumGoroutine())
	}
	b.ReportMetric(float64(sink.taken.Load())/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(goroutines), "goroutines")
	cancel()
	require.NoError(b, <-done)
}

// nothing is a transport that answers at once.
type nothing struct{}

func (nothing) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(smallPage)),
	}, nil
}

// BenchmarkLongPagesOfANamespace reads 1,000 pods with pages at the limits, for fifteen seconds an
// operation, besides 20 pods of another namespace and a server in the same process.
func BenchmarkLongPagesOfANamespace(b *testing.B) {
	const span = 15 * time.Second
	var page strings.Builder
	for i := range 9500 {
		fmt.Fprintf(&page, "load{i=\"%d\",path=\"%0190d\"} 1\n", i, i)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, smallPage) })
	server := "http://127.0.0.2:" + serve(b, "127.0.0.2", handler)
	for b.Loop() {
		s := newSource(Options{Timeout: 3 * time.Second}.withDefaults(), longFor{"10.1.", page.String()})
		fleet, _ := tenant("hostile", 1, 1000)
		c := gauge(time.Second)
		c.MatchLabels = map[string]string{"i": "7"}
		s.Set(types.NamespacedName{Namespace: "hostile", Name: "pm"}, c, fleet, newRecorder())
		sink := &discard{b: b}
		s.Set(key("pm"), gauge(time.Second), fleetOf(20), sink)
		ctx, cancel := context.WithTimeout(b.Context(), span)
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		var answers []float64
		for ctx.Err() == nil {
			began := time.Now()
			response, err := http.Get(server)
			require.NoError(b, err)
			_, _ = io.Copy(io.Discard, response.Body)
			require.NoError(b, response.Body.Close())
			answers = append(answers, time.Since(began).Seconds())
			<-time.After(5 * time.Millisecond)
		}
		cancel()
		require.NoError(b, <-done)
		slices.Sort(answers)
		b.ReportMetric(answers[len(answers)*99/100]*1000, "p99-ms")
		b.ReportMetric(float64(sink.taken.Load())/span.Seconds(), "samples/s")
	}
}

// longFor is a transport whose hosts serve a long page if their addresses begin alike, and a small one otherwise.
type longFor struct{ prefix, page string }

func (l longFor) RoundTrip(r *http.Request) (*http.Response, error) {
	page := smallPage
	if strings.HasPrefix(r.URL.Hostname(), l.prefix) {
		page = l.page
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(page))}, nil
}
