package prometheus

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

const rejected = `query "load{namespace=\"shop\"}" returns only series of other namespaces (2), which are rejected: the server must apply the matchers of a query`

func TestReportsUnusableAnswers(t *testing.T) {
	nan := math.NaN()
	histogram := fakeSeries{labels: map[string]string{"pod": "b", "namespace": "shop"}}
	tests := map[string]struct {
		answer   func() []fakeSeries
		trouble  string
		failures map[string]string // by pod
		a        []float64
	}{
		"all is well": {
			answer: func() []fakeSeries { return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4)} },
			a:      []float64{1, 2},
		},
		"nothing": {
			answer:  func() []fakeSeries { return nil },
			trouble: `query "load{namespace=\"shop\"}" returns nothing for the last 12s: is the metric scraped, and do the labels match?`,
		},
		"no label for the pod": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("", 1).label("pod", "").label("kubernetes_pod", "a"),
					pod("", 2).label("pod", "")}
			},
			trouble: `query "load{namespace=\"shop\"}" returns series without the label "pod", so their pods are unknown; they have "kubernetes_pod", "namespace"`,
		},
		"no labels at all": {
			answer: func() []fakeSeries {
				return []fakeSeries{{samples: pod("", 1).samples},
					pod("", 1).label("pod", "").label("namespace", "bank")}
			},
			trouble: rejected,
		},
		"no label for the pod of some": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4), pod("", 5, 6).label("pod", "").label("job", "x")}
			},
			trouble: `query "load{namespace=\"shop\"}": 1 of 3 series do not have the label "pod", so their pods are unknown; they have "job", "namespace"`,
			a:       []float64{1, 2},
		},
		"other namespaces": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2).label("namespace", "bank"), pod("b", 3, 4).label("namespace", "gym")}
			},
			trouble: rejected,
		},
		"another namespace beside": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2), pod("a", 8, 9).label("namespace", "bank"), pod("b", 3, 4),
					pod("x", 3).label("pod", "").label("namespace", "bank")}
			},
			a: []float64{1, 2},
		},
		"no label for the namespace": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2).label("namespace", ""), pod("b", 3, 4).label("namespace", "")}
			},
			trouble: rejected,
		},
		"other pods": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("v", 1), pod("w", 1), pod("x", 1), pod("y", 1), pod("z", 1)}
			},
			trouble: `query "load{namespace=\"shop\"}" returns no series of the target's pods, such as "a"; pod is "v", "w", "x", 2 more`,
		},
		"a pod without series": {
			answer:   func() []fakeSeries { return []fakeSeries{pod("a", 1, 2)} },
			failures: map[string]string{"b": `no series of the query has pod="b" in the last 12s`},
			a:        []float64{1, 2},
		},
		"duplicates": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4).label("container", "main"),
					pod("b", 5, 6).label("container", "proxy").label("job", "x")}
			},
			failures: map[string]string{
				"b": `the pod has 2 series, which differ in container ("main", "proxy"), job ("", "x"): must be one`},
			a: []float64{1, 2},
		},
		"duplicates that differ in nothing": {
			answer:   func() []fakeSeries { return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4), pod("b", 3, 4)} },
			failures: map[string]string{"b": `the pod has 2 series, which differ in nothing: must be one`},
			a:        []float64{1, 2},
		},
		"duplicates with and without a namespace": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4), pod("b", 5, 6).label("namespace", "")}
			},
			a: []float64{1, 2},
		},
		"duplicates of a sample each": {
			answer: func() []fakeSeries {
				b := pod("b")
				return []fakeSeries{pod("a", 1, 2),
					b.label("container", "x").with(time.Second, 600*time.Millisecond, 3), b.with(time.Second, 0, 4)}
			},
			failures: map[string]string{"b": `the pod has 2 series, which differ in container ("", "x"): must be one`},
			a:        []float64{1, 2},
		},
		"only duplicates": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, 2), pod("a", 3, 4).label("c", "x"), pod("b", 3, 4),
					pod("b", 3, 4).label("c", "x")}
			},
			trouble: `query "load{namespace=\"shop\"}" returns no finite number for any pod`,
			failures: map[string]string{
				"a": `the pod has 2 series, which differ in c ("", "x"): must be one`,
				"b": `the pod has 2 series, which differ in c ("", "x"): must be one`,
			},
		},
		"duplicates of strangers": {
			answer: func() []fakeSeries {
				z := pod("z").with(time.Second, 10*time.Second, 3, 4)
				return []fakeSeries{pod("a", 1, 2), pod("b", 3, 4), z,
					pod("z").with(time.Second, 10*time.Second, 3, 4).label("job", "x")}
			},
			a: []float64{1, 2},
		},
		"one after the other": {
			answer: func() []fakeSeries {
				a := pod("a")
				return []fakeSeries{a.label("container_id", "2").with(time.Second, 0, 3, 4),
					a.with(time.Second, 4*time.Second, 1, 2), pod("b", 1, 1)}
			},
			a: []float64{1, 2, 3, 4},
		},
		"NaN and infinite": {
			answer: func() []fakeSeries {
				return []fakeSeries{pod("a", 1, nan, math.Inf(1), 2), pod("b", 3, nan)}
			},
			failures: map[string]string{
				"a": "2 of 4 new readings are no finite numbers, the last of them is +Inf",
				"b": "1 of 2 new readings are no finite numbers, the last of them is NaN",
			},
			a: []float64{1, 2},
		},
		"only NaN": {
			answer:  func() []fakeSeries { return []fakeSeries{pod("a", nan, nan), pod("b", nan)} },
			trouble: `query "load{namespace=\"shop\"}" returns no finite number for any pod`,
			failures: map[string]string{
				"a": "2 of 2 new readings are no finite numbers, the last of them is NaN",
				"b": "1 of 1 new readings are no finite numbers, the last of them is NaN",
			},
		},
		"out of order": {
			answer: func() []fakeSeries {
				a := pod("a", 1, 2, 3, 4)
				a.samples[0], a.samples[2] = a.samples[2], a.samples[0]
				a.samples = append(a.samples, a.samples[1])
				return []fakeSeries{a, pod("b", 1, 1)}
			},
			a: []float64{1, 2, 3, 4},
		},
		"two values at once": {
			answer: func() []fakeSeries {
				b := pod("b", 1, 2)
				b.samples = append(b.samples, b.samples[0])
				b.samples[2].V = 7
				return []fakeSeries{pod("a", 1, 2), b}
			},
			failures: map[string]string{"b": "its series has two values for one time: 1 and 7"},
			a:        []float64{1, 2},
		},
		"no samples": {
			answer:   func() []fakeSeries { return []fakeSeries{pod("a", 1, 2), histogram} },
			failures: map[string]string{"b": `no series of the query has pod="b" in the last 12s`},
			a:        []float64{1, 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := matrix(test.answer()...)
				sink := once(t, saying(http.StatusOK, body), fleetOf("a", "b"))
				want := test.trouble
				if want != "" {
					want = address + ": " + want
				}
				assert.Equal(t, want, sink.LastSourceError())
				for _, pod := range []string{"a", "b"} {
					assert.Equal(t, test.failures[pod], sink.failure(pod), pod)
				}
				assert.Equal(t, test.a, sink.values("a"))
				if test.failures["b"] != "" && name != "NaN and infinite" {
					assert.Empty(t, sink.of("b"))
				}
			})
		})
	}
}

func TestNativeHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := strings.Replace(matrix(pod("a", 1, 2), pod("b", 3)), `"values":[[`, `"histograms":[[`, 2)
		body = strings.Replace(body, `"histograms":[[`, `"values":[[`, 1)
		body = strings.Replace(body, `,"3"]]}`, `,{"count":"1","sum":"2","buckets":[[0,"1","2","1"]]}]]}`, 1)
		sink := once(t, saying(http.StatusOK, body), fleetOf("a", "b"))
		assert.Empty(t, sink.LastSourceError())
		assert.Equal(t, "its samples are native histograms: must be numbers", sink.failure("b"))
		assert.Equal(t, []float64{1, 2}, sink.values("a"))
		assert.Empty(t, sink.of("b"))
	})
}

const acceptedHere = `must be a plain selector such as nodejs_eventloop_utilization{container="checkout"} (for the rate of a counter, with type Counter; for an expression, that of a recording rule whose series have the labels pod and namespace)`

func TestFailedQueries(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   string
		result string
	}{
		"an expression": {
			400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:1: parse error: ranges only allowed for vector selectors"}`,
			`query "load{namespace=\"shop\"}" is rejected: invalid parameter "query": 1:1: parse error: ranges only allowed for vector selectors; ` + acceptedHere, "query",
		},
		"another type": {
			200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[1,"1"]}]}}`,
			`query "load{namespace=\"shop\"}": the answer is a vector; ` + acceptedHere, "query",
		},
		"a scalar": {
			200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`,
			`query "load{namespace=\"shop\"}": the answer is a scalar; ` + acceptedHere, "query",
		},
		"an unknown type": {
			200, `{"status":"success","data":{"resultType":"tensor","result":[1,"1"]}}`,
			"the answer is incomplete or not from Prometheus", "content",
		},
		"too much for the server": {
			422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`,
			"execution: query processing would load too many samples into memory in query execution", "status",
		},
		"not permitted": {403, "<html>the secret of the intranet</html>", "HTTP status 403 Forbidden", "status"},
		"unauthorized":  {401, "Unauthorized\n", "HTTP status 401 Unauthorized", "status"},
		"not found":     {404, "404 page not found", "HTTP status 404 Not Found", "status"},
		"overloaded": {
			503, `{"status":"error","errorType":"timeout","error":"query timed out in\n expression evaluation"}`,
			"HTTP status 503 Service Unavailable: query timed out in expression evaluation", "status"},
		"a long message": {500, `{"status":"error","error":"` + strings.Repeat("ü", 1000) + `"}`,
			"HTTP status 500 Internal Server Error: " + strings.Repeat("ü", 300) + "…", "status"},
		"a strange status": {
			599, "", "server error: 599", "status",
		},
		"an error that is a success": {200, `{"status":"error","errorType":"","error":""}`,
			"the answer is incomplete or not from Prometheus", "content"},
		"a success that is an error": {400, `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
			"the answer is incomplete or not from Prometheus", "content"},
		"garbage": {200, "<html>the secret of the intranet</html>",
			"the answer is incomplete or not from Prometheus", "content"},
		"nothing at all":  {200, "", "the answer is incomplete or not from Prometheus", "content"},
		"an empty object": {200, "{}", "the answer is incomplete or not from Prometheus", "content"},
		"no content":      {204, "", "the answer is incomplete or not from Prometheus", "content"},
		"a broken value": {200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1,"one"]]}]}}`,
			"the answer is incomplete or not from Prometheus", "content"},
		"a broken time": {200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[["x","1"]]}]}}`,
			"the answer is incomplete or not from Prometheus", "content"},
		"a time out of bounds": {200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"a"},"values":[[253402300800,"1"]]}]}}`, `query "load{namespace=\"shop\"}": a sample is dated outside of the years 1970 to 9999`, "content"},
		"a time that overflows": {200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"a"},"values":[[9223372036854775807,"1"]]}]}}`, `query "load{namespace=\"shop\"}": a sample is dated outside of the years 1970 to 9999`, "content"},
		"half of an answer": {200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1,"1"]]}`,
			"the answer is incomplete or not from Prometheus", "content"},
		"it goes in circles": {308, "/api/v1/query", "it redirects more than 3 times", "connection"},
		"it sends away": {307, "http://other:9090/api/v1/query",
			`it redirects to "http://other:9090", which is not followed: must stay at the server's own address`,
			"status"},
		"it sends to another port": {307, "http://prometheus:9091/api/v1/query",
			`it redirects to "http://prometheus:9091", which is not followed: must stay at the server's own address`,
			"status"},
		"it sends to a subdomain": {307, "http://evil.prometheus:9090/",
			`it redirects to "http://evil.prometheus:9090", which is not followed: must stay at the server's own address`,
			"status"},
		"it sends to a secure server": {307, "https://prometheus:9090/",
			`it redirects to "https://prometheus:9090", which is not followed: must stay at the server's own address`,
			"status"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				server := saying(test.status, test.body)
				s := running(t, Options{Registerer: registry}, redirecting{server, test.body})
				sink := newRecorder()
				require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a"), sink))
				sourcetest.Pass(1500 * time.Millisecond)
				assert.Equal(t, address+": "+test.want, sink.LastSourceError())
				assert.Empty(t, sink.All())
				assert.NotZero(t, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds",
					test.result))
				assert.Zero(t, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds",
					"success"))
				for _, q := range server.queries() {
					assert.Equal(t, "prometheus:9090", q.host)
				}
			})
		})
	}
}

