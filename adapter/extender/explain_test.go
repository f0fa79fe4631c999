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

	"github.com/foresail/foresail/adapter/snapshot"
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

func TestWhatIsToldOfAPod(t *testing.T) {
	doomed, candidate, young, blank := testNode("doomed", 1, 1), testNode("candidate", 1, 2), testNode("young", 1, 2), testNode("blank", 1, 2)
	doomed.removing, candidate.candidate = "workers", "workers"
	young.readySince = epoch.Add(-90 * time.Second)
	young.ledger.add(use{500, gib})
	blank.cpu, blank.memory = snapshot.Use{}, snapshot.Use{}
	blank.requested.add(use{1500, 4 * gib})
	r := newRig(DefaultRules(), testView(doomed, candidate, young, blank, testNode("full", 1, 16)))
	pod := testPod()
	names := []string{"doomed", "candidate", "young", "blank", "full", "stranger"}
	r.asks(t, verbFilter, pod, names...)
	r.asks(t, verbPrioritize, pod, "candidate", "young", "blank", "stranger")
	e := r.explained(t, pod)

	s := subjectOf(pod, nil)
	memory := float64(s.estimate.memory)
	about := Finding{
		At: epoch, ViewedAt: epoch, UID: "uid-1", Requests: Amounts{1, 2 * gib},
		Estimate: Amounts{float64(s.estimate.cpu) / 1000, memory}, Message: "2 of 6 nodes are refused.",
	}
	assert.Equal(t, about, e.Filter.Finding)
	assert.Equal(t, [2]int{4, 2}, [2]int{e.Filter.Accepted, e.Filter.Refused})
	assert.Empty(t, e.Filter.WaitsFor)
	told := [][4]string{}
	for _, n := range e.Filter.Nodes {
		told = append(told, [4]string{n.Name, n.Reason, n.Unknown, n.Message})
	}
	assert.Equal(t, [][4]string{
		{"doomed", "removing", "", "refused: it is being removed (workers)"},
		{"candidate", "fits", "", "accepted"},
		{"young", "fits", "", "accepted"},
		{"blank", "fits", "no_prediction", "accepted: there is no prediction of its use, so that requests count"},
		{"full", "memory", "", fmt.Sprintf("memory up to 18022Mi predicted, 0 for pods that came since and %s of this one would pass 95%% of 16Gi: refused", bytesText(memory))},
		{"stranger", "fits", "unknown_node", "accepted: the node is not known yet"},
	}, told)
	assert.True(t, e.Filter.Nodes[4].Refused)
	full := e.Filter.Nodes[4].Memory
	assert.Equal(t, float64(16*gib), *full.Predicted)
	assert.InEpsilon(t, 17.6*gib, *full.Upper, 1e-6)
	assert.Equal(t, [3]float64{0, memory, 16 * gib}, [3]float64{full.Ledger, full.Pod, full.Allocatable})
	assert.Nil(t, e.Filter.Nodes[3].Memory.Predicted)
	assert.Equal(t, float64(4*gib), e.Filter.Nodes[3].Memory.Requested)
	assert.Nil(t, e.Filter.Nodes[5].Memory)

	assert.Equal(t, "4 nodes are scored: the fuller the better up to 65%, the emptier the better beyond.", e.Prioritize.Message)
	scored := []string{}
	for _, n := range e.Prioritize.Nodes {
		scored = append(scored, fmt.Sprintf("%s %d u=%.3f w=%.1f %s%v: %s", n.Name, n.Score, n.Used, n.Warmth, n.Pool, n.Candidate, n.Message))
	}
	assert.Equal(t, []string{
		"candidate 0 u=0.500 w=1.0 workerstrue: 50% used with this pod; to be left empty, as the pool workers would remove it next",
		"young 5 u=0.625 w=0.5 false: 62% used with this pod; warming up, which leaves 50% of the score",
		"blank 10 u=0.625 w=1.0 false: 62% used with this pod, by what is known: there is no prediction of its use, so that requests count",
		"stranger 7 u=0.000 w=1.0 false: 0% used with this pod, by what is known: the node is not known yet",
	}, scored)
	assert.Equal(t, 0.5, e.Prioritize.Nodes[1].CPU.Ledger)
	assert.Equal(t, 1.0, e.Prioritize.Nodes[1].CPU.Pod)
}

