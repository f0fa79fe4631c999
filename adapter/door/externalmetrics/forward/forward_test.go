package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// adapter plays the second adapter.
type adapter func(*http.Request) (*http.Response, error)

// answering answers with a body.
func answering(code int, body string, header ...string) adapter {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Add(header[i], header[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)),
			ContentLength: -1, Request: r}, nil
	}
}

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func refusing(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// network leads to one adapter after the other.
type network struct{ to atomic.Pointer[adapter] }

func newNetwork(a adapter) *network {
	n := &network{}
	n.set(a)
	return n
}

func (n *network) set(a adapter) { n.to.Store(&a) }

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) { return (*n.to.Load())(r) }

func forwarderTo(n *network) (*Forwarder, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return newForwarder(Options{Host: "second.example.svc:443", Registerer: registry, Now: time.Now}, n), registry
}

var own = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "own") })

// newRead is a request as the API server hands it on.
func newRead(ctx context.Context, target string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		panic(err)
	}
	return r.WithContext(request.WithRequestInfo(r.Context(), info))
}

func read(f *Forwarder, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.Handler(own).ServeHTTP(w, r)
	return w
}

const queue = prefix + "/namespaces/shop/queue"

func TestOnlyReadsOfOtherMetricsAreForwarded(t *testing.T) {
	to := newNetwork(answering(http.StatusOK, "other"))
	f, _ := forwarderTo(to)
	for target, want := range map[string]string{
		queue: "other",
		queue + "?labelSelector=a%3Db&timeout=3s":                        "other",
		prefix + "/namespaces/shop/pubsub.googleapis.com%7Csubscription": "other",
		prefix + "/namespaces/shop/datadogmetric@shop:queue":             "other",
		prefix + "/namespaces/shop/predicted_load":                       "own",
		prefix + "/namespaces/shop/predicted_load_total?x=1":             "own",
		prefix + "/namespaces/shop/predicted_replicas":                   "own",
		prefix + "/namespaces/shop/predicted_repl%69cas":                 "own", // the same name
		queue + "?watch=true":                                            "own",
		queue + "/":                                                      "own",
		queue + "/status":                                                "own",
		// for which the caller was not authorized
		queue + "%2F..%2Fother":            "own",
		prefix + "/namespaces/shop//queue": "own",
		prefix + "/namespaces/shop/..":     "own",
		prefix + "/namespaces/shop/%2e%2e": "own",
		prefix + "/namespaces/../queue":    "own",
		prefix + "/namespaces/shop":        "own",
		prefix + "/queue":                  "own",
		prefix:                             "own",
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/queue": "own",
		"/apis/external.metrics.k8s.io/v1/namespaces/shop/queue":    "own",
		"/metrics": "own",
	} {
		assert.Equal(t, want, read(f, newRead(t.Context(), target)).Body.String(), target)
	}
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
		r := newRead(t.Context(), queue)
		r.Method = method
		assert.Equal(t, "own", read(f, r).Body.String(), method)
	}
	assert.Equal(t, "own", read(f, newRead(t.Context(), queue, "Via", hop)).Body.String(), "sent in a circle")
	assert.Equal(t, "own", read(f, httptest.NewRequest(http.MethodGet, queue, nil)).Body.String(),
		"not seen by the chain of the API server")
}

func TestCredentialsOfTheCallerAreDropped(t *testing.T) {
	var got *http.Request
	to := newNetwork(func(r *http.Request) (*http.Response, error) {
		got = r
		return answering(http.StatusOK, "")(r)
	})
	f, _ := forwarderTo(to)
	r := newRead(t.Context(), queue+"?labelSelector=a%3Db%2Cc%20in%20%28d%29;e", "Authorization", "Bearer caller",
		"X-Remote-User", "admin", "X-Remote-Group", "system:masters",
		"X-Remote-Extra-Scopes", "all", "Impersonate-User", "admin", "Cookie", "session", "X-Forwarded-For", "10.0.0.1",
		"Connection", "X-Custom", "X-Custom", "y",
		"Accept", "application/vnd.kubernetes.protobuf", "Accept-Encoding", "gzip", "User-Agent",
		"kube-controller-manager", "Upgrade", "websocket")
	assert.Equal(t, http.StatusOK, read(f, r).Code)
	assert.Equal(t, http.Header{
		"Accept": {"application/vnd.kubernetes.protobuf"}, "Accept-Encoding": {"gzip"},
		"User-Agent": {"kube-controller-manager"}, "Via": {hop},
	}, got.Header)
	assert.Equal(t, "https://second.example.svc:443"+queue+"?labelSelector=a%3Db%2Cc%20in%20%28d%29;e",
		got.URL.String(), "to the byte")
	assert.Equal(t, "second.example.svc:443", got.Host)
	assert.Zero(t, got.ContentLength)
}

