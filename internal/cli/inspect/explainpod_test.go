package inspect

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/extender/podview"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// played is an API server that knows some pods, and what replicas of Foresail answer.
type played struct {
	pods     map[string]*corev1.Pod // by path
	foresail []corev1.Pod
	unbound  []corev1.Pod   // of all namespaces
	answers  map[string]any // by name of the pod that is asked; an error text, or an Explanation
	others   map[string]any // by path
}

// tokenOfExplain is what replicas answer to, in the place of what the user has.
const tokenOfExplain = "token-of-foresail-explain"

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	write := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	gone := func(text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound,
			Code: http.StatusNotFound, Message: text})
	}
	const own = "/api/v1/namespaces/foresail-system/pods"
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, own+"/"), "/")
	switch pod := p.pods[r.URL.Path]; {
	case pod != nil:
		write(pod)
	case r.URL.Path == own && slices.Contains([]string{foresailPods, adapterPods}, r.URL.Query().Get("labelSelector")):
		write(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: p.foresail})
	case r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=,status.phase=Pending":
		write(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: p.unbound})
	case slices.Contains([]string{
		"/api/v1/namespaces/foresail-system/serviceaccounts/foresail-explain/token",
		"/api/v1/namespaces/foresail-system/serviceaccounts/foresail-dashboard/token",
	}, r.URL.Path):
		write(authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Status:   authenticationv1.TokenRequestStatus{Token: tokenOfExplain},
		})
	case rest == "portforward":
		replica := httptest.NewTLSServer(replying(p.answers[name]))
		defer replica.Close()
		forwardPorts(w, r, "8081", replica.Listener.Addr().String())
	case p.others[r.URL.Path] != nil:
		write(p.others[r.URL.Path])
	default:
		gone("there is no " + r.URL.Path)
	}
}

// replying plays a replica: an answer is an Explanation, an error text, nil, or what replies.
func replying(answer any) http.HandlerFunc {
	if reply, ok := answer.(http.HandlerFunc); ok {
		return reply
	}
	return func(w http.ResponseWriter, r *http.Request) {
		text, failing := answer.(string)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+tokenOfExplain:
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
		case r.URL.Path != extender.ExplainPath+"shop/checkout":
			http.Error(w, "no such path: "+r.URL.Path, http.StatusBadRequest)
		case failing:
			http.Error(w, text, http.StatusBadGateway)
		case answer == nil:
			http.Error(w, "not asked lately", http.StatusNotFound)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
}

// kubeconfig is for a server that is played.
func (p *played) kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, p)
}

