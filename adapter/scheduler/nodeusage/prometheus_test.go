package nodeusage

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/nodequery/nodequerytest"
	"github.com/foresail/foresail/internal/promapi"
)

const (
	cpuQuery    = `sum by (node) (rate(cpu[1m]))`
	memoryQuery = `last_over_time(memory[30s])`
)

func of(node string, at func(t time.Time) float64) nodequerytest.Series {
	return nodequerytest.Of(node, at)
}

func constant(v float64) func(time.Time) float64 { return nodequerytest.Constant(v) }

func unavailable(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

const promAddress = "http://prometheus:9090"

func asking(t testing.TB, f http.RoundTripper, nodes func() []nodequery.Node) *Prometheus {
	t.Helper()
	clients := promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 64 << 20, Transport: f})
	api, err := clients.API(promAddress)
	require.NoError(t, err)
	return NewPrometheus(PrometheusOptions{API: api, Address: promAddress, CPUQuery: cpuQuery,
		MemoryQuery: memoryQuery, Nodes: nodes})
}

// healthy is a server that tells of two nodes.
func healthy() *nodequerytest.Server {
	f := &nodequerytest.Server{}
	f.Set(cpuQuery, of("a", constant(2)), of("b", constant(3)))
	f.Set(memoryQuery, of("a", constant(1<<30)), of("b", constant(2<<30)))
	return f
}

func TestForecastsAtOnceAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour + 4*time.Second)
		began := time.Now()
		prom := healthy()
		growing := func(t time.Time) float64 { return 10 + t.Sub(began).Minutes()/2 }
		prom.Set(cpuQuery, of("a", constant(2)), of("b", growing))
		prom.Set(memoryQuery, of("a", constant(1<<30)), of("b", growing))
		f := running(t, Options{Source: asking(t, prom, nil)})
		synctest.Wait()
		loads := f.NodeLoads()
		require.NoError(t, loads.SourceErr)
		require.Len(t, loads.Nodes, 2)
		a, b := loads.Nodes["a"], loads.Nodes["b"]
		assert.Equal(t, time.Minute, a.CPU.Window)
		assert.Equal(t, 30*time.Second, a.Memory.Window, "that it may be from")
		assert.InDelta(t, 2, a.CPU.Predicted, 1e-9)
		assert.InDelta(t, 1<<30, a.Memory.Upper, 1)
		assert.True(t, began.Add(-4*time.Second).Equal(b.CPU.Sampled))
		assert.Equal(t, 124*time.Second, b.CPU.Horizon)
		assert.InDelta(t, 11+0.5*22.5/60, b.CPU.Predicted, 0.01,
			"a rate over a minute lags by half of what it is longer than a step")
		assert.InDelta(t, 11, b.Memory.Predicted, 0.01, "what was found last does not")
	})
}

func TestQueriesOnlyNewSamples(t *testing.T) {
	f := healthy()
	source := asking(t, f, nil)
	now := time.UnixMilli(epoch + 4000).UTC()
	for i := range 4 {
		_, err := source.Read(t.Context(), now.Add(time.Duration(i)*15*time.Second))
		require.NoError(t, err)
	}
	floored := now.Truncate(15 * time.Second)
	want := []nodequerytest.Query{{Expr: cpuQuery, Start: floored.Add(-15*time.Minute - 15*time.Second),
		End: floored, Step: 15 * time.Second}}
	for i := range 3 {
		end := floored.Add(time.Duration(i+1) * 15 * time.Second)
		want = append(want, nodequerytest.Query{Expr: cpuQuery, Start: end.Add(-45 * time.Second),
			End: end, Step: 15 * time.Second})
	}
	assert.Equal(t, want, f.Queries(cpuQuery))
	newest := func() nodequerytest.Query {
		all := f.Queries(cpuQuery)
		return all[len(all)-1]
	}

	f.Instead(cpuQuery, unavailable)
	later := now.Add(5 * time.Minute)
	_, err := source.Read(t.Context(), later)
	require.ErrorContains(t, err, "503")
	f.Set(cpuQuery, of("a", constant(2)))
	readings, err := source.Read(t.Context(), later)
	require.NoError(t, err)
	assert.Equal(t, floored.Add(15*time.Second), newest().Start, "what was missed is requested")
	assert.Len(t, readings, 3)

	_, err = source.Read(t.Context(), now.Add(-time.Hour))
	require.NoError(t, err)
	assert.Equal(t, floored.Add(-time.Hour-15*time.Minute-15*time.Second), newest().Start, "the clock was set back")
}

func TestNodesOfLabels(t *testing.T) {
	nodes := nodesOf("a", "b")
	nodes[0].Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	var known []nodequery.Node
	f := &nodequerytest.Server{}
	f.Set(cpuQuery, of("10.0.0.1:9100", constant(2)), of("b:9100", constant(3)), of("stranger", constant(4)))
	f.Set(memoryQuery, of("a", constant(1)))
	source := asking(t, f, func() []nodequery.Node { return known })
	now := time.UnixMilli(epoch)

	_, err := source.Read(t.Context(), now)
	require.EqualError(t, err, "which Nodes there are is not known yet")
	require.Empty(t, f.Queries(cpuQuery))

	known = nodes
	readings, err := source.Read(t.Context(), now)
	require.NoError(t, err)
	var got []string
	for _, r := range readings {
		got = append(got, fmt.Sprint(r.Node, r.Resource, len(r.Samples), r.Samples[0].V))
	}
	assert.ElementsMatch(t, []string{"acpu62 2", "bcpu62 3", "amemory62 1"}, got)
}

