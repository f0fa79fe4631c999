package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/door/dashboard"
	"github.com/foresail/foresail/adapter/serving/servingtest"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/controlplane"
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
	pod := foresailPod(name, "https", metricsPort)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(explainedAt.Add(-ago))}}}}
	return pod
}

var printed = regexp.MustCompile(`^Open (http://127\.0\.0\.1:\d+/\?token=\w+)(?:#\w+)?\n`)

// browse starts the command and returns a browser that has opened the URL that it printed, the address that it serves at, and all that
// it printed.
func browse(t *testing.T, args ...string) (*http.Client, string, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var stderr strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, newRoot(time.Now), append([]string{"dashboard"}, args...), nil, writer, &stderr)
		_ = writer.Close()
	}()
	lines, said := bufio.NewReader(reader), ""
	for !strings.HasSuffix(said, "Ctrl-C ends it.\n") {
		line, err := lines.ReadString('\n')
		if err != nil {
			cancel()
			<-ended
			require.NoError(t, err, stderr.String())
		}
		said += line
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	match := printed.FindStringSubmatch(said)
	require.NotNil(t, match, said)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	t.Cleanup(func() {
		browser.CloseIdleConnections()
		cancel()
		assert.Equal(t, exitDone, <-ended, stderr.String())
	})
	code, body := open(t, browser, match[1])
	require.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, "<title>Foresail</title>")
	base, _, _ := strings.Cut(match[1], "/?")
	return browser, base, said
}

func open(t *testing.T, browser *http.Client, address string) (int, string) {
	t.Helper()
	response, err := browser.Get(address)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// The replica that has run for the longest is asked, of those that have a dashboard, and the next once it fails.
func TestDashboardShowsWhatAReplicaKnows(t *testing.T) {
	var broken atomic.Bool
	oldest := showing("of-the-oldest")
	p := &played{
		foresail: []corev1.Pod{startedPod("newest", time.Minute), startedPod("oldest", time.Hour), startedPod("without", 2*time.Hour)},
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
	browser, base, _ := browse(t, "--kubeconfig", p.kubeconfig(t))
	code, body := open(t, browser, base+"/dashboard/v1/metrics?search=shop")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "of-the-oldest")
	code, body = open(t, browser, base+"/dashboard/v1/metrics?sort=size")
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, body, "sort: \"size\": must be one of")

	broken.Store(true)
	code, body = open(t, browser, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, "of-the-newest")

	stranger := &http.Client{}
	defer stranger.CloseIdleConnections()
	code, _ = open(t, stranger, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusForbidden, code)
}

// A token is replaced when it is accepted no longer.
func TestDashboardRenewsItsToken(t *testing.T) {
	var refused atomic.Bool
	shown := showing("checkout")
	p := &played{foresail: []corev1.Pod{startedPod("foresail", time.Hour)}, answers: map[string]any{"foresail": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.CompareAndSwap(true, false) {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		shown(w, r)
	})}}
	browser, base, _ := browse(t, "--kubeconfig", p.kubeconfig(t))
	refused.Store(true)
	code, body := open(t, browser, base+"/dashboard/v1/metrics")
	assert.Equal(t, http.StatusOK, code, body)
	assert.False(t, refused.Load())
}

