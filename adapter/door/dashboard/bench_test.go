package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// crowd is how many PredictedMetrics there are, and viewers how many people look at the same time.
const crowd, viewers = 5000, 10

// full returns a dashboard with an hour of the crowd, and how much memory that hour takes.
func full(b *testing.B) (d *Dashboard, memory uint64) {
	b.Helper()
	all := many(crowd)
	d = New(servingtest.NewMemory(all...), time.Now)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range Kept + blockPoints {
		now := servingtest.Now.Add(time.Duration(i) * Step)
		for j := range all {
			all[j].At, all[j].NewestSample = now, now
		}
		d.history.record(all, now)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	now := servingtest.Now
	d.now = func() time.Time { return now }
	return d, after.HeapAlloc - before.HeapAlloc
}

// BenchmarkRecord is a round of Run.
func BenchmarkRecord(b *testing.B) {
	d, memory := full(b)
	b.ReportAllocs()
	begun := cpuTime(b)
	for b.Loop() {
		d.record()
	}
	b.ReportMetric((cpuTime(b)-begun).Seconds()*1000/float64(b.N), "cpu-ms/round")
	b.ReportMetric(float64(memory)/crowd/1024, "KiB/metric")
}

// cpuTime is what the process has used, whatever else the machine does.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkViewers has ten viewers ask at once for what they look at, over HTTP: each for a page of
// the fleet and for one PredictedMetric with its hour, as when it is opened.
func BenchmarkViewers(b *testing.B) {
	for _, c := range []struct{ name, path string }{
		{"fleet", "?limit=50&sort=load&order=desc"},
		{"search", "?limit=50&search=team-3&sort=late"},
		{"hour", "/team-%d/m-%04d"},
		{"newest", "/team-%d/m-%04d?since=1772369900"},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, _ := full(b)
			begun := time.Now()
			d.now = func() time.Time { return servingtest.Now.Add(time.Since(begun)) }
			server := httptest.NewServer(d.Handler())
			defer server.Close()
			var mu sync.Mutex
			var took []time.Duration
			size := 0
			cpu := cpuTime(b)
			for b.Loop() {
				var group sync.WaitGroup
				for viewer := range viewers {
					path := c.path
					if path[0] == '/' {
						path = fmt.Sprintf(path, viewer%7, viewer)
					}
					group.Go(func() {
						started := time.Now()
						n := read(b, server.URL+MetricsPath+path)
						mu.Lock()
						defer mu.Unlock()
						took, size = append(took, time.Since(started)), max(size, n)
					})
				}
				group.Wait()
			}
			b.ReportMetric((cpuTime(b)-cpu).Seconds()*1000/float64(len(took)), "cpu-ms/answer")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
			b.ReportMetric(float64(size)/1024, "KiB/answer")
		})
	}
}

func read(b *testing.B, address string) int {
	response, err := http.Get(address)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Error(response.Status, err)
	}
	return len(content)
}