func TestInvalidServerAnswers(t *testing.T) {
	instead := func(code int, body string) func(f *nodequerytest.Server) {
		return func(f *nodequerytest.Server) {
			f.Instead(cpuQuery, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(code)
				_, _ = io.WriteString(w, body)
			})
		}
	}
	series := func(all ...nodequerytest.Series) func(f *nodequerytest.Server) {
		return func(f *nodequerytest.Server) { f.Set(cpuQuery, all...) }
	}
	twice := nodequerytest.Series{Labels: map[string]string{"node": "b", "job": "x"}, At: of("", constant(9)).At}
	for name, test := range map[string]struct {
		lie  func(f *nodequerytest.Server)
		want string   // of the error
		cpu  []string // the nodes of which there is CPU all the same
	}{
		"nothing": {series(),
			"http://prometheus:9090: query \"sum by (node) (rate(cpu[1m]))\" returns no series: must return one for each Node",
			nil},
		"strangers": {series(of("x", constant(1)), of("10.0.0.7:9100", constant(1))),
			`the label node names no Node, but "10.0.0.7:9100", "x": must be names or addresses of Nodes`, nil},
		"no label": {series(nodequerytest.Series{Labels: map[string]string{}, At: of("", constant(1)).At}),
			`the label node names no Node, but ""`, nil},
		"half": {series(of("b", constant(1))), "", []string{"b"}},
		"one is NaN": {series(of("a", func(time.Time) float64 { var z float64; return z / z }), of("b", constant(1))),
			"",
			[]string{"b"}},
		"a node twice": {series(of("a", constant(1)), of("b", constant(1)), twice),
			`of the nodes "b" it has several series, such as {node="b"} and {job="x", node="b"} at once: must be one series`,
			[]string{"a"}},
		"unavailable": {instead(503, ""), "http://prometheus:9090: HTTP status 503 Service Unavailable", nil},
		"refused": {instead(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
			"is rejected: parse error; must be an expression of PromQL", nil},
		"garbage": {instead(200, "<html>"), "the answer is incomplete or not from Prometheus", nil},
		"a scalar": {instead(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`),
			"the answer is a scalar", nil},
		"of other time": {instead(200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"b"},"values":[[1,"5"],[99999999999,"7"]]}]}}`), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			source := asking(t, f, func() []nodequery.Node { return nodesOf("a", "b") })
			test.lie(f)
			readings, err := source.Read(t.Context(), time.UnixMilli(epoch))
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
			var cpu, memory []string
			for _, r := range readings {
				if r.Resource == CPU {
					cpu = append(cpu, r.Node)
				} else {
					memory = append(memory, r.Node)
				}
			}
			slices.Sort(cpu)
			assert.Equal(t, test.cpu, cpu)
			assert.ElementsMatch(t, []string{"a", "b"}, memory, "the other query is heard")
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	f := healthy()
	f.Instead(cpuQuery, unavailable)
	f.Instead(memoryQuery, unavailable)
	readings, err := asking(t, f, nil).Read(t.Context(), time.UnixMilli(epoch))
	require.EqualError(t, err, "http://prometheus:9090: HTTP status 503 Service Unavailable", "said once")
	require.Empty(t, readings)
	require.Equal(t, "status", resultOf(0, err))

	f.Set(cpuQuery)
	_, err = asking(t, f, nil).Read(t.Context(), time.UnixMilli(epoch))
	require.ErrorContains(t, err,
		"returns no series: must return one for each Node; http://prometheus:9090: HTTP status 503")
}

// The same over a network.
func TestOverTheWire(t *testing.T) {
	f := healthy()
	server := httptest.NewServer(f)
	defer server.Close()
	api, err := promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 20}).API(server.URL)
	require.NoError(t, err)
	source := NewPrometheus(PrometheusOptions{API: api, Address: server.URL, CPUQuery: cpuQuery,
		MemoryQuery: memoryQuery})
	readings, err := source.Read(t.Context(), time.UnixMilli(epoch))
	require.NoError(t, err)
	require.Len(t, readings, 4)
	server.Close()
	_, err = source.Read(t.Context(), time.UnixMilli(epoch))
	require.ErrorContains(t, err, "connection refused")
	require.Equal(t, 1, strings.Count(err.Error(), "connection refused"))
}

func TestLookBack(t *testing.T) {
	for expr, want := range map[string]time.Duration{
		`sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[1m]))`: time.Minute,
		`sum by (node) (container_memory_working_set_bytes{id="/"})`:          0,
		`last_over_time(x[90])`:                      90 * time.Second,
		`irate(x[90s]) + rate(y{a=~"[0-9]m"}[ 2m ])`: 2 * time.Minute,
		`max_over_time(rate(x[1m])[1h30m:30s])`:      90 * time.Minute,
		`x[1y2w]`:                                    379 * 24 * time.Hour,
		`x["5m"]`:                                    0,
	} {
		assert.Equal(t, want, LookBack(expr), expr)
	}
}
