package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// ask sends a body as it is.
func (r *rig) ask(verb string, body io.Reader) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, Prefix+"/"+verb, body)
	r.Handler().ServeHTTP(w, request.WithContext(klog.NewContext(request.Context(), r.log)))
	return w
}

// strictly decodes an answer into the library's type, with nothing unknown.
func strictly(t *testing.T, content []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(into), "%s", content)
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
}

func TestRejectsRequests(t *testing.T) {
	nodes := `{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[]},"NodeNames":null}`
	for name, test := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"garbage":                {"POST", "/filter", "garbage", 400, "not the JSON of ExtenderArgs"},
		"nothing":                {"POST", "/prioritize", "", 400, "not the JSON of ExtenderArgs"},
		"no pod":                 {"POST", "/filter", `{"NodeNames":["a"]}`, 400, "no Pod"},
		"nodes to prioritize":    {"POST", "/prioritize", nodes, 400, "nodeCacheCapable: true"},
		"nodes to filter":        {"POST", "/filter", nodes, 200, "nodeCacheCapable: true"},
		"too much":               {"POST", "/filter", strings.Repeat(" ", maxBody+1), 413, "larger than 8 MiB"},
		"GET":                    {"GET", "/filter", "", 405, "Method Not Allowed"},
		"HEAD":                   {"HEAD", "/prioritize", "", 405, ""},
		"PUT":                    {"PUT", "/filter", "{}", 405, "Method Not Allowed"},
		"a verb that is not set": {"POST", "/bind", "{}", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
			w := httptest.NewRecorder()
			r.Handler().ServeHTTP(w, httptest.NewRequest(test.method, Prefix+test.path, strings.NewReader(test.body)))
			assert.Equal(t, test.code, w.Code)
			assert.Contains(t, w.Body.String(), test.want)
			if test.code == http.StatusOK {
				var result extenderv1.ExtenderFilterResult
				strictly(t, w.Body.Bytes(), &result)
				assert.Contains(t, result.Error, test.want)
				assert.Nil(t, result.NodeNames)
			}
		})
	}
}

func TestRejectsTruncatedRequests(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot())
	w := r.ask(verbFilter, io.MultiReader(strings.NewReader(`{"Pod":{}`), failing{}))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "ends early")
}

// What is sent says nothing of how much memory there is.
func TestLargeRequestsUseLittleMemory(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	for name, test := range map[string]struct{ head, part, tail, want string }{
		"names":      {`{"Pod":{},"NodeNames":[""`, `,""`, `]}`, "more than 50000 values"},
		"containers": {`{"NodeNames":["a"],"Pod":{"spec":{"containers":[{}`, `,{}`, `]}}}`, "more than 50000 values"},
		"labels": {`{"NodeNames":["a"],"Pod":{"metadata":{"labels":{"":""`, `,"":""`,
			`}}}}`, "more than 50000 values"},
		"a name": {`{"Pod":{},"NodeNames":["`, `n`, `"]}`, "the name of a node has 83"},
		"the name of a pod": {`{"NodeNames":["a"],"Pod":{"metadata":{"name":"`, `n`, `"}}}`,
			"the name of the Pod has 83"},
	} {
		body := test.head + strings.Repeat(test.part,
			(maxBody-len(test.head)-len(test.tail))/len(test.part)) + test.tail
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := r.ask(verbFilter, strings.NewReader(body))
		runtime.ReadMemStats(&after)
		assert.Equal(t, http.StatusBadRequest, w.Code, name)
		assert.Contains(t, w.Body.String(), test.want, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20*maxBody),
			"%s: with the buffers that it has grown through", name)
	}
	filter, prioritize := r.handler.decisions.of(types.NamespacedName{})
	assert.Nil(t, filter)
	assert.Nil(t, prioritize)
}