func TestDashboardOfOneServer(t *testing.T) {
	shown := dashboard.New(servingtest.NewMemory(servingtest.Healthy("checkout", "checkout")), time.Now)
	server := httptest.NewServer(shown.Handler())
	defer server.Close()
	browser, base, _ := browse(t, "--server", server.URL, "--kubeconfig", file(t, "kubeconfig", ""))
	code, body := open(t, browser, base+"/dashboard/v1/metrics/shop/checkout")
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
		"no pods":              {played{}, nil, exitFailed, "no pod in namespace foresail-system runs Foresail (0 have its name)"},
		"without the flag":     {played{foresail: pods, answers: map[string]any{"foresail": http.HandlerFunc(http.NotFound)}}, nil, exitFailed, "ask the pod foresail-system/foresail: it runs without --dashboard, which manifests/components/dashboard adds"},
		"without rights":       {played{foresail: pods, answers: map[string]any{"foresail": forbidden}}, nil, exitFailed, "needs the ClusterRole foresail-dashboard"},
		"no token":             {played{}, []string{"--foresail-namespace", "elsewhere"}, exitFailed, "get a token of the ServiceAccount foresail-dashboard in namespace elsewhere, for which the Role foresail-dashboard is"},
		"a server without":     {played{}, []string{"--server", taken.URL}, exitFailed, "it runs without --dashboard"},
		"and no pools either":  {played{others: knowsPools()}, nil, exitFailed, "no pod in namespace foresail-system runs Foresail (0 have its name)"},
		"a bad server":         {played{}, []string{"--server", "localhost"}, exitUsage, `--server: "localhost": must be an http or https URL`},
		"a port that is taken": {played{foresail: pods, answers: map[string]any{"foresail": showing("checkout")}}, []string{"--port", address.Port()}, exitUsage, "--port: " + address.Port() + ": must be a port that is free, or 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			args := append([]string{"dashboard", "--kubeconfig", c.kubeconfig(t)}, c.args...)
			assert.Equal(t, c.code, execute(t.Context(), newRoot(time.Now), args, nil, &stdout, &stderr))
			assert.Contains(t, stderr.String(), c.want)
			assert.Empty(t, stdout.String())
		})
	}
}

// knowsPools has a cluster that is played know WorkerPools, and have these.
func knowsPools(names ...string) map[string]any {
	list := v1alpha1.WorkerPoolList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkerPoolList"}}
	for _, name := range names {
		list.Items = append(list.Items, v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: v1alpha1.GroupVersion.Version}
	const path = "/apis/foresail.dev/v1alpha1"
	return map[string]any{
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
			Groups:   []metav1.APIGroup{{Name: v1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}},
		},
		path: metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{{Name: "workerpools", SingularName: "workerpool", Kind: "WorkerPool", Verbs: metav1.Verbs{"get", "list"}}},
		},
		path + "/workerpools": list,
	}
}

// Who runs worker pools alone sees them, and why there are no PredictedMetrics, until a replica shows these.
func TestDashboardOfWorkerPoolsAlone(t *testing.T) {
	p := &played{others: knowsPools("workers")}
	browser, base, said := browse(t, "--kubeconfig", p.kubeconfig(t))
	assert.Regexp(t, `^Open http://127\.0\.0\.1:\d+/\?token=\w+#workerpools\nPredictedMetrics are not shown: no pod in namespace foresail-system runs Foresail \(0 have its name\).*\n`+
		`It is for you alone, and shows the worker pools\. Ctrl-C ends it\.\n$`, said)
	_, body := open(t, browser, base+"/local/v1/workerpools")
	assert.Contains(t, body, `"name":"workers"`)
	_, body = open(t, browser, base+"/local/v1/cluster")
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
	browser, base, said = browse(t, "--server", server.URL, "--kubeconfig", p.kubeconfig(t))
	_, body = open(t, browser, base+"/local/v1/cluster")
	assert.Equal(t, `{"name":"`+server.URL+`","server":"`+server.URL+`"}`, body)
	const why = "it runs without --dashboard, which manifests/components/dashboard adds"
	assert.Contains(t, said, "PredictedMetrics are not shown: ask "+server.URL+": "+why)
	for range 2 {
		code, body := open(t, browser, base+dashboard.MetricsPath)
		assert.Equal(t, http.StatusBadGateway, code)
		assert.Contains(t, body, why)
	}
	shows.Store(true)
	code, body := open(t, browser, base+dashboard.MetricsPath)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `"name":"checkout"`)
}

// A browser that goes on to another view ends its request: that is no reason to choose another replica.
func TestRequestsThatEndLeaveTheReplica(t *testing.T) {
	to := &dashboardConnection{name: "one", base: "http://127.0.0.1:1", transport: &http.Transport{}, close: func() { t.Error("closed") }}
	r := &dashboardReplica{replicaAccess: &replicaAccess{server: "http://one"}, chosen: to}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.fetch(ctx, dashboard.MetricsPath)
	require.ErrorIs(t, err, context.Canceled)
	assert.Same(t, to, r.chosen)
}

