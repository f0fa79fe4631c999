package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// explained asks what was answered for a pod.
func (r *rig) explained(t *testing.T, pod *corev1.Pod) Explanation {
	t.Helper()
	w := httptest.NewRecorder()
	r.ExplainHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExplainPath+pod.Namespace+"/"+pod.Name, nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var e Explanation
	strictly(t, w.Body.Bytes(), &e)
	return e
}

// asks has the rig answer about a pod.
func (r *rig) asks(t *testing.T, verb string, pod *corev1.Pod, names ...string) {
	t.Helper()
	body, err := json.Marshal(argsOf(pod, names...))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.ask(verb, bytes.NewReader(body)).Code)
}

func TestExplainsPod(t *testing.T) {
	doomed, candidate, young, blank := testNode("doomed", 1, 1), testNode("candidate", 1, 2),
		testNode("young", 1, 2), testNode("blank", 1, 2)
	doomed.removing, candidate.candidate = "workers", "workers"
	young.readySince = epoch.Add(-90 * time.Second)
	young.assumed.add(use{500, gib})
	blank.cpu, blank.memory = snapshot.Use{}, snapshot.Use{}
	blank.requested.add(use{1500, 4 * gib})
	r := newRig(DefaultRules(), testSnapshot(doomed, candidate, young, blank, testNode("full", 1, 16)))
	pod := testPod()
	names := []string{"doomed", "candidate", "young", "blank", "full", "stranger"}
	r.asks(t, verbFilter, pod, names...)
	r.asks(t, verbPrioritize, pod, "candidate", "young", "blank", "stranger")
	e := r.explained(t, pod)

	s := podRequestOf(pod, nil)
	memory := float64(s.estimate.memory)
	about := Decision{
		At: epoch, CachedAt: epoch, UID: "uid-1", Requests: Amounts{1, 2 * gib},
		Estimate: Amounts{float64(s.estimate.cpu) / 1000, memory}, Message: "2 of 6 nodes are filtered.",
	}
	assert.Equal(t, about, e.Filter.Decision)
	assert.Equal(t, [2]int{4, 2}, [2]int{e.Filter.Passed, e.Filter.Filtered})
	assert.Empty(t, e.Filter.WaitsFor)
	told := [][4]string{}
	for _, n := range e.Filter.Nodes {
		told = append(told, [4]string{n.Name, n.Reason, n.Unknown, n.Message})
	}
	assert.Equal(t, [][4]string{
		{"doomed", "removing", "", "filtered: it is being removed (workers)"},
		{"candidate", "fits", "", "passed"},
		{"young", "fits", "", "passed"},
		{"blank", "fits", "no_prediction", "passed: there is no prediction of its use: requests count"},
		{"full", "memory", "", fmt.Sprintf(
			"memory up to 18022Mi predicted, 0 of assumed pods and %s of this one would exceed 95%% of 16Gi: filtered",
			bytesText(memory))},
		{"stranger", "fits", "unknown_node", "passed: the node is not known yet"},
	}, told)
	assert.True(t, e.Filter.Nodes[4].Filtered)
	full := e.Filter.Nodes[4].Memory
	assert.Equal(t, float64(16*gib), *full.Predicted)
	assert.InEpsilon(t, 17.6*gib, *full.Upper, 1e-6)
	assert.Equal(t, [3]float64{0, memory, 16 * gib}, [3]float64{full.Assumed, full.Pod, full.Allocatable})
	assert.Nil(t, e.Filter.Nodes[3].Memory.Predicted)
	assert.Equal(t, float64(4*gib), e.Filter.Nodes[3].Memory.Requested)
	assert.Nil(t, e.Filter.Nodes[5].Memory)

	assert.Equal(t, "4 nodes are scored: fuller is better up to 65%, emptier is better above.", e.Prioritize.Message)
	scored := []string{}
	for _, n := range e.Prioritize.Nodes {
		scored = append(scored, fmt.Sprintf("%s %d u=%.3f w=%.1f %s%v: %s", n.Name, n.Score, n.Used, n.Warmth,
			n.Pool, n.Candidate, n.Message))
	}
	assert.Equal(t, []string{
		"candidate 0 u=0.500 w=1.0 workerstrue: 50% used with this pod; kept empty: the pool workers would remove it next",
		"young 5 u=0.625 w=0.5 false: 62% used with this pod; warming up: 50% of the score",
		"blank 10 u=0.625 w=1.0 false: 62% used with this pod, as far as known: there is no prediction of its use: requests count",
		"stranger 7 u=0.000 w=1.0 false: 0% used with this pod, as far as known: the node is not known yet",
	}, scored)
	assert.Equal(t, 0.5, e.Prioritize.Nodes[1].CPU.Assumed)
	assert.Equal(t, 1.0, e.Prioritize.Nodes[1].CPU.Pod)
}

func TestExplainsPodThatFitsNoNode(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(v *clusterSnapshot, p *corev1.Pod)
		message string
		waits   string
		node    string
	}{
		"it waits": {func(v *clusterSnapshot, _ *corev1.Pod) { v.growing = []Growth{{Pool: "workers"}} },
			"Every node would exceed a limit: the pod waits for the pool workers to grow.", "workers", ": filtered"},
		"it passes": {func(*clusterSnapshot, *corev1.Pod) {},
			"Every node would exceed a limit, so the limits are ignored: no pool can grow for the pod, it has waited for its maximum, or it would preempt others.", "", "; passed, since no node is left"},
		"elsewhere": {func(v *clusterSnapshot, _ *corev1.Pod) {
			v.nodes["room"] = testNode("room", 1, 1)
		}, "Every node that the scheduler asked about would exceed a limit, but others have room: the scheduler tries those next.", "", ": filtered"},
		"it is exempt": {func(_ *clusterSnapshot, p *corev1.Pod) { p.Spec.Priority = new(systemCritical) },
			"Pods of DaemonSets and critical pods pass on every node.", "", "passed, as every node does for this pod"},
		"nominated": {func(_ *clusterSnapshot, p *corev1.Pod) { p.Status.NominatedNodeName = "full-0" },
			"99 of 100 nodes are filtered.", "", "passed: the scheduler nominated the node for the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			v, names := crowd(100)
			pod := testPod()
			test.change(v, pod)
			r := newRig(DefaultRules(), v)
			r.asks(t, verbFilter, pod, names...)
			e := r.explained(t, pod)
			assert.Nil(t, e.Prioritize)
			assert.Equal(t, test.message, e.Filter.Message)
			assert.Equal(t, test.waits, e.Filter.WaitsFor)
			assert.Contains(t, e.Filter.Nodes[0].Message, test.node)
		})
	}
}