// redirecting adds a location to redirects.
type redirecting struct {
	next http.RoundTripper
	to   string
}

func (r redirecting) RoundTrip(q *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(q)
	if err == nil && response.StatusCode/100 == 3 {
		response.Header.Set("Location", r.to)
	}
	return response, err
}

// endless is a body that never ends, and counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, strings.Repeat(" ", len(p))), nil
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &endless{}
		broken := io.MultiReader(strings.NewReader(matrix(pod("a", 1))[:50]), failing{})
		many := newServer(func(n int, _ asked) (int, io.Reader, error) {
			switch n {
			case 3:
				return http.StatusOK, strings.NewReader(`{"status":"success","data":{"resultType":"matrix","result":[` +
					strings.Repeat("{},", 100)), nil
			case 0:
				return http.StatusOK, strings.NewReader(matrix(pod("a", 1), pod("b", 1), pod("c", 1))), nil
			case 1:
				return http.StatusOK, body, nil
			case 2:
				return http.StatusOK, broken, nil
			}
			return http.StatusOK, strings.NewReader(matrix(pod("a", 1), pod("b", 1))), nil
		})
		registry := prometheus.NewRegistry()
		s := running(t, Options{MaxSeries: 2, MaxBytes: 1000, Registerer: registry}, many)
		sink := newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleetOf("a", "b"), sink))
		sourcetest.Pass(20 * time.Second)
		assert.Equal(t, []string{
			`http://prometheus:9090: query "load{namespace=\"shop\"}" returns more than 2 series; it must select less`,
			`http://prometheus:9090: the answer is longer than 1000 bytes; the query must select less`,
			`http://prometheus:9090: the answer is incomplete or not from Prometheus`,
			`http://prometheus:9090: the answer has more than 48 objects; the query must select less`,
		}, sink.SourceErrors()[:4])
		assert.LessOrEqual(t, body.read, 2000)
		assert.Empty(t, sink.LastSourceError(), "recovered")
		assert.Len(t, sink.of("a"), len(sink.of("b")))
		assert.NotEmpty(t, sink.of("a"))
		assert.Equal(t, 3.0, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds", "limit"))
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Pods that have just started are not missed yet, and without pods nothing is.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), constant, "a"))
		s := running(t, Options{}, server)
		fleet, sink := sourcetest.NewFleet(), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
		sourcetest.Pass(5 * time.Second)
		assert.Empty(t, sink.LastSourceError(), "scaled to zero")
		assert.Empty(t, sink.of("a"))
		young := instance("b")
		young.Start = time.Now()
		fleet.Set(young)
		sourcetest.Pass(2 * time.Second)
		assert.Empty(t, sink.LastSourceError())
		sourcetest.Pass(4 * time.Second)
		assert.Contains(t, sink.LastSourceError(), `returns no series of the target's pods, such as "b"; pod is "a"`)
		assert.Empty(t, sink.failure("b"), "it is the query")
		fleet.Set(young, instance("a"))
		sourcetest.Pass(2 * time.Second)
		assert.Empty(t, sink.LastSourceError())
		assert.Equal(t, `no series of the query has pod="b" in the last 3s`, sink.failure("b"))
		young.Start = time.Now()
		said := len(sink.Failures("uid-b"))
		fleet.Set(young, instance("a"))
		sourcetest.Pass(2 * time.Second)
		assert.Len(t, sink.Failures("uid-b"), said)
	})
}