func TestMaxNames(t *testing.T) {
	assert.Equal(t, 1004, testSnapshot(testNode("a", 1, 1), testNode("b", 1, 1)).maxNames())
	assert.Equal(t, unknownNames, (&clusterSnapshot{}).maxNames(), "of a cluster that is not known")
}

func TestUnknownNamesCountAgainstTheDecisionCache(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot())
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("%0253d", i))
	}
	const asked, most = 120, maxVerdicts * int(unsafe.Sizeof(verdict{}))
	pod := testPod()
	pod.Name = "asked"
	body, err := json.Marshal(argsOf(pod, names...))
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(body, []byte(`"asked"`)))
	for i := range asked {
		another := bytes.Replace(body, []byte(`"asked"`), fmt.Appendf(nil, `"%d"`, i), 1)
		require.Equal(t, http.StatusOK, r.ask(verbFilter, bytes.NewReader(another)).Code)
	}
	held := 0
	for e := r.handler.decisions.ages.Front(); e != nil; e = e.Next() {
		f := e.Value.(*cachedDecision).decision
		held += cap(f.verdicts) * int(unsafe.Sizeof(verdict{}))
		for _, v := range f.verdicts {
			held += len(v.name)
		}
	}
	assert.Less(t, r.handler.decisions.ages.Len(), asked)
	assert.Positive(t, held)
	assert.LessOrEqual(t, held, most)
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	body, err := json.Marshal(argsOf(testPod(), "a"))
	require.NoError(t, err)
	content := func(known bool) io.Reader {
		if known {
			return bytes.NewReader(body)
		}
		return io.MultiReader(bytes.NewReader(body)) // of a length that no one tells
	}
	require.True(t, r.handler.bodies.TryAcquire(maxBodies-int64(len(body))))
	for _, known := range []bool{true, false} {
		assert.Equal(t, http.StatusOK, r.ask(verbFilter, content(known)).Code)
	}
	require.True(t, r.handler.bodies.TryAcquire(1))
	for _, known := range []bool{true, false} {
		w := r.ask(verbFilter, content(known))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Contains(t, w.Body.String(), "too many requests at once")
	}
	r.handler.bodies.Release(1)
	assert.Equal(t, http.StatusOK, r.ask(verbFilter, content(true)).Code, "what was refused is not held")
	r.handler.bodies.Release(maxBodies - int64(len(body)))
	assert.True(t, r.handler.bodies.TryAcquire(maxBodies), "nothing is held")
}

func TestLimitsConcurrency(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	for range maxWorking {
		r.handler.working <- struct{}{}
	}
	body, err := json.Marshal(argsOf(testPod(), "a"))
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodPost, Prefix+
		"/filter", bytes.NewReader(body)))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "the scheduler has given up")
	answered := make(chan int, 1)
	go func() { answered <- r.ask(verbFilter, bytes.NewReader(body)).Code }()
	<-r.handler.working
	assert.Equal(t, http.StatusOK, <-answered, "it has waited")
	assert.Len(t, r.handler.working, maxWorking-1)
}

// faulty is an assumer that panics.
type faulty struct{ assumer }

func (faulty) forget(types.UID) { panic("nothing to forget") }

func TestPanicsAreLoggedAndCounted(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	var log bytes.Buffer
	r.handler.assumed, r.log = faulty{r}, logTo(&log)
	body, err := json.Marshal(argsOf(testPod(), "a"))
	require.NoError(t, err)
	for range 2 * maxWorking { // each leaves its place
		w := r.ask(verbFilter, bytes.NewReader(body))
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.Contains(t, w.Body.String(), "by a bug of Foresail")
	}
	assert.InDelta(t, 2*maxWorking, observations(t, r.handler.telemetry.duration.WithLabelValues(verbFilter, "500")), 0)
	assert.Contains(t, log.String(), "A request of a scheduler panicked")
	assert.Contains(t, log.String(), "nothing to forget")
	assert.Contains(t, log.String(), "handler_test.go", "where it happened")
	r.handler.assumed = r
	assert.Equal(t, http.StatusOK, r.ask(verbFilter, bytes.NewReader(body)).Code)
	assert.True(t, r.handler.bodies.TryAcquire(maxBodies), "nothing is held")
}