func TestExplainsWithoutASnapshot(t *testing.T) {
	r := newRig(DefaultRules(), &clusterSnapshot{})
	r.asks(t, verbFilter, testPod(), "a")
	r.asks(t, verbPrioritize, testPod(), "a")
	e := r.explained(t, testPod())
	assert.True(t, e.Filter.CachedAt.IsZero())
	assert.Equal(t, "passed: the state of the cluster is not known, or too old", e.Filter.Nodes[0].Message)
	assert.Equal(t, "All nodes get the same score: the state of the cluster is not known, or too old.",
		e.Prioritize.Message)
}

func TestExplainsInfiniteAmounts(t *testing.T) {
	n := testNode("n", 1, 1)
	n.cpu.Predicted, n.allocatable.cpu = 1e300, 1
	r := newRig(DefaultRules(), testSnapshot(n))
	r.asks(t, verbPrioritize, testPod(), "n")
	assert.Len(t, r.explained(t, testPod()).Prioritize.Nodes, 1)
}

func TestExplainOfAnUnknownPodIs404(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot())
	for path, want := range map[string]int{"shop/web-1": 404, "shop": 404, "shop/web-1/more": 404} {
		w := httptest.NewRecorder()
		r.ExplainHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExplainPath+path, nil))
		assert.Equal(t, want, w.Code)
		if path == "shop/web-1" {
			assert.Contains(t, w.Body.String(),
				"The scheduler has not asked this replica about the pod shop/web-1 lately")
		}
	}
	w := httptest.NewRecorder()
	r.ExplainHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, ExplainPath+"shop/web-1", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func findingOf(pod string, verdicts int) *decision {
	return &decision{pod: podSummary{key: types.NamespacedName{Name: pod}}, verdicts: make([]verdict, verdicts)}
}

func TestDecisionCacheEvictsTheOldest(t *testing.T) {
	trail := newDecisionCache(3 * (100 + decisionCost))
	has := func(pod string) [2]bool {
		filter, prioritize := trail.of(types.NamespacedName{Name: pod})
		return [2]bool{filter != nil, prioritize != nil}
	}
	trail.add(verbFilter, findingOf("a", 100))
	trail.add(verbPrioritize, findingOf("a", 100))
	trail.add(verbFilter, findingOf("b", 100))
	assert.Equal(t, [2]bool{true, true}, has("a"))
	trail.add(verbFilter, findingOf("a", 100)) // in place of the one before, which was the oldest
	assert.Equal(t, [2]bool{true, true}, has("a"))
	trail.add(verbFilter, findingOf("c", 100))
	assert.Equal(t, [2]bool{true, false}, has("a"))
	assert.Equal(t, [2]bool{true, false}, has("b"))
	trail.add(verbFilter, findingOf("d", 320))
	assert.Equal(t, [2]bool{}, has("d"), "it is too large")
	assert.Empty(t, trail.pods)
	assert.Zero(t, trail.held)
	assert.Zero(t, trail.ages.Len())
}

func TestDecisionCacheIsBounded(t *testing.T) {
	assert.LessOrEqual(t, maxVerdicts*unsafe.Sizeof(verdict{}), uintptr(16<<20))
	assert.LessOrEqual(t, unsafe.Sizeof(decision{})+200, decisionCost*unsafe.Sizeof(verdict{}),
		"with its place in the trail")
	trail := newDecisionCache(1000)
	for i := range 10_000 {
		trail.add([]string{verbFilter, verbPrioritize}[i%2], findingOf(fmt.Sprint(i/2%700), i%7))
		require.LessOrEqual(t, trail.held, 1000)
	}
	held := 0
	for e := trail.ages.Front(); e != nil; e = e.Next() {
		held += e.Value.(*cachedDecision).cost()
	}
	assert.Equal(t, held, trail.held)
}

func TestDecisionsAreReused(t *testing.T) {
	trail := newDecisionCache(1000)
	big, small := trail.fresh(100), trail.fresh(0)
	big.pod.key.Name, big.verdicts[99].name, big.room = "a", "n", waits
	trail.add(verbFilter, big)
	trail.add(verbFilter, small)
	copied, _ := trail.of(types.NamespacedName{Name: "a"})
	trail.add(verbFilter, findingOf("a", 1))
	for range 100 { // a pool may lose what it is given
		f := trail.fresh(60)
		assert.Len(t, f.verdicts, 60)
		for _, v := range f.verdicts {
			assert.Equal(t, verdict{}, v)
		}
		assert.Equal(t, decision{verdicts: f.verdicts}, *f)
	}
	assert.Equal(t, "n", copied.verdicts[99].name)
	assert.Equal(t, waits, copied.room)
	big = trail.fresh(100)
	trail.blank.Put(big)
	assert.LessOrEqual(t, cap(trail.fresh(1).verdicts), 2, "what is told of few nodes does not hold the space of many")
}
