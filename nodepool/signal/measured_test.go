package signal

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/nodequery/nodequerytest"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/plan"
)

// same returns equal series for the names of n workers.
func same(n int, at func(t time.Time) float64) (all []fakeSeries) {
	for i := range n {
		all = append(all, load(fmt.Sprint("w", i), at))
	}
	return all
}

func TestMeasuredImmediatelyAfterStart(t *testing.T) {
	f := &fakeProm{}
	f.set(append(same(3, constant(0.5)), load("other", constant(9)))...)
	got := named(t, cpuOf(t, f).Observe(t.Context(), Observation{Now: start, Workers: workers(3, 0), Expected: 3}), CPU)
	assert.Equal(t, plan.Signal{
		Name: CPU, WithPending: true, Known: true, Needs: 3, Now: 0.5, Predicted: 0.5,
		Threshold: 0.7, Margin: 0.3, Horizon: 72 * time.Second,
		Desired: 3, For: 3 * time.Minute, Fits: 3, CPU: true,
	}, got)
}

func TestOnlyNewSamplesAreQueried(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	s := cpuOf(t, f)
	for i := range 20 {
		s.Observe(
			t.Context(),
			Observation{Now: start.Add(time.Duration(i) * 5 * time.Second), Workers: workers(3, 0), Expected: 3},
		)
	}
	queries := f.queries()
	require.Len(t, queries, 7, "one in each interval")
	floored := start.Truncate(interval)
	assert.Equal(
		t,
		nodequerytest.Query{Expr: "load", Start: floored.Add(-15*time.Minute - interval), End: floored, Step: interval},
		queries[0],
	)
	for i, q := range queries[1:] {
		end := floored.Add(time.Duration(i+1) * interval)
		assert.Equal(t, nodequerytest.Query{Expr: "load", Start: end.Add(-3 * interval), End: end, Step: interval}, q)
	}
}

func TestNodesOfLabels(t *testing.T) {
	tests := map[string]struct {
		label string
		known bool
	}{
		"its name":                 {"w0", true},
		"its name with a port":     {"w0:9100", true},
		"its address":              {"10.0.0.1", true},
		"its address with a port":  {"10.0.0.1:9100", true},
		"its hostname with a port": {"ip-10-0-0-1.ec2.internal:9100", true},
		"IPv6 with a port":         {"[fd00::1]:9100", true},
		"an address of two nodes":  {"192.168.0.1:9100", false},
		"another address":          {"10.0.0.10:9100", false},
		"a longer name":            {"w01", false},
		"nothing":                  {"", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeProm{}
			f.set(load(test.label, constant(0.5)))
			list := workers(1, 0)
			list[0].Object.Status.Addresses = []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"},
				{
					Type:    corev1.NodeHostName,
					Address: "ip-10-0-0-1.ec2.internal",
				}, {Type: corev1.NodeExternalIP, Address: "192.168.0.1"},
			}
			other := worker("other", start.Add(-time.Minute), 0)
			other.Object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.168.0.1"}}
			got := named(
				t,
				cpuOf(
					t,
					f,
				).Observe(t.Context(), Observation{Now: start, Workers: list, Leaving: []cluster.Node{other}, Expected: 1}),
				CPU,
			)
			assert.Equal(t, test.known, got.Known, got.Err)
		})
	}
}

// A forecast recommends workers before the load needs them, the present load alone only afterwards.
func TestForecastIsAheadOfARamp(t *testing.T) {
	const first, perNode = 0.3, 0.7
	ramp := func(now time.Time) float64 { // per node of four, from 1.2 nodes to 7.2 in half an hour
		return first + 1.5*min(1, max(0, now.Sub(start).Minutes()-10)/30)
	}
	firstRise := func(disabled bool) int {
		f := &fakeProm{}
		f.set(same(4, ramp)...)
		o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
		o.Forecast.Disabled = disabled
		got := replay(
			t,
			newSet(t, o),
			CPU,
			160,
			func(int, time.Time) Observation { return Observation{Workers: workers(4, 0), Expected: 4} },
		)
		for i, s := range got {
			require.True(t, s.Known, s.Err)
			if s.Desired > 4 {
				assert.Equal(t, start.Add(time.Duration(i)*interval), s.Since)
				return i
			}
		}
		return math.MaxInt
	}
	crossing := 0 // the tick at which the load is above the threshold
	for ramp(start.Add(time.Duration(crossing)*interval)) <= perNode {
		crossing++
	}
	ahead, present := firstRise(false), firstRise(true)
	assert.LessOrEqual(t, ahead, crossing-3)
	assert.GreaterOrEqual(t, present, crossing)
	t.Logf("above the threshold at tick %d: the forecast rises at %d, the present load at %d", crossing, ahead, present)
}

