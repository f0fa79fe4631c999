//go:build !race

package pods

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// pageOf returns a page of a size, of series of load alone, each of a length.
func pageOf(size, length int) string {
	var b strings.Builder
	for i := 0; b.Len()+length <= size; i++ {
		line := fmt.Sprintf(`load{i="%d",path="`, i)
		b.WriteString(line + strings.Repeat("x", length-len(line)-5) + "\"} 1\n")
	}
	return b.String()
}

// serving is a transport whose hosts all serve a page.
type serving string

func (s serving) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, ContentLength: -1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(string(s))),
	}, nil
}

// costOf returns what one scrape of a page allocates for some readers, each with its own
// matchLabels, and the first failure.
func costOf(t *testing.T, page string, readers int) (bytes uint64, failure string) {
	t.Helper()
	s := newSource(Options{}.withDefaults(), serving(page))
	fleet, sink := fleetOf(1), newRecorder()
	for i := range readers {
		c := gauge(time.Second)
		c.MatchLabels = map[string]string{"i": fmt.Sprint(i)}
		s.Set(key(fmt.Sprint("pm-", i)), c, fleet, sink)
	}
	var before, after runtime.MemStats
	for range 2 { // the first scrape makes buffers, which the others share
		runtime.ReadMemStats(&before)
		began := time.Now()
		for _, e := range s.endpoints {
			s.scrape(t.Context(), e)
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		bytes = max(bytes, after.TotalAlloc-before.TotalAlloc)
		t.Logf("%d KiB allocated in %s", (after.TotalAlloc-before.TotalAlloc)>>10, took.Round(time.Millisecond))
	}
	if failures := sink.Failures("uid-pod-0"); len(failures) > 0 {
		failure = failures[0]
	}
	return bytes, failure
}

func TestLongPageCostsLittle(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		page    string
		readers int
		want    string // what follows the URL
	}{
		"within all limits":     {pageOf(2*mib, 220), 1, ""},
		"for a hundred readers": {pageOf(2*mib, 220), 100, ""},
		"many series": {pageOf(2*mib, 40), 1,
			`: metric "load" cannot be read: it has more than 10000 series`},
		"4 MiB":                     {pageOf(4*mib, 60), 1, ": its body is larger than 2097152 bytes"},
		"16 MiB":                    {pageOf(16*mib, 60), 1, ": its body is larger than 2097152 bytes"},
		"lines as long as they may": {pageOf(2*mib, maxLine), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, failure := costOf(t, test.page, test.readers)
			assert.Less(t, bytes, uint64(10*mib))
			want := test.want
			if want != "" {
				want = "http://10.0.0.0:9090/metrics" + want
			}
			assert.Equal(t, want, failure)
		})
	}
}

// stalling is a transport whose answers end with a page's last line but one until release is closed.
type stalling struct {
	page    string
	stalled sync.WaitGroup
	release chan struct{}
}

func (w *stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(w.page), &stall{w: w})
	return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1, Header: http.Header{},
		Body: io.NopCloser(body)}, nil
}

type stall struct {
	w    *stalling
	once sync.Once
}

func (s *stall) Read([]byte) (int, error) {
	s.once.Do(s.w.stalled.Done)
	<-s.w.release
	return 0, io.EOF
}

// All slots have a scrape of a long page at once, each at its end.
func TestScrapesInFlightShareMemory(t *testing.T) {
	const slots = 1024
	page := pageOf(512<<10, maxLine/2)
	w := &stalling{page: page[:len(page)-1], release: make(chan struct{})}
	w.stalled.Add(slots)
	s := newSource(Options{Timeout: time.Hour}.withDefaults(), w)
	c := gauge(time.Second)
	c.MatchLabels = map[string]string{"i": "1"}
	sink := newRecorder()
	s.Set(key("pm"), c, fleetOf(slots), sink)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var scrapes sync.WaitGroup
	for _, e := range s.endpoints {
		scrapes.Go(func() { s.scrape(t.Context(), e) })
	}
	w.stalled.Wait()
	held := heap() - before
	close(w.release)
	scrapes.Wait()
	t.Logf("%d scrapes hold %d KiB each", slots, held>>10/slots)
	assert.Less(t, held, uint64(slots*128<<10))
	assert.Len(t, sink.Failures("uid-pod-0"), 1, "the page lacks its last newline")
}
