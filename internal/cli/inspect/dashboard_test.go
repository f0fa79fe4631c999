package inspect

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/door/dashboard"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// showing plays a replica that runs with --dashboard and has one PredictedMetric.
func showing(metric string) http.HandlerFunc {
	shown := dashboard.New(servingtest.NewMemory(servingtest.Healthy(metric, "checkout")), time.Now)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+tokenOfExplain {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		shown.Handler().ServeHTTP(w, r)
	}
}

func startedPod(name string, ago time.Duration) corev1.Pod {
	pod := clitest.ForesailPod(name, "https", metricsPort)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(explainedAt.Add(-ago))}}}}
	return pod
}

// The replica that has run for the longest is asked, of those that have a dashboard, and the next
// once it fails.
func TestDashboardShowsWhatAReplicaKnows(t *testing.T) {
	var broken atomic.Bool
	oldest := showing("of-the-oldest")
	p := &played{
		foresail: []corev1.Pod{startedPod("newest", time.Minute), startedPod("oldest", time.Hour),
			startedPod("without", 2*time.Hour)},
		answers: map[string]any{
			"newest": showing("of-the-newest"),
			"oldest": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() {
					panic(http.ErrAbortHandler)
				}
				oldest(w, r)
			}),
			"without": http.HandlerFunc(http.NotFound),
		},
	}
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", p.kubeconfig(t))
	code, body := clitest.Open(t, browser, base+"/dashboard/v1/metrics?search=shop")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "of-the-oldest")
	code, body = clitest.Open(t, browser, base+"/dashboard/v1/metrics?sort=size")
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, body, "sort: \"size\": must be one of")

	broken.Store(true)
	code, body = clitest.Open(t, browser, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, "of-the-newest")

	stranger := &http.Client{}
	defer stranger.CloseIdleConnections()
	code, _ = clitest.Open(t, stranger, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusForbidden, code)
}

// A token is replaced when it is accepted no longer.
func TestDashboardRenewsItsToken(t *testing.T) {
	var refused atomic.Bool
	shown := showing("checkout")
	p := &played{foresail: []corev1.Pod{startedPod("foresail", time.Hour)},
		answers: map[string]any{"foresail": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refused.CompareAndSwap(true, false) {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			shown(w, r)
		})}}
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", p.kubeconfig(t))
	refused.Store(true)
	code, body := clitest.Open(t, browser, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusOK, code, body)
	assert.False(t, refused.Load())
}

func TestDashboardOfOneServer(t *testing.T) {
	shown := dashboard.New(servingtest.NewMemory(servingtest.Healthy("checkout", "checkout")), time.Now)
	server := httptest.NewServer(shown.Handler())
	defer server.Close()
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--server", server.URL, "--kubeconfig",
		clitest.File(t, "kubeconfig", ""))
	code, body := clitest.Open(t, browser, base+"/dashboard/v1/metrics/shop/checkout")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `"name":"checkout"`)
}

func TestDashboardSaysWhyThereIsNone(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	address, err := url.Parse(taken.URL)
	require.NoError(t, err)
	forbidden := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Authorization denied", http.StatusForbidden)
	})
	pods := []corev1.Pod{startedPod("foresail", time.Hour)}
	for name, c := range map[string]struct {
		played
		args []string
		code int
		want string
	}{
		"no pods": {played{}, nil, cli.ExitFailed,
			"no pod in namespace foresail-system runs Foresail (0 have its name)"},
		"without the flag": {played{foresail: pods,
			answers: map[string]any{"foresail": http.HandlerFunc(http.NotFound)}}, nil, cli.ExitFailed, "ask the pod foresail-system/foresail: it runs without --dashboard, which manifests/components/dashboard adds"},
		"without rights": {played{foresail: pods, answers: map[string]any{"foresail": forbidden}}, nil,
			cli.ExitFailed, "needs the ClusterRole foresail-dashboard"},
		"no token": {played{}, []string{"--foresail-namespace", "elsewhere"}, cli.ExitFailed,
			"get a token of the ServiceAccount foresail-dashboard in namespace elsewhere, for which the Role foresail-dashboard is"},
		"a server without": {played{}, []string{"--server", taken.URL}, cli.ExitFailed,
			"it runs without --dashboard"},
		"and no pools either": {played{others: knowsPools()}, nil, cli.ExitFailed,
			"no pod in namespace foresail-system runs Foresail (0 have its name)"},
		"a bad server": {played{}, []string{"--server", "localhost"}, cli.ExitUsage,
			`--server: "localhost": must be an http or https URL`},
		"a port that is taken": {played{foresail: pods, answers: map[string]any{"foresail": showing("checkout")}},
			[]string{"--port", address.Port()}, cli.ExitUsage,
			"--port: " + address.Port() + ": must be a port that is free, or 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			args := append([]string{"dashboard", "--kubeconfig", c.kubeconfig(t)}, c.args...)
			assert.Equal(t, c.code, cli.Execute(t.Context(), newRoot(time.Now), args, nil, &stdout, &stderr))
			assert.Contains(t, stderr.String(), c.want)
			assert.Empty(t, stdout.String())
		})
	}
}