func kubeconfigOf(t *testing.T, api http.Handler) string {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return clitest.File(t, "kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "played",
  "clusters": [{"name": "played", "cluster": {"server": %q}}],
  "contexts": [{"name": "played", "context": {"cluster": "played", "user": "", "namespace": "shop"}}]}`, server.URL))
}

// explainedAt is when pods are explained, in whole seconds as the API has times.
var explainedAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func scheduledPod(node, message string) *corev1.Pod {
	status := corev1.ConditionTrue
	if node == "" {
		status = corev1.ConditionFalse
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid-1",
			CreationTimestamp: metav1.NewTime(explainedAt.Add(-time.Hour))},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "default-scheduler"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: status, Message: message,
			LastTransitionTime: metav1.NewTime(explainedAt.Add(-5 * time.Minute)),
		}}},
	}
}

func share(predicted, assumed, pod, allocatable float64) *extender.Share {
	return &extender.Share{Predicted: &predicted, Assumed: assumed, Pod: pod, Allocatable: allocatable}
}

// answered is an answer of some time ago, of which node-2 got the best score.
func answered(ago time.Duration) extender.Explanation {
	about := extender.Decision{
		At: explainedAt.Add(-ago), UID: types.UID("uid-1"),
		Requests: extender.Amounts{CPU: 0.25, Memory: 200 << 20},
		Estimate: extender.Amounts{CPU: 0.3, Memory: 250 << 20},
	}
	e := extender.Explanation{Namespace: "shop", Name: "checkout"}
	e.Filter = &extender.FilterDecision{Decision: about, Passed: 14, Filtered: 5}
	e.Filter.Message = "5 of 19 nodes are filtered."
	e.Prioritize = &extender.ScoreDecision{Decision: about}
	e.Prioritize.Message = "14 nodes are scored."
	for i := range 14 {
		name, score := fmt.Sprintf("node-%d", i), 3
		if i == 2 {
			score = 9
		}
		e.Filter.Nodes = append(e.Filter.Nodes,
			extender.FilterNode{Name: name, Reason: "fits", Message: "passed", CPU: share(1, 0, 0.3, 4)})
		e.Prioritize.Nodes = append(e.Prioritize.Nodes, extender.ScoredNode{
			Name: name, Score: score, Used: 0.625, Warmth: 1, CPU: share(2, 0.25, 0.25, 4),
			Memory:  &extender.Share{Requested: 1 << 30, Pod: 200 << 20, Allocatable: 8 << 30},
			Message: "62% used with this pod",
		})
	}
	for i := range 4 {
		e.Filter.Nodes = append(e.Filter.Nodes,
			extender.FilterNode{Name: fmt.Sprintf("full-%d", i), Filtered: true, Reason: "memory",
				Message: "memory would exceed 95%"})
	}
	e.Filter.Nodes = append(e.Filter.Nodes, extender.FilterNode{Name: "going", Filtered: true, Reason: "removing",
		Message: "the pool workers removes it"})
	return e
}

func explainPod(t *testing.T, p *played, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("KUBECONFIG", p.kubeconfig(t))
	return foresailAt(t, func() time.Time { return explainedAt }, "",
		append([]string{"explain", "pod", "checkout"}, args...)...)
}

func playing(pod *corev1.Pod, answers map[string]any) *played {
	p := &played{
		pods: map[string]*corev1.Pod{}, answers: answers,
		foresail: []corev1.Pod{clitest.ForesailPod("foresail-a", "extender", "metrics"),
			clitest.ForesailPod("foresail-b", "extender", "metrics"),
			clitest.ForesailPod("adapter", "https", "metrics")},
	}
	if pod != nil {
		p.pods["/api/v1/namespaces/shop/pods/checkout"] = pod
	}
	return p
}

func TestExplainPodTellsTheNewestAnswer(t *testing.T) {
	old := answered(time.Hour)
	old.Prioritize.Message = "this is from long ago"
	p := playing(scheduledPod("node-2", ""), map[string]any{"foresail-a": answered(5 * time.Minute), "foresail-b": old})
	code, out, stderr := explainPod(t, p)
	require.Equal(t, cli.ExitDone, code, stderr)
	lines := strings.Split(out, "\n")
	assert.Equal(t, "Pod shop/checkout", lines[0])
	assert.Equal(t, "It went to node-2 5m ago, which no other of 14 nodes was better than: score 9.",
		strings.TrimSpace(lines[1]))
	assert.Contains(t, out, "0.30 cores, 250Mi; it requests 0.25 cores, 200Mi")
	assert.Contains(t, out, "by foresail-a: 5 of 19 nodes are filtered.")
	assert.NotContains(t, out, "long ago")
	table := clitest.Rows(lines, "NODE")
	require.Len(t, table, 1+10+1, "without --all only the best, and how many more there are")
	assert.Equal(t, strings.Fields("node-2 9 0.62 2.00 0.25 0.25 4.00 (1Gi) 0 200Mi 8Gi 62% used with this pod"),
		strings.Fields(table[1]))
	assert.Equal(t, "4 more with scores from 3 to 3: --all shows them", table[len(table)-1])
	filtered := clitest.Rows(lines, "FILTERED FOR")
	require.Len(t, filtered, 3)
	assert.Equal(t, strings.Fields("memory 4 full-0, full-1, full-2, …: memory would exceed 95%"),
		strings.Fields(filtered[1]))
	assert.Equal(t, strings.Fields("removing 1 going: the pool workers removes it"), strings.Fields(filtered[2]))

	code, out, _ = explainPod(t, p, "--all")
	require.Equal(t, cli.ExitDone, code)
	lines = strings.Split(out, "\n")
	assert.Len(t, clitest.Rows(lines, "NODE"), 1+14)
	assert.Len(t, clitest.Rows(lines, "FILTERED"), 1+5)

	code, out, _ = explainPod(t, p, "-o", "json")
	require.Equal(t, cli.ExitDone, code)
	var e podview.Explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	assert.Equal(t, "node-2", e.Pod.Node)
	assert.Equal(t, "foresail-a", e.FilteredBy)
	assert.Equal(t, []string{"foresail-a", "foresail-b"}, e.Answered)
	assert.Len(t, e.Filter.Nodes, 19)
	assert.Len(t, e.Prioritize.Nodes, 14)
}

func TestExplainPodSumsUp(t *testing.T) {
	waits := answered(time.Minute)
	waits.Filter.WaitsFor, waits.Prioritize.At = "workers", waits.Filter.At.Add(-time.Minute)
	single := answered(time.Minute)
	single.Prioritize, single.Filter.Nodes, single.Filter.Passed = nil, single.Filter.Nodes[13:], 1
	another := answered(time.Minute)
	another.Filter.UID, another.Prioritize.UID = "uid-0", "uid-0"
	for _, c := range []struct {
		pod    *corev1.Pod
		answer extender.Explanation
		want   string
	}{
		{scheduledPod("node-3", ""), answered(time.Minute),
			"It went to node-3 5m ago, with score 3. node-2 had 9; the scheduler's own plugins have a say, too."},
		{scheduledPod("full-0", ""), answered(time.Minute),
			"It went to full-0 5m ago, which had been filtered: the scheduler did not receive or not use that answer."},
		{scheduledPod("elsewhere", ""), answered(time.Minute),
			"It went to elsewhere 5m ago, about which Foresail was not asked then."},
		{scheduledPod("node-13", ""), single, "It went to node-13 5m ago, the one node that was left."},
		{scheduledPod("node-13", ""), single, "prioritize  not asked then: no more than one node was left"},
		{scheduledPod("", "0/19 nodes are available"), answered(time.Minute),
			"It is not bound to a node: 0/19 nodes are available"},
		{scheduledPod("", "0/19 nodes are available"), waits,
			"It is not bound: no node that would do fits, and it waits for the pool workers to grow."},
		{scheduledPod("", "0/19 nodes are available"), waits, "not asked then"}, // the scores are of an earlier attempt
		{scheduledPod("node-2", ""), another, "The answers are about an earlier pod of that name."},
		{nil, answered(time.Minute), "There is no such pod now."},
	} {
		code, out, stderr := explainPod(t, playing(c.pod, map[string]any{"foresail-b": c.answer}))
		require.Equal(t, cli.ExitDone, code, stderr)
		assert.Contains(t, out, c.want)
	}
}

func TestExplainPodNamesTheNamespaceOfAPod(t *testing.T) {
	elsewhere := scheduledPod("node-2", "")
	elsewhere.Namespace = "web"
	p := playing(nil, map[string]any{"foresail-b": answered(time.Minute)})
	p.others = map[string]any{"/api/v1/pods": corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1",
		Kind: "PodList"}, Items: []corev1.Pod{*elsewhere}}}
	_, _, stderr := explainPod(t, p)
	assert.Contains(t, stderr, `There is no pod "checkout" in namespace shop; namespace web has one: add -n web`)
	t.Setenv("KUBECONFIG", playing(scheduledPod("node-2", ""), p.answers).kubeconfig(t))
	code, out, stderr := foresailAt(t, func() time.Time { return explainedAt }, "", "explain", "pod/checkout", "-n",
		"shop")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, out, "Pod shop/checkout")
	assert.Empty(t, stderr)
}

// Whoever is slow leaves the others all their time.
func TestExplainPodAsksAllReplicasAtOnce(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(2)
	once := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Done()
		asked.Wait()
		replying(answered(time.Minute))(w, r)
	})
	code, out, stderr := explainPod(t, playing(scheduledPod("node-2", ""),
		map[string]any{"foresail-a": once, "foresail-b": once}))
	assert.Equal(t, cli.ExitDone, code)
	assert.Contains(t, out, "It went to node-2")
	assert.Empty(t, stderr)
}

func TestExplainPodSaysWhoCouldNotBeAsked(t *testing.T) {
	p := playing(scheduledPod("node-2", ""),
		map[string]any{"foresail-a": "it fell over", "foresail-b": answered(time.Minute)})
	code, out, stderr := explainPod(t, p)
	assert.Equal(t, cli.ExitDone, code)
	assert.Contains(t, out, "It went to node-2")
	assert.Contains(t, stderr,
		"Warning: a newer answer may be missing: ask the pod foresail-system/foresail-a: 502 Bad Gateway: it fell over")
	code, out, _ = explainPod(t, p, "-o", "json")
	assert.Equal(t, cli.ExitDone, code)
	var e podview.Explanation
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	assert.Contains(t, e.Unreachable, "foresail-a")
}

func TestExplainPodWithoutAnAnswer(t *testing.T) {
	silent := playing(scheduledPod("node-2", ""), nil)
	silent.foresail = []corev1.Pod{clitest.ForesailPod("adapter", "https", "metrics")}
	for _, c := range []struct {
		played *played
		wants  []string
	}{
		{playing(scheduledPod("node-2", ""), nil), []string{
			"It went to node-2 5m ago.",
			`no replica of Foresail (foresail-a, foresail-b) was asked about the pod shop/checkout lately by the scheduler "default-scheduler", which its schedulerName says: `,
			"is the extender in the configuration of the scheduler (docs/extender.md)?", "too long ago",
		}},
		{playing(scheduledPod("", "0/3 nodes are available: 3 Insufficient cpu."), nil),
			[]string{"It is not bound to a node: 0/3 nodes are available: 3 Insufficient cpu.", "there may be none"}},
		{playing(nil, nil), []string{"there is no such pod now", "is the name right?"}},
		{silent, []string{"no pod in namespace foresail-system runs the extender (1 of Foresail are there)",
			"--foresail-namespace", "--server"}},
		{playing(nil, map[string]any{"foresail-a": "it fell over", "foresail-b": "it did, too"}),
			[]string{"ask the pod foresail-system/foresail-a", "ask the pod foresail-system/foresail-b"}},
	} {
		code, out, stderr := explainPod(t, c.played)
		assert.Equal(t, cli.ExitFailed, code)
		assert.Empty(t, out)
		for _, want := range c.wants {
			assert.Contains(t, stderr, want)
		}
	}
}

// A replica that is no pod answers a token over HTTPS, and without one over HTTP if it answers anyone.
func TestExplainPodOfAServer(t *testing.T) {
	anyone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"), "everybody on the way could read it")
		r.Header.Set("Authorization", "Bearer "+tokenOfExplain)
		replying(answered(time.Minute))(w, r)
	}))
	defer anyone.Close()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "/nonexistent")
	code, out, stderr := foresail(t, "", "explain", "pod", "checkout", "-n", "shop", "--server", anyone.URL+"/")
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, out, "by "+anyone.URL)
	assert.Contains(t, out, "node-2")

	secure := httptest.NewTLSServer(replying(answered(time.Minute)))
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	authorities := clitest.File(t, "ca.crt",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	code, out, stderr = explainPod(t, playing(scheduledPod("node-2", ""), nil), "--server", secure.URL,
		"--server-ca-file", authorities)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, out, "by "+secure.URL)
	code, _, stderr = explainPod(t, playing(nil, nil), "--server", secure.URL)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "certificate signed by unknown authority")

	silent := httptest.NewServer(http.NotFoundHandler())
	code, _, stderr = foresail(t, "", "explain", "pod", "cart", "-n", "bank", "--server", silent.URL)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "no replica of Foresail ("+silent.URL+") was asked about the pod bank/cart lately")
	silent.Close()
	code, _, stderr = foresail(t, "", "explain", "pod", "cart", "-n", "bank", "--server", silent.URL)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "ask "+silent.URL)

	for args, want := range map[string]string{
		"-n Shop":                `namespace: "Shop": must be a DNS label, such as shop`,
		"--server foresail:8443": `--server: "foresail:8443": must be an http or https URL, such as https://localhost:8443`,
		"--server http://foresail:8443 --server-ca-file ca.crt": `--server-ca-file: "ca.crt": must be left out unless --server has an https URL`,
		"--server https://foresail --server-ca-file /none.crt":  `--server-ca-file: "/none.crt": must be a file with certificates in PEM: open /none.crt`,
	} {
		code, _, stderr = foresail(t, "", append([]string{"explain", "pod", "cart"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want)
	}
}
