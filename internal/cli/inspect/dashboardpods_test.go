package inspect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/extender/podview"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// both plays a replica that has a dashboard and runs the extender.
func both(answer any) http.HandlerFunc {
	shown, explaining := showing("checkout"), replying(answer)
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, extender.ExplainPath) {
			explaining(w, r)
			return
		}
		shown(w, r)
	}
}

// view has the browser ask for what is local.
func view[V any](t *testing.T, browser *http.Client, address string) (v V) {
	t.Helper()
	code, body := clitest.Open(t, browser, address)
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	return v
}

// The page shows of a pod what explain pod prints, of the same replicas.
func TestDashboardExplainsPods(t *testing.T) {
	p := playing(scheduledPod("node-2", ""),
		map[string]any{"foresail-a": both(answered(time.Minute)), "foresail-b": both("it fell over")})
	waiting := scheduledPod("", "0/19 nodes are available")
	waiting.Name = "waiting"
	p.unbound = []corev1.Pod{*waiting}
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", p.kubeconfig(t))
	v := view[podview.View](t, browser, base+"/local/v1/pods/shop/checkout")
	assert.Empty(t, v.Problem)
	assert.Contains(t, v.Sentence, ", which no other of 14 nodes was better than: score 9.")
	assert.Contains(t, v.Facts[1].Text, "by foresail-a: 5 of 19 nodes are filtered.")
	require.Len(t, v.Nodes, 19)
	assert.Equal(t, "node-2", v.Nodes[0].Name)
	require.Len(t, v.Missing, 1)
	assert.Contains(t, v.Missing[0],
		"a newer answer may be missing: ask the pod foresail-system/foresail-b: 502 Bad Gateway: it fell over")

	v = view[podview.View](t, browser, base+"/local/v1/pods/Shop/checkout")
	assert.Equal(t, `There is no answer: namespace: "Shop": must be a DNS label, such as shop`, v.Problem)
	v = view[podview.View](t, browser, base+"/local/v1/pods/shop/a%2Fb")
	assert.Equal(t, `There is no answer: name: "a/b": must be a DNS subdomain, such as checkout-7d9c5`, v.Problem)

	list := view[podview.UnboundList](t, browser, base+"/local/v1/pods")
	require.Len(t, list.Pods, 1)
	assert.Equal(t, "waiting", list.Pods[0].Name)
	assert.Equal(t, "0/19 nodes are available", list.Pods[0].Message)
}

// Where there is nothing but the extender, the page is of pods.
func TestDashboardOfPodsAlone(t *testing.T) {
	p := playing(scheduledPod("node-2", ""),
		map[string]any{"foresail-a": replying(answered(time.Minute)), "foresail-b": replying("it fell over")})
	browser, base, said := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", p.kubeconfig(t))
	assert.Regexp(t, `^Open http://127\.0\.0\.1:\d+/\?token=\w+#pods\nPredictedMetrics are not shown: (?s).*\nIt is for you alone, and shows what the scheduler extender knows of pods\. Ctrl-C ends it\.\n$`, said)
	v := view[podview.View](t, browser, base+"/local/v1/pods/shop/checkout")
	assert.Contains(t, v.Sentence, ", which no other of 14 nodes was better than: score 9.")
}

// What explain pod ends with is shown, and all else works.
func TestDashboardWithoutAnswersAboutPods(t *testing.T) {
	none := playing(nil, map[string]any{"foresail-a": both(nil)})
	none.foresail = none.foresail[:1]
	adapter := playing(scheduledPod("node-2", ""), map[string]any{"adapter": showing("checkout")})
	adapter.foresail = []corev1.Pod{startedPod("adapter", time.Hour)}
	for name, c := range map[string]struct {
		played   *played
		problem  string
		sentence string
	}{
		"an unknown pod": {none, "no replica of Foresail (foresail-a) was asked about the pod shop/checkout lately, and there is no such pod now", ""},
		"no extender": {adapter, "no pod in namespace foresail-system runs the extender (1 of Foresail are there)",
			"It went to node-2"},
	} {
		t.Run(name, func(t *testing.T) {
			browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", c.played.kubeconfig(t))
			v := view[podview.View](t, browser, base+"/local/v1/pods/shop/checkout")
			assert.Contains(t, v.Problem, c.problem)
			if c.sentence == "" {
				assert.Empty(t, v.Sentence)
			}
			assert.Contains(t, v.Sentence, c.sentence)
			assert.Empty(t, v.Nodes)
			code, body := clitest.Open(t, browser, base+"/dashboard/v1/metrics/shop/checkout")
			assert.Equal(t, http.StatusOK, code, body)
		})
	}
}

// One replica that answers anyone explains pods without a cluster.
func TestDashboardOfOneServerExplainsPods(t *testing.T) {
	answer := both(answered(time.Minute))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"), "everybody on the way could read it")
		r.Header.Set("Authorization", "Bearer "+tokenOfExplain)
		answer(w, r)
	}))
	defer server.Close()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--server", server.URL, "--kubeconfig", "/nonexistent")
	v := view[podview.View](t, browser, base+"/local/v1/pods/shop/checkout")
	assert.Empty(t, v.Problem)
	assert.Equal(t, "The cluster was not asked about the pod.", v.Sentence)
	assert.Len(t, v.Nodes, 19)
	assert.Contains(t, view[podview.UnboundList](t, browser, base+"/local/v1/pods").Problem, "Pods cannot be listed: ")
}

// Replicas have the API server review each new token, so one is used again.
func TestTokensAboutPodsAreUsedAgain(t *testing.T) {
	p := playing(scheduledPod("node-2", ""),
		map[string]any{"foresail-a": answered(time.Minute), "foresail-b": answered(time.Minute)})
	var tokens atomic.Int32
	k := &cli.Connection{Kubeconfig: kubeconfigOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/foresail-explain/token") {
			tokens.Add(1)
		}
		p.ServeHTTP(w, r)
	}))}
	page := newPodPage(k, &replicaAccess{account: dashboardAccount, foresail: "foresail-system"},
		func() time.Time { return explainedAt })
	pod := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	for range 3 {
		assert.Empty(t, page.explain(t.Context(), pod).(podview.View).Problem)
	}
	assert.EqualValues(t, 1, tokens.Load())
	p.answers = map[string]any{"foresail-a": "Unauthorized", "foresail-b": "Unauthorized"}
	assert.Contains(t, page.explain(t.Context(), pod).(podview.View).Problem, "Unauthorized")
	page.explain(t.Context(), pod)
	assert.EqualValues(t, 2, tokens.Load(), "of another that may be accepted")
}
