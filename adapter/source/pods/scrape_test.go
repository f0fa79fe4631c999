package pods

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// serve has a handler answer at a loopback address, on whichever port is free, and returns the port.
func serve(t testing.TB, ip string, h http.Handler) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(ip, "0"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(h)
	require.NoError(t, server.Listener.Close())
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// scrapeOnce reads an endpoint once and returns what the sink got.
func scrapeOnce(t *testing.T, o Options, ip string, c Config) *recorder {
	t.Helper()
	o.AllowLoopback = true
	s := New(o)
	defer s.client.CloseIdleConnections()
	sink := newRecorder()
	s.Set(key("pm"), c, sourcetest.NewFleet(instance("a", ip)), sink)
	require.Len(t, s.endpoints, 1)
	for _, e := range s.endpoints {
		s.scrape(t.Context(), e)
	}
	return sink
}

func TestScrape(t *testing.T) {
	other := serve(t, "127.0.0.3",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "load 9") }))
	write := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			_, _ = io.WriteString(w, body)
		}
	}
	tests := map[string]struct {
		path    string // "" = /metrics
		handler http.HandlerFunc
		options Options
		want    float64
		err     string // what follows the URL
		result  result
	}{
		"text": {handler: write("text/plain; version=0.0.4; charset=utf-8", "load 0.5\n"),
			want: 0.5, result: resultSuccess},
		"no content type": {handler: write("", "load 0.5\n"), want: 0.5, result: resultSuccess},
		"OpenMetrics": {
			handler: write("application/openmetrics-text; version=1.0.0; charset=utf-8",
				"# TYPE load unknown\nload 0.5 # {a=\"b\"} 1\n# EOF\n"),
			want: 0.5, result: resultSuccess,
		},
		"query": {
			path: "/probe?module=a%20b&x", result: resultSuccess, want: 0.5,
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/probe" || r.URL.RawQuery != "module=a%20b&x" {
					http.Error(w, r.URL.String(), http.StatusBadRequest)
					return
				}
				fmt.Fprintln(w, "load 0.5")
			},
		},
		"what it asks for": {
			options: Options{UserAgent: "foresail/1.2.3"}, result: resultSuccess, want: 0.5,
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.UserAgent() != "foresail/1.2.3" ||
					!strings.HasPrefix(r.Header.Get("Accept"), "text/plain;version=0.0.4") ||
					r.Header.Get("Accept-Encoding") != "" {
					http.Error(w, fmt.Sprint(r.Header), http.StatusBadRequest)
					return
				}
				fmt.Fprintln(w, "load 0.5")
			},
		},
		"redirect on the same address": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					http.Redirect(w, r, "/metrics/", http.StatusMovedPermanently)
					return
				}
				fmt.Fprintln(w, "load 0.5")
			},
			want: 0.5, result: resultSuccess,
		},
		"redirect to another address": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.3:"+other+"/metrics", http.StatusFound)
			},
			err: ": it redirects to http://127.0.0.3:" + other +
				": redirects to other addresses are not followed", result: resultStatus,
		},
		"redirect in circles": {
			handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metrics", http.StatusFound) },
			err:     ": it redirects more than 3 times", result: resultStatus,
		},
		"not found": {handler: http.NotFound,
			err: ": it answers 404 Not Found: must be 200 OK: is source.pods.path right?", result: resultStatus},
		"unavailable": {
			handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			err:     ": it answers 503 Service Unavailable: must be 200 OK", result: resultStatus,
		},
		"HTML": {
			handler: write("text/html", "<p>load 1</p>"),
			err:     `: its Content-Type is "text/html": must be text/plain or application/openmetrics-text`,
			result:  resultContent,
		},
		"compressed though not asked for": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/plain")
				z := gzip.NewWriter(w)
				fmt.Fprintln(z, "load 1")
				_ = z.Close()
			},
			err: `: its Content-Encoding is "gzip": must be none`, result: resultContent,
		},
		"too large": {
			handler: write("text/plain", "load 1\n"+strings.Repeat("# comment\n", 1000)),
			options: Options{MaxBodyBytes: 1000},
			err:     ": its body is larger than 1000 bytes", result: resultContent,
		},
		"as large as may be": {handler: write("text/plain", "load 1\n"), options: Options{MaxBodyBytes: 7},
			want: 1, result: resultSuccess},
		"broken off": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				fmt.Fprintln(w, "load 1")
			},
			err: ": unexpected EOF", result: resultConnection,
		},
		"answer that does not end": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintln(w, "load 1")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			},
			options: Options{Timeout: 50 * time.Millisecond},
			err:     ": no complete answer within 50ms", result: resultTimeout,
		},
		"silence": {
			handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			options: Options{Timeout: 50 * time.Millisecond},
			err:     ": no complete answer within 50ms", result: resultTimeout,
		},
		"missing": {handler: write("text/plain", "lode 1\n"),
			err: `: metric "load" is not served; the endpoint serves "lode"`, result: resultSuccess},
		"hostile": {handler: write("text/plain", "{} 1\n{{{\n\x00\xff\nload{\n"),
			err:    `: metric "load" cannot be read: expected label name, got "\n" ("INVALID") while parsing: "load{\n"`,
			result: resultSuccess},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			test.options.Registerer = registry
			c := gauge(10 * time.Second)
			c.Port = serve(t, "127.0.0.2", test.handler)
			if test.path != "" {
				c.Path = test.path
			}
			before := time.Now().UnixMilli()
			sink := scrapeOnce(t, test.options, "127.0.0.2", c)
			assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds",
				string(test.result)))
			assert.Equal(t, 1.0, sourcetest.Gathered(t, registry, "foresail_scrape_duration_seconds", ""))
			if test.err != "" {
				assert.Equal(t, []string{"http://127.0.0.2:" + c.Port + c.Path + test.err}, sink.Failures("uid-a"))
				assert.Empty(t, sink.Samples("uid-a"))
				return
			}
			require.Empty(t, sink.Failures("uid-a"))
			require.Len(t, sink.Samples("uid-a"), 1)
			assert.Equal(t, test.want, sink.Samples("uid-a")[0].V)
			assert.GreaterOrEqual(t, sink.Samples("uid-a")[0].T, before)
			assert.LessOrEqual(t, sink.Samples("uid-a")[0].T, time.Now().UnixMilli())
		})
	}
}