func TestHeadersOfAnAnswer(t *testing.T) {
	to := newNetwork(answering(http.StatusTooManyRequests, "slow down", "Retry-After", "10", "Cache-Control", "public",
		"Content-Type", "text/plain", "Warning", `299 - "x"`, "Set-Cookie", "session=1", "Audit-Id", "other"))
	f, registry := forwarderTo(to)
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "no-cache, private") // as the chain of the API server does
	f.Handler(own).ServeHTTP(w, newRead(t.Context(), queue))
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.Equal(t, "slow down", w.Body.String())
	assert.Equal(t, http.Header{"Cache-Control": {"no-cache, private"}, "Content-Type": {"text/plain"},
		"Warning": {`299 - "x"`}}, w.Header(), "the HPA's client would wait for Retry-After")
	assert.InDelta(t, 1, requests(t, registry, "429"), 0)
}

// A redirect would have clients ask another server with their credentials.
func TestRedirectsAreNotPassedOn(t *testing.T) {
	f, registry := forwarderTo(newNetwork(answering(http.StatusFound, "", "Location", "https://elsewhere.example")))
	for range 2 * maxFailures {
		w := read(f, newRead(t.Context(), queue))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Empty(t, w.Header().Get("Location"))
		assert.Contains(t, w.Body.String(), "answers with a redirect: 302")
	}
	assert.InDelta(t, 2*maxFailures, requests(t, registry, "302"), 0, "the second adapter answers all the same")
}

// An interim answer neither passes through nor costs the headers that this server has set.
func TestInterimAnswersAreDropped(t *testing.T) {
	second := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "other")
	}))
	defer second.Close()
	f := newForwarder(Options{
		Host: second.Listener.Addr().String(), Registerer: prometheus.NewRegistry(), Now: time.Now,
	}, second.Client().Transport)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache, private")
		f.Handler(own).ServeHTTP(w, newRead(r.Context(), queue))
	}))
	defer first.Close()
	interim := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { interim++; return nil },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, first.URL, nil)
	require.NoError(t, err)
	answer, err := first.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, "other", string(content))
	assert.Equal(t, "no-cache, private", answer.Header.Get("Cache-Control"))
	assert.Empty(t, answer.Header.Get("Link"))
	assert.Zero(t, interim)
}

// requests returns how many reads ended with a code.
func requests(t *testing.T, registry *prometheus.Registry, code string) float64 {
	t.Helper()
	return value(t, registry, "foresail_forward_request_duration_seconds", code)
}

func value(t *testing.T, registry *prometheus.Registry, name, code string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if code == "" {
				return m.GetGauge().GetValue()
			}
			if m.GetLabel()[0].GetValue() == code {
				return float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

func TestMetricsFollowTheConventions(t *testing.T) {
	to := newNetwork(silent)
	_, registry := forwarderTo(to)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// The breaker opens after five reads without an answer, and lets one through every 15 s until one is answered.
func TestBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		to := newNetwork(func(r *http.Request) (*http.Response, error) {
			asked++
			return silent(r)
		})
		f, registry := forwarderTo(to)
		for range maxFailures {
			began := time.Now()
			w := read(f, newRead(t.Context(), queue))
			assert.Equal(t, http.StatusServiceUnavailable, w.Code)
			assert.Contains(t, w.Body.String(),
				`Foresail has no metric \"queue\", and the second adapter https://second.example.svc:443 does not answer: no answer within 5s`)
			assert.Empty(t, w.Header().Get("Retry-After"))
			assert.Equal(t, timeLimit, time.Since(began), "its own limit, and no second try")
		}
		assert.Equal(t, maxFailures, asked)
		assert.False(t, f.breaker.available())

		began := time.Now()
		for range 10 {
			w := read(f, newRead(t.Context(), queue))
			assert.Equal(t, http.StatusServiceUnavailable, w.Code)
			assert.Contains(t, w.Body.String(), "does not answer: no answer within 5s")
		}
		assert.Zero(t, time.Since(began), "at once")
		assert.Equal(t, maxFailures, asked, "it is not asked")
		assert.InDelta(t, 10, requests(t, registry, resultOpen), 0)
		assert.InDelta(t, maxFailures, requests(t, registry, resultTimeout), 0)

		time.Sleep(openFor)
		var done atomic.Int32
		for range 10 {
			go func() {
				read(f, newRead(t.Context(), queue))
				done.Add(1)
			}()
		}
		synctest.Wait()
		assert.Equal(t, maxFailures+1, asked, "one probe")
		assert.Equal(t, int32(9), done.Load(), "the others do not wait for it")
		time.Sleep(timeLimit)
		synctest.Wait()
		assert.Equal(t, int32(10), done.Load())
		read(f, newRead(t.Context(), queue))
		assert.Equal(t, maxFailures+1, asked, "the probe has failed, and no other follows for a while")

		time.Sleep(openFor)
		to.set(answering(http.StatusNotFound, "none such"))
		assert.Equal(t, http.StatusNotFound, read(f, newRead(t.Context(), queue)).Code, "any response is an answer")
		assert.True(t, f.breaker.available())
		to.set(refusing)
		for range maxFailures {
			assert.Contains(t, read(f, newRead(t.Context(), queue)).Body.String(), "connection refused")
		}
		assert.InDelta(t, maxFailures, requests(t, registry, resultFailed), 0)
		assert.InDelta(t, 0, value(t, registry, "foresail_forward_available", ""), 0)
	})
}