func TestInvalidAnswers(t *testing.T) {
	status := func(code int, body string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	series := func(all ...fakeSeries) func(f *fakeProm) { return func(f *fakeProm) { f.set(all...) } }
	three := func(v ...fakeSeries) []fakeSeries { return append(same(3, constant(0.5))[len(v):], v...) }
	answer := func(code int, body string) func(f *fakeProm) {
		return func(f *fakeProm) { f.answer(status(code, body)) }
	}
	tests := map[string]struct {
		corrupt func(f *fakeProm)
		want    string // part of the error once the previous samples are stale; "" = none
	}{
		"one node is missing": {series(three()[1:]...), ""},
		"one node has NaN":    {series(three(load("w0", constant(math.NaN())))...), ""},
		"one node has +Inf":   {series(three(load("w0", constant(math.Inf(1))))...), ""},
		"two nodes are missing": {
			series(three()[2:]...),
			`more than half of the workers have no fresh samples: 2 of 3, such as "w0", "w1"`,
		},
		"others' series only": {
			series(load("x", constant(1)), load("y", constant(2))),
			`3 of 3, such as "w0", "w1", "w2"; the label node names other nodes: "x", "y"`,
		},
		"no series": {series(), "more than half of the workers have no fresh samples"},
		"all NaN": {
			series(same(3, constant(math.NaN()))...),
			"more than half of the workers have no fresh samples",
		},
		"a node twice": {
			series(
				append(three(), fakeSeries{Labels: map[string]string{"node": "w0", "job": "b"}, At: load("", constant(1)).At})...),
			`http://prometheus:9090: query "load": node w0 has {node="w0"} and {job="b", node="w0"} at once: must be one series`,
		},
		"503": {
			answer(503, "<html>go away</html>"),
			"http://prometheus:9090: HTTP status 503 Service Unavailable",
		},
		"an error": {
			answer(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`),
			"many-to-many",
		},
		"refused": {
			answer(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
			`query "load" is rejected: parse error; must be an expression of PromQL`,
		},
		"garbage": {answer(200, "<html>hello</html>"), "the answer is incomplete or not from Prometheus"},
		"cut off": {
			answer(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"w0"},"values":[[1`),
			"the answer is incomplete or not from Prometheus",
		},
		"a scalar": {
			answer(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`),
			"the answer is a scalar",
		},
		"histograms": {
			answer(
				200,
				`{"status":"success","data":{"resultType":"matrix","result":[`+
					`{"metric":{"node":"w0"},"histograms":[[1,{"count":"1","sum":"1"}]]}]}}`,
			),
			"returns native histograms: must return numbers",
		},
		"far too much": {
			answer(200, `{"status":"success","data":{"resultType":"matrix","result":[`+string(make([]byte, 1<<20))),
			"the answer is longer than 1048576 bytes",
		},
		"of another time": {
			answer(
				200,
				`{"status":"success","data":{"resultType":"matrix","result":[`+
					`{"metric":{"node":"w0"},"values":[[1,"5"],[99999999999,"7"]]}]}}`,
			),
			"more than half of the workers",
		},
		"the query is lost": {
			func(f *fakeProm) { f.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) },
			"http://prometheus:9090: ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeProm{}
			f.set(same(3, constant(0.5))...)
			s := newSet(t, asking(safe{f}, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
			got := replay(t, s, CPU, 30, func(i int, _ time.Time) Observation {
				switch i {
				case 10:
					test.corrupt(f)
				case 20:
					f.set(same(3, constant(0.5))...)
				}
				return Observation{Workers: workers(3, 0), Expected: 3}
			})
			for i, x := range got {
				if i >= 14 && i < 20 && test.want != "" {
					require.False(t, x.Known, i)
					require.Contains(t, x.Err, test.want)
					continue
				}
				if i >= 10 && i < 14 && !x.Known {
					continue // the previous samples may or may not be fresh enough
				}
				require.True(t, x.Known, "%d: %s", i, x.Err)
				require.InDelta(t, 0.5, x.Now, 1e-9, i)
				require.Equal(t, 3, x.Desired)
			}
			assert.True(t, got[11].Known, "fresh samples are still used: %s", got[11].Err)
		})
	}
}

// A new process does not know the load of silent workers: with half of four it sees half of the load. A process that
// has seen samples of them assumes that load for the length of the window.
func TestSilentWorkers(t *testing.T) {
	f := &fakeProm{}
	all := same(4, constant(0.5))
	f.set(all[2:]...)
	s := newSet(t, asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
	got := replay(t, s, CPU, 40, func(i int, _ time.Time) Observation {
		switch i {
		case 15:
			f.set(all...)
		case 30:
			f.set(all[1:]...)
		}
		return Observation{Workers: workers(4, 100), Expected: 4}
	})
	assert.Contains(t, got[14].Silent, `2 of 4, such as "w0", "w1", have had no samples for `)
	assert.True(t, got[14].Known, "the others may still recommend more: %s", got[14].Err)
	assert.Empty(t, got[29].Silent)
	assert.Empty(t, got[39].Silent, "two and a half minutes are a gap")
	assert.InDelta(t, 0.5, got[39].Now, 0.01)
}

// safe is a transport whose handler may abort, like a server's.
type safe struct{ *fakeProm }

func (s safe) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	return s.fakeProm.RoundTrip(r)
}

// A slow server delays a tick by at most a second; a late answer is used in the next tick.
func TestSlowServer(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		known bool
	}{
		"answers within the tick":   {500 * time.Millisecond, true},
		"answers after the tick":    {4 * time.Second, true},
		"answers after the timeout": {6 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeProm{}
				f.set(same(3, constant(0.5))...)
				s := newSet(t, asking(slow{f, test.takes}, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
				since := time.Now().Add(-time.Hour)
				var last plan.Signal
				for range 10 {
					at := time.Now()
					last = named(t, s.Observe(t.Context(), Observation{Now: at, Workers: workersSince(3, since), Expected: 3}), CPU)
					assert.LessOrEqual(t, time.Since(at), awaitTimeout)
					time.Sleep(time.Until(at.Add(interval)))
				}
				assert.Equal(t, test.known, last.Known, last.Err)
				if !test.known {
					assert.Contains(t, last.Err, "http://prometheus:9090: no complete answer within 5s")
				}
			})
		})
	}
}

// slow delays every answer.
type slow struct {
	*fakeProm
	takes time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.takes):
		return s.fakeProm.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func workersSince(n int, since time.Time) []cluster.Node {
	out := workers(n, 0)
	for i := range out {
		out[i].ReadySince = since
	}
	return out
}

// Two nodes that were gone before the process began had half of the load; without them the load would seem to rise.
func TestHistoryOfNodesThatWereGone(t *testing.T) {
	gone := start.Add(-5 * time.Minute)
	f := &fakeProm{}
	f.set(append(same(2, func(now time.Time) float64 {
		if now.Before(gone) {
			return 0.3
		}
		return 0.6
	}), load("gone-1", constant(0.3)).Until(gone), load("gone-2", constant(0.3)).Until(gone))...)
	got := named(t, cpuOf(t, f).Observe(t.Context(), Observation{Now: start, Workers: workers(2, 0), Expected: 2}), CPU)
	assert.True(t, got.Known, got.Err)
	assert.InDelta(t, 0.6, got.Predicted, 1e-9)
	assert.Equal(t, 2, got.Desired)
}

func TestLoadOfNodesThatLeave(t *testing.T) {
	f := &fakeProm{}
	s := cpuOf(t, f)
	leaves, gone := start.Add(20*interval), start.Add(30*interval)
	f.set(append(same(3, func(now time.Time) float64 {
		if now.Before(gone) {
			return 0.45
		}
		return 0.6
	}), load("x", constant(0.45)).Until(gone))...)
	got := replay(t, s, CPU, 60, func(_ int, now time.Time) Observation {
		o := Observation{Workers: workers(3, 0), Expected: 3}
		switch x := worker("x", start.Add(-time.Hour), 0); {
		case now.Before(leaves):
			o.Workers = append(o.Workers, x)
		case now.Before(gone):
			o.Leaving = []cluster.Node{x}
		}
		return o
	})
	for i, x := range got {
		require.True(t, x.Known, x.Err)
		require.InDelta(t, 0.6, x.Predicted, 0.04, i)
	}
}

func TestPoolWithoutWorkers(t *testing.T) {
	f := &fakeProm{}
	s := cpuOf(t, f)
	got := named(t, s.Observe(t.Context(), Observation{Now: start, Demand: nodes(1.5)}), CPU)
	assert.True(t, got.Known, got.Err)
	assert.Equal(t, 2, got.Desired)
	got = named(t, s.Observe(t.Context(), Observation{Now: start.Add(interval)}), CPU)
	assert.True(t, got.Known, got.Err)
	assert.Zero(t, got.Desired)
	assert.Zero(t, got.Fits)
}

func TestClockSetBack(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
	o.Signals = append(o.Signals, Config{Name: Requests, Threshold: 0.7})
	s := newSet(t, o)
	for i := range 100 {
		now := start.Add(time.Duration(i) * interval)
		if i >= 50 {
			now = now.Add(-10 * time.Minute)
		}
		all := s.Observe(t.Context(), Observation{Now: now, Workers: workers(3, 2000), Expected: 3})
		if i < 5 {
			continue
		}
		for _, name := range []string{CPU, Requests} {
			x := named(t, all, name)
			require.True(t, x.Known, "%s %d: %s", name, i, x.Err)
			require.InDelta(t, 0.5, x.Predicted, 1e-9)
		}
	}
}

// TestOverTheWire has a real server that resets connections, sends half an answer, redirects and stops.
func TestOverTheWire(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	server := httptest.NewServer(f)
	defer server.Close()
	o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
	o.DefaultAddress, o.Servers = server.URL+"/", promapi.NewClients(
		promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 20, UserAgent: "foresail"},
	)
	s := newSet(t, o)
	i := 0
	observe := func() plan.Signal {
		i++
		return named(
			t,
			s.Observe(
				t.Context(),
				Observation{Now: start.Add(time.Duration(i) * interval), Workers: workers(3, 0), Expected: 3},
			),
			CPU,
		)
	}
	broken := map[string]func(w http.ResponseWriter, r *http.Request){
		"reset": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		},
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"status":"success",`)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
		},
	}
	for name, answer := range broken {
		require.True(t, observe().Known)
		f.answer(answer)
		for range 3 {
			observe()
		}
		got := observe()
		assert.False(t, got.Known, name)
		assert.Contains(t, got.Err, server.URL, name)
		f.set(same(3, constant(0.5))...)
		got = observe()
		require.True(t, got.Known, "%s: %s", name, got.Err)
	}
	server.Close()
	for range 4 {
		observe()
	}
	assert.Contains(t, observe().Err, "connection refused")
}

// Queries end with the pool's context, and Observe does not wait for them afterwards.
func TestQueriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(
			t,
			asking(slow{&fakeProm{}, time.Hour}, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"),
		)
		ctx, cancel := context.WithCancel(t.Context())
		o := Observation{Now: time.Now(), Workers: workers(1, 0), Expected: 1}
		s.Observe(ctx, o)
		query := s.sources[0].(*measured).pending
		require.NotNil(t, query)
		cancel()
		synctest.Wait()
		select {
		case <-query.done:
		default:
			assert.Fail(t, "the query continues")
		}
		at := time.Now()
		assert.False(t, named(t, s.Observe(ctx, o), CPU).Known)
		assert.Equal(t, at, time.Now())
	})
}

// A Node with the name of an earlier one is a new instance.
func TestReusedNodeName(t *testing.T) {
	f := &fakeProm{}
	f.set(append(same(2, constant(0.6)), load("x", func(now time.Time) float64 {
		if now.Before(start.Add(20 * interval)) {
			return 0.6
		}
		return 0.3
	}))...)
	s := cpuOf(t, f)
	got := replay(t, s, CPU, 90, func(i int, _ time.Time) Observation {
		x := worker("x", start.Add(-time.Hour), 0)
		if i >= 20 {
			x = worker("x", start.Add(20*interval-time.Second), 0)
			x.Object.UID = "another"
		}
		return Observation{Workers: append(workers(2, 0), x), Expected: 3}
	})
	for _, x := range got {
		require.True(t, x.Known, x.Err)
	}
	assert.InDelta(t, 0.6, got[19].Now, 1e-9)
	assert.InDelta(t, 0.5, got[89].Now, 0.01)
	assert.Len(t, s.nodes.periods, 3, "the first one is dropped after a window")
}