// An answer that the server warns of is used, but not taken for whole.
func TestPartialAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		whole := answering(growing(began, constant, "a", "b"))
		part := answering(growing(began, constant, "a"))
		server := newServer(func(n int, q asked) (int, io.Reader, error) {
			if time.Since(began) > 10*time.Second {
				return whole.answer(n, q)
			}
			status, body, err := part.answer(n, q)
			text, _ := io.ReadAll(body)
			return status, strings.NewReader(strings.Replace(string(text), `"status":`,
				`"warnings":["store 2 is down"],"infos":["x"],"status":`, 1)), err
		})
		registry := prometheus.NewRegistry()
		s := running(t, Options{Registerer: registry}, server)
		sink := newRecorder()
		c := gauge()
		c.Window = 30 * time.Second
		require.NoError(t, s.Set(key("pm"), c, fleetOf("a", "b"), sink))
		sourcetest.Pass(2 * time.Second)
		assert.Equal(t, `no series of the query has pod="b" in the last 32s; the server warns: store 2 is down`,
			sink.failure("b"))
		assert.LessOrEqual(t, len(sink.of("a")), 5, "no history that may lack pods")
		sourcetest.Pass(18 * time.Second)
		assert.GreaterOrEqual(t, len(sink.of("b")), 20)
		inOrder(t, sink.of("a"), len(sink.of("a")), time.Second)
		assert.Less(t, len(sink.of("a")), 25)
		assert.Equal(t, 3, server.spans()[len(server.spans())-1])
		assert.NotZero(t, sourcetest.Gathered(t, registry, "foresail_prometheus_query_duration_seconds", "partial"))
	})
}

func TestInstancesOfOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(growing(time.Now(), func(_ string, second int) float64 { return float64(second) }, "a"))
		s := running(t, Options{}, server)
		one := instance("a")
		fleet, sink := sourcetest.NewFleet(one), newRecorder()
		require.NoError(t, s.Set(key("pm"), gauge(), fleet, sink))
		sourcetest.Pass(10 * time.Second)
		one.End = time.Now()
		two := podtracker.Instance{ID: "uid-a2", Pod: key("a"), Start: time.Now().Add(2500 * time.Millisecond)}
		fleet.Set(one)
		sourcetest.Pass(2500 * time.Millisecond)
		fleet.Set(one, two)
		sourcetest.Pass(5 * time.Second)
		assert.Equal(t, 12.0, sink.values("a")[len(sink.of("a"))-1])
		assert.Equal(t, []float64{13, 14, 15}, sink.values("a2")[:3])
	})
}