func TestLargeBuffersAreNotKept(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot())
	for name, k := range map[string]*scratch{
		"a body":  {in: *bytes.NewBuffer(make([]byte, 0, pooledBody+1))},
		"answers": {out: *bytes.NewBuffer(make([]byte, 0, pooledBody+1))},
	} {
		r.handler.give(k)
		assert.NotSame(t, k, r.handler.take(), name)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRequestsAreCountedAndTimed(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	stale := testNode("stale", 1, 1)
	stale.memory.Sampled = epoch.Add(-DefaultRules().StaleAfter - 1)
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1), testNode("full", 1, 16), doomed, stale))
	body, err := json.Marshal(argsOf(testPod(), "a", "full", "doomed", "stale", "stranger"))
	require.NoError(t, err)
	assert.Equal(t, 200, r.ask(verbFilter, bytes.NewReader(body)).Code)
	assert.Equal(t, 200, r.ask(verbPrioritize, bytes.NewReader(body)).Code)
	assert.Equal(t, 400, r.ask(verbFilter, strings.NewReader("{")).Code)
	assert.NoError(t, testutil.GatherAndCompare(r.registry, strings.NewReader(`
# HELP foresail_extender_nodes_filtered_total Nodes that were filtered, by reason: removing (a WorkerPool removes it), memory or cpu (predicted to exceed the limit).
# TYPE foresail_extender_nodes_filtered_total counter
foresail_extender_nodes_filtered_total{reason="cpu"} 0
foresail_extender_nodes_filtered_total{reason="memory"} 1
foresail_extender_nodes_filtered_total{reason="removing"} 1
`), "foresail_extender_nodes_filtered_total"))
	for of, want := range map[[2]string]float64{{verbFilter, "200"}: 1,
		{verbPrioritize, "200"}: 1, {verbFilter, "400"}: 1} {
		assert.InDelta(t, want, observations(t, r.handler.telemetry.duration.WithLabelValues(of[0], of[1])), 0, of)
	}
	open := func(g gap) float64 { return testutil.ToFloat64(r.handler.telemetry.open[g]) }
	assert.Equal(t, 2.0, open(gapStale))
	assert.Equal(t, 2.0, open(gapNode))
	assert.Equal(t, 0.0, open(gapPrediction))
	assert.Equal(t, 0.0, open(gapSnapshot))
}

// observations returns how many values a histogram has observed.
func observations(t *testing.T, of prometheus.Observer) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, of.(prometheus.Metric).Write(&m))
	return float64(m.GetHistogram().GetSampleCount())
}

func TestStateMetrics(t *testing.T) {
	a, b := testNode("a", 1, 1), testNode("b", 1, 1)
	a.assumed.add(use{1500, gib})
	b.assumed.add(use{500, gib})
	v := testSnapshot(a, b)
	v.at = epoch.Add(-3 * time.Minute)
	r := newRig(DefaultRules(), v)
	r.assumed.bind(podID{1}, recentPod{slot: a.slot, since: epoch}, epoch)
	want := `
# HELP foresail_extender_assumed_pods Pods that samples do not include yet: bound recently, or about to be.
# TYPE foresail_extender_assumed_pods gauge
foresail_extender_assumed_pods 1
# HELP foresail_extender_cache_age_seconds Age of the cached state of the cluster that requests are answered from; -1 before the first.
# TYPE foresail_extender_cache_age_seconds gauge
foresail_extender_cache_age_seconds 180
`
	assert.NoError(t, testutil.GatherAndCompare(r.registry, strings.NewReader(want), "foresail_extender_assumed_pods",
		"foresail_extender_cache_age_seconds"))
}

