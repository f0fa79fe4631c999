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

// same has n workers with the names that workers gives them carry the same.
func same(n int, at func(t time.Time) float64) (all []fakeSeries) {
	for i := range n {
		all = append(all, load(fmt.Sprint("w", i), at))
	}
	return all
}

func TestMeasuredAtOnceAfterAStart(t *testing.T) {
	f := &fakeProm{}
	f.set(append(same(3, constant(0.5)), load("stranger", constant(9)))...)
	said := named(t, cpuOf(t, f).Observe(t.Context(), Observation{Now: began, Workers: workers(3, 0), Expected: 3}), CPU)
	assert.Equal(t, plan.Signal{
		Name: CPU, WithPending: true, Known: true, Needs: 3, Now: 0.5, Predicted: 0.5, Threshold: 0.7, Margin: 0.3, Horizon: 72 * time.Second,
		Want: 3, For: 3 * time.Minute, Fits: 3, CPU: true,
	}, said)
}

func TestOnlyWhatIsNewIsAskedFor(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	s := cpuOf(t, f)
	for i := range 20 {
		s.Observe(t.Context(), Observation{Now: began.Add(time.Duration(i) * 5 * time.Second), Workers: workers(3, 0), Expected: 3})
	}
	queries := f.queries()
	require.Len(t, queries, 7, "one in each interval")
	floored := began.Truncate(interval)
	assert.Equal(t, nodequerytest.Query{Expr: "load", Start: floored.Add(-15*time.Minute - interval), End: floored, Step: interval}, queries[0])
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
				{Type: corev1.NodeHostName, Address: "ip-10-0-0-1.ec2.internal"}, {Type: corev1.NodeExternalIP, Address: "192.168.0.1"},
			}
			other := worker("other", began.Add(-time.Minute), 0)
			other.Object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.168.0.1"}}
			said := named(t, cpuOf(t, f).Observe(t.Context(), Observation{Now: began, Workers: list, Leaving: []cluster.Node{other}, Expected: 1}), CPU)
			assert.Equal(t, test.known, said.Known, said.Err)
		})
	}
}

// A forecast asks for workers before the load needs them; the present alone asks when it is too late.
func TestRampIsAnswered(t *testing.T) {
	const first, perNode = 0.3, 0.7
	ramp := func(now time.Time) float64 { // of each of four, from 1.2 nodes to 7.2 in half an hour
		return first + 1.5*min(1, max(0, now.Sub(began).Minutes()-10)/30)
	}
	asks := func(disabled bool) int {
		f := &fakeProm{}
		f.set(same(4, ramp)...)
		o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
		o.Forecast.Disabled = disabled
		said := replay(t, newSet(t, o), CPU, 160, func(int, time.Time) Observation { return Observation{Workers: workers(4, 0), Expected: 4} })
		for i, s := range said {
			require.True(t, s.Known, s.Err)
			if s.Want > 4 {
				assert.Equal(t, began.Add(time.Duration(i)*interval), s.Since)
				return i
			}
		}
		return math.MaxInt
	}
	crossing := 0 // the tick at which the load is above the threshold
	for ramp(began.Add(time.Duration(crossing)*interval)) <= perNode {
		crossing++
	}
	ahead, present := asks(false), asks(true)
	assert.LessOrEqual(t, ahead, crossing-3)
	assert.GreaterOrEqual(t, present, crossing)
	t.Logf("above the threshold at tick %d: the forecast asks at %d, the present at %d", crossing, ahead, present)
}