// knowsPools has a cluster that is played know WorkerPools, and have these.
func knowsPools(names ...string) map[string]any {
	list := v1alpha1.WorkerPoolList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
		Kind: "WorkerPoolList"}}
	for _, name := range names {
		list.Items = append(list.Items, v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(),
		Version: v1alpha1.GroupVersion.Version}
	const path = "/apis/foresail.dev/v1alpha1"
	return map[string]any{
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
			Groups: []metav1.APIGroup{{Name: v1alpha1.GroupVersion.Group,
				Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}},
		},
		path: metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{{Name: "workerpools", SingularName: "workerpool", Kind: "WorkerPool",
				Verbs: metav1.Verbs{"get", "list"}}},
		},
		path + "/workerpools": list,
	}
}

// Who runs worker pools alone sees them, and why there are no PredictedMetrics, until a replica shows these.
func TestDashboardOfWorkerPoolsAlone(t *testing.T) {
	p := &played{others: knowsPools("workers")}
	browser, base, said := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", p.kubeconfig(t))
	assert.Regexp(t, `^Open http://127\.0\.0\.1:\d+/\?token=\w+#workerpools\nPredictedMetrics are not shown: no pod in namespace foresail-system runs Foresail \(0 have its name\).*\n`+
		`It is for you alone, and shows the worker pools\. Ctrl-C ends it\.\n$`, said)
	_, body := clitest.Open(t, browser, base+"/local/v1/workerpools")
	assert.Contains(t, body, `"name":"workers"`)
	_, body = clitest.Open(t, browser, base+"/local/v1/cluster")
	assert.Contains(t, body, `{"name":"played","server":"http://127.0.0.1:`, "the context of the kubeconfig")

	var shows atomic.Bool
	shown := dashboard.New(servingtest.NewMemory(servingtest.Healthy("checkout", "checkout")), time.Now).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !shows.Load() {
			http.NotFound(w, r)
			return
		}
		shown.ServeHTTP(w, r)
	}))
	defer server.Close()
	browser, base, said = clitest.Browse(t, newRoot(time.Now), "--server", server.URL, "--kubeconfig", p.kubeconfig(t))
	_, body = clitest.Open(t, browser, base+"/local/v1/cluster")
	assert.Equal(t, `{"name":"`+server.URL+`","server":"`+server.URL+`"}`, body)
	const why = "it runs without --dashboard, which manifests/components/dashboard adds"
	assert.Contains(t, said, "PredictedMetrics are not shown: ask "+server.URL+": "+why)
	for range 2 {
		code, body := clitest.Open(t, browser, base+dashboard.MetricsPath)
		assert.Equal(t, http.StatusBadGateway, code)
		assert.Contains(t, body, why)
	}
	shows.Store(true)
	code, body := clitest.Open(t, browser, base+dashboard.MetricsPath)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `"name":"checkout"`)
}

// A browser that goes on to another view ends its request: that is no reason to choose another replica.
func TestRequestsThatEndLeaveTheReplica(t *testing.T) {
	to := &dashboardConnection{name: "one", base: "http://127.0.0.1:1", transport: &http.Transport{},
		close: func() { t.Error("closed") }}
	r := &dashboardReplica{replicaAccess: &replicaAccess{server: "http://one"}, chosen: to}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.fetch(ctx, dashboard.MetricsPath)
	require.ErrorIs(t, err, context.Canceled)
	assert.Same(t, to, r.chosen)
}