func TestDashboardFlagNeedsWhatServesIt(t *testing.T) {
	given := []string{"--leader-elect=false", "--apiservice=false", "--dashboard"}
	assert.NoError(t, parsedRun(t, given...).validate())
	for _, c := range []struct{ arg, want string }{
		{"--enable=nodepool", "--dashboard: true: must be left out unless --enable has adapter"},
		{"--metrics-address=0", "--dashboard: true: must be left out with --metrics-address=0, which serves nothing"},
	} {
		err := parsedRun(t, append(given, c.arg)...).validate()
		assert.ErrorContains(t, err, c.want)
		assert.True(t, errors.As(err, new(usageError)))
	}
}

// askWhatIf has ann, who may not read the PredictedMetric, play what has been recorded for some seconds.
func askWhatIf(t *testing.T, browser *http.Client, base string) {
	t.Helper()
	const path = "/local/v1/whatif/default/checkout"
	_, body := open(t, browser, base+path)
	assert.Contains(t, body, "The PredictedMetric cannot be read, so its other fields are taken to be the defaults")
	assert.Contains(t, body, `"lateness":"1%"`)
	_, body = open(t, browser, base+"/local/v1/predictedmetrics/default/checkout")
	assert.Contains(t, body, "you may not get predictedmetrics.foresail.dev in namespace default")
	_, body = open(t, browser, base+path+"?threshold=700m&maxReplicas=20")
	assert.Contains(t, body, "less than 10 minutes of the load are recorded without a gap")
	_, body = open(t, browser, base+path+"?threshold=none")
	assert.Contains(t, body, "spec.threshold")
	_, body = open(t, browser, base+"/local/v1/whatif/default/none")
	assert.Contains(t, body, "What was recorded cannot be read: There is no PredictedMetric default/none.")
}

// annMay gives ann a ClusterRole of her own.
func annMay(t *testing.T, cluster *controlplane.Cluster, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	_, err := cluster.Client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// lookAtEvents has ann look at Events that are written as Foresail does it: without the rights to, and with them.
func lookAtEvents(t *testing.T, cluster *controlplane.Cluster, browser *http.Client, base string) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: cluster.Client().EventsV1()})
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	recorder := broadcaster.NewRecorder(scheme, "foresail")
	metric := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "checkout"}}
	recorder.Eventf(metric, nil, corev1.EventTypeNormal, "AboveThreshold", "ScaleTo5", "the load <rises>")
	recorder.Eventf(metric, nil, corev1.EventTypeNormal, "Headroom", "ScaleTo4", "the load falls")
	recorder.Eventf(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "checkout"}}, nil, corev1.EventTypeWarning, "Unlisted", "Launch", "it is missing")

	ofMetric, ofPool := base+"/local/v1/events/predictedmetrics/default/checkout", base+"/local/v1/events/workerpools/checkout"
	for _, path := range []string{ofMetric, ofPool} {
		code, body := open(t, browser, path)
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, "You may not read Events, which takes the right list of events in namespace default: events is forbidden")
	}
	annMay(t, cluster, "ann-events", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}})
	var body string
	eventually(t, func() bool { // once the API server knows of the binding, and the Events are written
		_, body = open(t, browser, ofMetric)
		return strings.Contains(body, "AboveThreshold") && strings.Contains(body, "Headroom")
	})
	assert.Contains(t, body, `"message":"the load \u003crises\u003e","count":1`)
	assert.NotContains(t, body, "Unlisted")
	eventually(t, func() bool {
		_, body = open(t, browser, ofPool)
		return strings.Contains(body, "Unlisted")
	})
	assert.Contains(t, body, `"type":"Warning","reason":"Unlisted","message":"it is missing","count":1`)
	assert.Contains(t, body, `"all":1`)
}

// lookAtPools has ann look at worker pools: without the rights to, and with them.
func lookAtPools(t *testing.T, cluster *controlplane.Cluster, browser *http.Client, base string) {
	t.Helper()
	code, body := open(t, browser, base+"/local/v1/workerpools")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "You may not read WorkerPools, which takes the rights get and list of workerpools.foresail.dev")
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	newExplainedPool(t, objects)
	annMay(t, cluster, "ann-pools", rbacv1.PolicyRule{APIGroups: []string{"foresail.dev"}, Resources: []string{"workerpools"}, Verbs: []string{"get", "list"}})
	eventually(t, func() bool { // once the API server knows of the binding
		_, body = open(t, browser, base+"/local/v1/workerpools")
		return strings.Contains(body, `"name":"workers"`)
	})
	_, body = open(t, browser, base+"/local/v1/workerpools/workers")
	assert.Contains(t, body, "because three pods are pending")
	assert.Contains(t, body, `"nodesError":"list nodes: nodes is forbidden`)
}