func TestServersThatLie(t *testing.T) {
	status := func(code int, body string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	series := func(all ...fakeSeries) func(f *fakeProm) { return func(f *fakeProm) { f.set(all...) } }
	three := func(v ...fakeSeries) []fakeSeries { return append(same(3, constant(0.5))[len(v):], v...) }
	instead := func(code int, body string) func(f *fakeProm) {
		return func(f *fakeProm) { f.answer(status(code, body)) }
	}
	tests := map[string]struct {
		lie  func(f *fakeProm)
		want string // part of the error once what was there before is stale; "" = there is none
	}{
		"one node is missing":   {series(three()[1:]...), ""},
		"one node says NaN":     {series(three(load("w0", constant(math.NaN())))...), ""},
		"one node says +Inf":    {series(three(load("w0", constant(math.Inf(1))))...), ""},
		"two nodes are missing": {series(three()[2:]...), `more than half of the workers have no fresh samples: 2 of 3, such as "w0", "w1"`},
		"others' series only":   {series(load("x", constant(1)), load("y", constant(2))), `3 of 3, such as "w0", "w1", "w2"; the label node names other nodes: "x", "y"`},
		"no series":             {series(), "more than half of the workers have no fresh samples"},
		"all NaN":               {series(same(3, constant(math.NaN()))...), "more than half of the workers have no fresh samples"},
		"a node twice": {series(append(three(), fakeSeries{Labels: map[string]string{"node": "w0", "job": "b"}, At: load("", constant(1)).At})...),
			`http://prometheus:9090: query "load": node w0 has {node="w0"} and {job="b", node="w0"} at once: must be one series`},
		"503":               {instead(503, "<html>go away</html>"), "http://prometheus:9090: HTTP status 503 Service Unavailable"},
		"an error":          {instead(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`), "many-to-many"},
		"refused":           {instead(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), `query "load" is rejected: parse error; must be an expression of PromQL`},
		"garbage":           {instead(200, "<html>hello</html>"), "the answer is incomplete or not from Prometheus"},
		"cut off":           {instead(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"w0"},"values":[[1`), "the answer is incomplete or not from Prometheus"},
		"a scalar":          {instead(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`), "the answer is a scalar"},
		"histograms":        {instead(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"w0"},"histograms":[[1,{"count":"1","sum":"1"}]]}]}}`), "returns native histograms: must return numbers"},
		"far too much":      {instead(200, `{"status":"success","data":{"resultType":"matrix","result":[`+string(make([]byte, 1<<20))), "the answer is longer than 1048576 bytes"},
		"of another time":   {instead(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"w0"},"values":[[1,"5"],[99999999999,"7"]]}]}}`), "more than half of the workers"},
		"the query is lost": {func(f *fakeProm) { f.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) }, "http://prometheus:9090: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fakeProm{}
			f.set(same(3, constant(0.5))...)
			s := newSet(t, asking(safe{f}, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
			said := replay(t, s, CPU, 30, func(i int, _ time.Time) Observation {
				switch i {
				case 10:
					test.lie(f)
				case 20:
					f.set(same(3, constant(0.5))...)
				}
				return Observation{Workers: workers(3, 0), Expected: 3}
			})
			for i, x := range said {
				if i >= 14 && i < 20 && test.want != "" {
					require.False(t, x.Known, i)
					require.Contains(t, x.Err, test.want)
					continue
				}
				if i >= 10 && i < 14 && !x.Known {
					continue // what there was may or may not be fresh enough
				}
				require.True(t, x.Known, "%d: %s", i, x.Err)
				require.InDelta(t, 0.5, x.Now, 1e-9, i)
				require.Equal(t, 3, x.Want)
			}
			assert.True(t, said[11].Known, "what is fresh is held: %s", said[11].Err)
		})
	}
}

// What silent workers carry is not known to a process that has begun since: half of four leave half of the load to be seen. One that
// has known them takes them to carry what they did, for as long as the window.
func TestSilentWorkersAreTold(t *testing.T) {
	f := &fakeProm{}
	all := same(4, constant(0.5))
	f.set(all[2:]...)
	s := newSet(t, asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
	said := replay(t, s, CPU, 40, func(i int, _ time.Time) Observation {
		switch i {
		case 15:
			f.set(all...)
		case 30:
			f.set(all[1:]...)
		}
		return Observation{Workers: workers(4, 100), Expected: 4}
	})
	assert.Contains(t, said[14].Silent, `2 of 4, such as "w0", "w1", have had no samples for `)
	assert.True(t, said[14].Known, "the others may ask for more: %s", said[14].Err)
	assert.Empty(t, said[29].Silent)
	assert.Empty(t, said[39].Silent, "two minutes and a half are a gap")
	assert.InDelta(t, 0.5, said[39].Now, 0.01)
}

// safe is a transport whose handler may abort, as that of a server may.
type safe struct{ *fakeProm }

func (s safe) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	return s.fakeProm.RoundTrip(r)
}

// A server that is slow delays a tick by a second at most; what it says late is heard at the next.
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
					assert.LessOrEqual(t, time.Since(at), patience)
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

// slow takes its time.
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

// Two nodes that had gone before the process began carried a half; without them it would look like a rise.
func TestHistoryOfNodesThatHadGone(t *testing.T) {
	gone := began.Add(-5 * time.Minute)
	f := &fakeProm{}
	f.set(append(same(2, func(now time.Time) float64 {
		if now.Before(gone) {
			return 0.3
		}
		return 0.6
	}), load("gone-1", constant(0.3)).Until(gone), load("gone-2", constant(0.3)).Until(gone))...)
	said := named(t, cpuOf(t, f).Observe(t.Context(), Observation{Now: began, Workers: workers(2, 0), Expected: 2}), CPU)
	assert.True(t, said.Known, said.Err)
	assert.InDelta(t, 0.6, said.Predicted, 1e-9)
	assert.Equal(t, 2, said.Want)
}

func TestLoadOfNodesThatLeave(t *testing.T) {
	f := &fakeProm{}
	s := cpuOf(t, f)
	leaves, gone := began.Add(20*interval), began.Add(30*interval)
	f.set(append(same(3, func(now time.Time) float64 {
		if now.Before(gone) {
			return 0.45
		}
		return 0.6
	}), load("x", constant(0.45)).Until(gone))...)
	said := replay(t, s, CPU, 60, func(_ int, now time.Time) Observation {
		o := Observation{Workers: workers(3, 0), Expected: 3}
		switch x := worker("x", began.Add(-time.Hour), 0); {
		case now.Before(leaves):
			o.Workers = append(o.Workers, x)
		case now.Before(gone):
			o.Leaving = []cluster.Node{x}
		}
		return o
	})
	for i, x := range said {
		require.True(t, x.Known, x.Err)
		require.InDelta(t, 0.6, x.Predicted, 0.04, i)
	}
}

func TestPoolWithoutWorkers(t *testing.T) {
	f := &fakeProm{}
	s := cpuOf(t, f)
	said := named(t, s.Observe(t.Context(), Observation{Now: began, Demand: nodes(1.5)}), CPU)
	assert.True(t, said.Known, said.Err)
	assert.Equal(t, 2, said.Want)
	said = named(t, s.Observe(t.Context(), Observation{Now: began.Add(interval)}), CPU)
	assert.True(t, said.Known, said.Err)
	assert.Zero(t, said.Want)
	assert.Zero(t, said.Fits)
}

func TestClockSetBack(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
	o.Signals = append(o.Signals, Config{Name: Requests, Threshold: 0.7})
	s := newSet(t, o)
	for i := range 100 {
		now := began.Add(time.Duration(i) * interval)
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

// The same over a network: a server that goes, comes back, breaks connections, and says half of what it has to.
func TestOverTheWire(t *testing.T) {
	f := &fakeProm{}
	f.set(same(3, constant(0.5))...)
	server := httptest.NewServer(f)
	defer server.Close()
	o := asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m")
	o.DefaultAddress, o.Servers = server.URL+"/", promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 20, UserAgent: "foresail"})
	s := newSet(t, o)
	i := 0
	observe := func() plan.Signal {
		i++
		return named(t, s.Observe(t.Context(), Observation{Now: began.Add(time.Duration(i) * interval), Workers: workers(3, 0), Expected: 3}), CPU)
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
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
		},
	}
	for name, answer := range broken {
		require.True(t, observe().Known)
		f.answer(answer)
		for range 3 {
			observe()
		}
		said := observe()
		assert.False(t, said.Known, name)
		assert.Contains(t, said.Err, server.URL, name)
		f.set(same(3, constant(0.5))...)
		said = observe()
		require.True(t, said.Known, "%s: %s", name, said.Err)
	}
	server.Close()
	for range 4 {
		observe()
	}
	assert.Contains(t, observe().Err, "connection refused")
}

// Queries end with the context of the pool. Observe does not wait for answers then.
func TestQueriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, asking(slow{&fakeProm{}, time.Hour}, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
		ctx, cancel := context.WithCancel(t.Context())
		o := Observation{Now: time.Now(), Workers: workers(1, 0), Expected: 1}
		s.Observe(ctx, o)
		flight := s.voices[0].(*measured).flight
		require.NotNil(t, flight)
		cancel()
		synctest.Wait()
		select {
		case <-flight.done:
		default:
			assert.Fail(t, "the query goes on")
		}
		at := time.Now()
		assert.False(t, named(t, s.Observe(ctx, o), CPU).Known)
		assert.Equal(t, at, time.Now())
	})
}

// A Node of the same name that takes the place of another begins anew.
func TestNameUsedAgain(t *testing.T) {
	f := &fakeProm{}
	f.set(append(same(2, constant(0.6)), load("x", func(now time.Time) float64 {
		if now.Before(began.Add(20 * interval)) {
			return 0.6
		}
		return 0.3
	}))...)
	s := cpuOf(t, f)
	said := replay(t, s, CPU, 90, func(i int, _ time.Time) Observation {
		x := worker("x", began.Add(-time.Hour), 0)
		if i >= 20 {
			x = worker("x", began.Add(20*interval-time.Second), 0)
			x.Object.UID = "another"
		}
		return Observation{Workers: append(workers(2, 0), x), Expected: 3}
	})
	for _, x := range said {
		require.True(t, x.Known, x.Err)
	}
	assert.InDelta(t, 0.6, said[19].Now, 1e-9)
	assert.InDelta(t, 0.5, said[89].Now, 0.01)
	assert.Len(t, s.roster.spells, 3, "the first is forgotten after a window")
}