func TestAnAnswerInBetweenKeepsTheBreakerClosed(t *testing.T) {
	to := newNetwork(refusing)
	f, _ := forwarderTo(to)
	for range 3 {
		to.set(refusing)
		for range maxFailures - 1 {
			assert.Equal(t, http.StatusServiceUnavailable, read(f, newRead(t.Context(), queue)).Code)
		}
		to.set(answering(http.StatusOK, ""))
		assert.Equal(t, http.StatusOK, read(f, newRead(t.Context(), queue)).Code)
	}
}

// A client that does not wait, such as with timeout=1ms, says nothing about the second adapter, and
// takes no probe with it.
func TestClientsThatGiveUpDoNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newNetwork(silent)
		f, registry := forwarderTo(to)
		impatient := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			read(f, newRead(ctx, queue))
		}
		for range 3 * maxFailures {
			impatient()
		}
		assert.InDelta(t, 3*maxFailures, requests(t, registry, resultCanceled), 0)
		assert.InDelta(t, 0, requests(t, registry, resultOpen), 0)

		for range maxFailures {
			read(f, newRead(t.Context(), queue))
		}
		time.Sleep(openFor)
		impatient() // is the probe
		to.set(answering(http.StatusOK, ""))
		assert.Equal(t, http.StatusOK, read(f, newRead(t.Context(), queue)).Code, "the next one is the probe")
	})
}

func TestReadsInFlightAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newNetwork(silent)
		f, registry := forwarderTo(to)
		var ended atomic.Int32
		for i := range maxInFlight {
			go func() {
				path := fmt.Sprintf("%s/namespaces/n%d/queue", prefix, i%(maxInFlight/maxOfNamespace))
				read(f, newRead(t.Context(), path))
				ended.Add(1)
			}()
		}
		synctest.Wait()
		began := time.Now()
		w := read(f, newRead(t.Context(), queue))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Contains(t, w.Body.String(), "100 reads wait for it already")
		assert.Equal(t, "own", read(f, newRead(t.Context(), prefix+"/namespaces/shop/predicted_load")).Body.String())
		assert.Zero(t, time.Since(began))
		assert.InDelta(t, 1, requests(t, registry, resultBusy), 0)
		time.Sleep(timeLimit)
		synctest.Wait()
		assert.Equal(t, int32(maxInFlight), ended.Load())
		assert.Empty(t, f.inFlight.of)
	})
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestAnswersAreBounded(t *testing.T) {
	to := newNetwork(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{},
			ContentLength: -1, Request: r}, nil
	})
	f, _ := forwarderTo(to)
	// A server's context makes the proxy break the connection, so that no one takes a part for the whole.
	ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{})
	w := httptest.NewRecorder()
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { f.Handler(own).ServeHTTP(w, newRead(ctx, queue)) })
	assert.LessOrEqual(t, w.Body.Len(), maxBytes)
	assert.Empty(t, f.inFlight.of, "released all the same")

	to.set(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{},
			ContentLength: maxBytes + 1, Request: r}, nil
	})
	refused := read(f, newRead(t.Context(), queue))
	assert.Equal(t, http.StatusServiceUnavailable, refused.Code)
	assert.Contains(t, refused.Body.String(), "answers with more than 16777216 bytes, which is not passed on")
	_, err := f.ask(t.Context())
	assert.ErrorIs(t, err, errTooLarge)
}

// stalled sends a part of its body, and then nothing.
type stalled struct {
	ctx  context.Context
	sent bool
}

func (s *stalled) Read(p []byte) (int, error) {
	if !s.sent {
		s.sent = true
		return copy(p, "{"), nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
func (s *stalled) Close() error { return nil }

func TestAnswersThatStallAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newNetwork(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &stalled{ctx: r.Context()},
				ContentLength: -1, Request: r}, nil
		})
		f, registry := forwarderTo(to)
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{})
		for range maxFailures {
			assert.PanicsWithValue(t, http.ErrAbortHandler, func() { read(f, newRead(ctx, queue)) })
		}
		assert.InDelta(t, maxFailures, requests(t, registry, resultTimeout), 0)
		assert.Contains(t, read(f, newRead(ctx, queue)).Body.String(), "no answer within 5s", "open")
	})
}