// askAboutPods has ann, who may neither list pods nor have tokens for it, ask about pods.
func askAboutPods(t *testing.T, browser *http.Client, base string) {
	t.Helper()
	_, body := open(t, browser, base+"/local/v1/pods")
	assert.Contains(t, body, "You may not list the pods of all namespaces")
	_, body = open(t, browser, base+"/local/v1/pods/default/checkout")
	assert.Contains(t, body, "get a token of the ServiceAccount foresail-explain in namespace foresail-system, for which the Role foresail-explain is")
}

// TestDashboardOfACluster has a user with no rights but the Role foresail-dashboard look at a real Foresail, without a tunnel.
func TestDashboardOfACluster(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	withDefinitions(t, cluster)
	applyManifests(t, cluster, "base/namespace.yaml", "base/serviceaccount.yaml", "components/dashboard/rbac.yaml", "examples/predictedmetric.yaml")
	user := withRole(t, cluster, "ann", dashboardAccount)
	free := freePorts(t, 3)
	cert, key, err := cluster.ServingCertificate("localhost", "127.0.0.1")
	require.NoError(t, err)
	server := fmt.Sprintf("https://127.0.0.1:%d", free[2])
	p := runAside(t, "run", "--dashboard", "--kubeconfig", cluster.Kubeconfig(), "--apiservice=false", "--leader-elect=false", "--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(free[0]), "--http-address", fmt.Sprintf("127.0.0.1:%d", free[1]),
		"--metrics-address", strings.TrimPrefix(server, "https://"), "--metrics-tls-cert-file", cert, "--metrics-tls-private-key-file", key)
	eventually(t, func() bool {
		require.False(t, p.hasEnded(), "it has ended: %s", p.stderr)
		return status(t, free[1], "/readyz") == http.StatusOK
	})
	authorities := file(t, "ca.crt", string(cluster.CA()))
	browser, base, _ := browse(t, "--kubeconfig", user, "--server", server, "--server-ca-file", authorities)
	eventually(t, func() bool { // once there is a point of it
		code, body := open(t, browser, base+dashboard.MetricsPath+"/default/checkout")
		require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, code, body)
		return strings.Contains(body, `"reason":["`)
	})
	code, body := open(t, browser, base+dashboard.MetricsPath)
	assert.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, `"namespace":"default","name":"checkout"`)

	askWhatIf(t, browser, base)
	askAboutPods(t, browser, base)
	elsewhere := []string{"dashboard", "--kubeconfig", user, "--server", server, "--server-ca-file", authorities, "--foresail-namespace", "default"}
	_, stdout, stderr := foresail(t, "", elsewhere...)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "for which the Role foresail-dashboard is")
	lookAtPools(t, cluster, browser, base)
	_, _, said := browse(t, elsewhere[1:]...)
	assert.Regexp(t, `^Open \S+#workerpools\nPredictedMetrics are not shown: .*for which the Role foresail-dashboard is`, said)
	lookAtEvents(t, cluster, browser, base)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.CA()))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	own, err := cluster.ServiceAccountToken(t.Context(), "foresail-system", "foresail")
	require.NoError(t, err)
	shown, err := cluster.ServiceAccountToken(t.Context(), "foresail-system", dashboardAccount)
	require.NoError(t, err)
	for _, c := range []struct {
		path, token string
		code        int
	}{
		{dashboard.MetricsPath, "", http.StatusUnauthorized},
		{dashboard.MetricsPath, own, http.StatusForbidden},
		{dashboard.MetricsPath, shown, http.StatusOK},
		{"/metrics", shown, http.StatusForbidden},
	} {
		answer, err := fetchFrom(t.Context(), transport, server+c.path, c.token)
		require.NoError(t, err)
		assert.Equal(t, c.code, answer.code, c.path)
	}
	assert.Equal(t, http.StatusNotFound, status(t, free[1], dashboard.MetricsPath), "probes alone are open")
	p.end(t)
}