func TestWhatIsToldOfAPodWithoutRoom(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(v *view, p *corev1.Pod)
		message string
		waits   string
		node    string
	}{
		"it waits":     {func(v *view, _ *corev1.Pod) { v.growing = []Growth{{Pool: "workers"}} }, "Every node would pass a limit, so that the pod waits for the pool workers to grow.", "workers", ": refused"},
		"it passes":    {func(*view, *corev1.Pod) {}, "Every node would pass a limit and no pool can grow for the pod, it has waited for long enough, or it would evict others: limits do not count.", "", "; accepted, since no node is left"},
		"elsewhere":    {func(v *view, _ *corev1.Pod) { v.nodes["room"] = testNode("room", 1, 1) }, "Every node that the scheduler asked about would pass a limit, and others have room: it is to try again on those.", "", ": refused"},
		"it is exempt": {func(_ *view, p *corev1.Pod) { p.Spec.Priority = new(systemCritical) }, "No node is refused to pods of DaemonSets and to critical ones.", "", "accepted, as on every node"},
		"nominated":    {func(_ *view, p *corev1.Pod) { p.Status.NominatedNodeName = "full-0" }, "99 of 100 nodes are refused.", "", "accepted: the scheduler has promised the node to the pod"},
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

func TestWhatIsToldWithoutAView(t *testing.T) {
	r := newRig(DefaultRules(), &view{})
	r.asks(t, verbFilter, testPod(), "a")
	r.asks(t, verbPrioritize, testPod(), "a")
	e := r.explained(t, testPod())
	assert.True(t, e.Filter.ViewedAt.IsZero())
	assert.Equal(t, "accepted: there is no view of the cluster, or it is too old", e.Filter.Nodes[0].Message)
	assert.Equal(t, "All nodes are scored alike: there is no view of the cluster, or it is too old.", e.Prioritize.Message)
}

func TestWhatIsBeyondAllBoundsIsTold(t *testing.T) {
	n := testNode("n", 1, 1)
	n.cpu.Predicted, n.allocatable.cpu = 1e300, 1
	r := newRig(DefaultRules(), testView(n))
	r.asks(t, verbPrioritize, testPod(), "n")
	assert.Len(t, r.explained(t, testPod()).Prioritize.Nodes, 1)
}

func TestAPodThatWasNotAskedAboutIsNotTold(t *testing.T) {
	r := newRig(DefaultRules(), testView())
	for path, want := range map[string]int{"shop/web-1": 404, "shop": 404, "shop/web-1/more": 404} {
		w := httptest.NewRecorder()
		r.ExplainHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExplainPath+path, nil))
		assert.Equal(t, want, w.Code)
		if path == "shop/web-1" {
			assert.Contains(t, w.Body.String(), "The scheduler has not asked this replica about the pod shop/web-1 lately")
		}
	}
	w := httptest.NewRecorder()
	r.ExplainHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, ExplainPath+"shop/web-1", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func findingOf(pod string, verdicts int) *finding {
	return &finding{pod: brief{key: types.NamespacedName{Name: pod}}, verdicts: make([]verdict, verdicts)}
}

func TestTheTrailForgetsWhatIsOldest(t *testing.T) {
	trail := newTrail(3 * (100 + findingCost))
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

func TestTheTrailIsBounded(t *testing.T) {
	assert.LessOrEqual(t, maxTrail*unsafe.Sizeof(verdict{}), uintptr(16<<20))
	assert.LessOrEqual(t, unsafe.Sizeof(finding{})+200, findingCost*unsafe.Sizeof(verdict{}), "with its place in the trail")
	trail := newTrail(1000)
	for i := range 10_000 {
		trail.add([]string{verbFilter, verbPrioritize}[i%2], findingOf(fmt.Sprint(i/2%700), i%7))
		require.LessOrEqual(t, trail.held, 1000)
	}
	held := 0
	for e := trail.ages.Front(); e != nil; e = e.Next() {
		held += e.Value.(*step).cost()
	}
	assert.Equal(t, held, trail.held)
}

func TestWhatWasForgottenIsUsedAgain(t *testing.T) {
	trail := newTrail(1000)
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
		assert.Equal(t, finding{verdicts: f.verdicts}, *f)
	}
	assert.Equal(t, "n", copied.verdicts[99].name)
	assert.Equal(t, waits, copied.room)
	big = trail.fresh(100)
	trail.blank.Put(big)
	assert.LessOrEqual(t, cap(trail.fresh(1).verdicts), 2, "what is told of few nodes does not hold the space of many")
}