// FuzzHandler sends anything. Whatever is answered is what a scheduler takes, about what it asked.
func FuzzHandler(f *testing.F) {
	for _, pod := range []any{realPod(1), fullPod(), testPod()} {
		body, err := json.Marshal(map[string]any{"Pod": pod, "Nodes": nil,
			"NodeNames": []string{"a", "full", "doomed", "stranger", "a"}})
		require.NoError(f, err)
		f.Add(true, body)
		f.Add(false, body)
		f.Add(true, body[:len(body)-2])
	}
	for _, body := range nested(12_000) {
		f.Add(true, []byte(body))
	}
	f.Add(true, []byte(`{"Pod":{},"NodeNames":[]}`))
	f.Add(true, []byte(`{"Pod":{},"NodeNames":["\ud800","\"","é"]}`))
	f.Add(false, []byte(
		`{"Pod":{"spec":{"priority":2000000000,"containers":[{"resources":{"requests":{"cpu":"1e18","memory":"-1"}}}]}},"NodeNames":["a","full"]}`))
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1), testNode("full", 1, 16), doomed))
	f.Fuzz(func(t *testing.T, filter bool, body []byte) {
		verb := verbPrioritize
		if filter {
			verb = verbFilter
		}
		w := r.ask(verb, bytes.NewReader(body))
		content := w.Body.Bytes()
		assert.Equal(t, fmt.Sprint(len(content)), w.Header().Get("Content-Length"))
		if w.Code != http.StatusOK {
			assert.Equal(t, http.StatusBadRequest, w.Code)
			assert.NotEmpty(t, content)
			return
		}
		names, told := []string(nil), []string(nil)
		if filter {
			var result extenderv1.ExtenderFilterResult
			strictly(t, content, &result)
			if result.Error != "" {
				return
			}
			require.NotNil(t, result.NodeNames, "an answer without names refuses every node without a word")
			told = *result.NodeNames
			for name := range result.FailedAndUnresolvableNodes {
				told = append(told, name)
			}
		} else {
			var result extenderv1.HostPriorityList
			strictly(t, content, &result)
			require.NotNil(t, result)
			for _, h := range result {
				told = append(told, h.Host)
				assert.GreaterOrEqual(t, h.Score, extenderv1.MinExtenderPriority)
				assert.LessOrEqual(t, h.Score, extenderv1.MaxExtenderPriority)
			}
		}
		var args extenderv1.ExtenderArgs
		if json.Unmarshal(body, &args) != nil || args.NodeNames == nil {
			return // something that is not looked at is wrong
		}
		names = *args.NodeNames
		assert.Subset(t, names, told)
		assert.Subset(t, told, names)
		if !filter {
			assert.Equal(t, len(names), len(told))
		}
	})
}

// A pod that is asked about is where it may go, and nowhere that it was expected before.
func TestPodIsAssumedOnOneNode(t *testing.T) {
	fuller, emptier, doomed := testNode("fuller", 1.6, 1), testNode("emptier", 1, 1), testNode("doomed", 1, 1)
	doomed.removing = "workers"
	r := newRig(DefaultRules(), testSnapshot(fuller, emptier, doomed))
	pod := testPod()
	calls := func() (nodes []string) {
		for _, c := range r.counted {
			require.Equal(t, pod.UID, c.uid)
			nodes = append(nodes, c.node)
		}
		r.counted = nil
		return nodes
	}
	r.asks(t, verbFilter, pod, "fuller", "emptier", "doomed")
	require.Equal(t, []string{""}, calls(), "taken back: two are left to be scored")
	r.asks(t, verbPrioritize, pod, "fuller", "emptier")
	require.Equal(t, []string{"", "fuller"}, calls())
	r.asks(t, verbFilter, pod, "emptier", "doomed")
	require.Equal(t, []string{"", "emptier"}, calls(), "it is not scored")
}