func TestScrapeWithoutAListener(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	require.NoError(t, err)
	c := gauge(time.Second)
	_, c.Port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	sink := scrapeOnce(t, Options{}, "127.0.0.2", c)
	require.Len(t, sink.Failures("uid-a"), 1)
	assert.Regexp(t, "^http://127.0.0.2:"+c.Port+
		"/metrics: dial tcp .*: connection refused; the pod has the ports metrics \\(9090\\)$", sink.Failures("uid-a")[0])
}

func TestScrapeOverIPv6(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		key := locate(instance("a", "::1"), &Config{Port: "9090", Path: "/metrics", Interval: time.Second}, true)
		assert.Equal(t, "http://[::1]:9090/metrics", key.url,
			"without IPv6 on this machine its URL is all there is to see")
		return
	}
	require.NoError(t, l.Close())
	c := gauge(time.Second)
	c.Port = serve(t, "::1", http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprintln(w, "load 3")
	}))
	assert.Equal(t, 3.0, scrapeOnce(t, Options{}, "::1", c).Samples("uid-a")[0].V)
}

func TestConnectionsAreKept(t *testing.T) {
	var connections, requests atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%3 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "load 1")
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	s := New(Options{AllowLoopback: true})
	defer s.client.CloseIdleConnections()
	c := gauge(time.Second)
	_, c.Port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	s.Set(key("pm"), c, sourcetest.NewFleet(instance("a", "127.0.0.2")), newRecorder())
	for range 20 {
		for _, e := range s.endpoints {
			s.scrape(t.Context(), e)
		}
	}
	assert.EqualValues(t, 20, requests.Load())
	assert.EqualValues(t, 1, connections.Load())
}

// Everything at once: fleets that change while they are read, for several metrics, over real connections.
func TestConcurrentUse(t *testing.T) {
	const pods = 12
	var served sync.Map
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Store(r.Host, true)
		fmt.Fprintln(w, "load 1\nwork 2")
	})
	var all []podtracker.Instance
	for i := range pods {
		ip := fmt.Sprintf("127.0.7.%d", i+1)
		port := serve(t, ip, handler)
		x := instance(fmt.Sprint("pod-", i), ip)
		var number int32
		_, err := fmt.Sscan(port, &number)
		require.NoError(t, err)
		x.Ports = map[string]int32{"metrics": number}
		all = append(all, x)
	}
	s := New(Options{Concurrency: 4, AllowLoopback: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	sinks := make([]*recorder, 4)
	var group sync.WaitGroup
	for worker := range sinks {
		sinks[worker] = newRecorder()
		c := gauge(100 * time.Millisecond)
		c.Port, c.Metric = "metrics", []string{"load", "work"}[worker%2]
		name := key(fmt.Sprint(worker))
		group.Go(func() {
			fleet := sourcetest.NewFleet(all...)
			for i := range 200 {
				s.Set(name, c, fleet, sinks[worker])
				fleet.Set(all[i%pods:]...)
				if i%10 == 0 {
					s.Remove(name)
				}
			}
			fleet.Set(all...)
		})
	}
	group.Wait()
	require.Eventually(t, func() bool {
		for _, sink := range sinks {
			for _, x := range all {
				if len(sink.Samples(x.ID)) < 3 {
					return false
				}
			}
		}
		return true
	}, 10*time.Second, 10*time.Millisecond)
	for worker := range sinks {
		s.Remove(key(fmt.Sprint(worker)))
	}
	calls := 0
	for _, sink := range sinks {
		calls += sink.Calls()
	}
	cancel()
	require.NoError(t, <-done)
	for _, sink := range sinks {
		calls -= sink.Calls()
	}
	assert.Zero(t, calls, "no call after Remove")
	assert.Empty(t, s.endpoints)
}

// No path, however written, makes the URL of another host.
func FuzzTargetStaysOnItsHost(f *testing.F) {
	for _, path := range []string{"/metrics", "//evil", "/\\evil", "/@evil:80/", "/a?b#c", "/%2f%2fevil"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		c := Config{Path: path}
		u, err := c.endpointURL("10.0.0.1:9090")
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != "10.0.0.1:9090" || again.Scheme != "http" || again.User != nil {
			t.Fatalf("%q became %q", path, u)
		}
	})
}
