package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
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
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
)

// askWhatIf has ann, who may not read the PredictedMetric, play what has been recorded for some seconds.
func askWhatIf(t *testing.T, browser *http.Client, base string) {
	t.Helper()
	const path = "/local/v1/whatif/default/checkout"
	_, body := clitest.Open(t, browser, base+path)
	assert.Contains(t, body, "The PredictedMetric cannot be read, so its other fields are taken to be the defaults")
	assert.Contains(t, body, `"lateness":"1%"`)
	_, body = clitest.Open(t, browser, base+"/local/v1/predictedmetrics/default/checkout")
	assert.Contains(t, body, "you may not get predictedmetrics.foresail.dev in namespace default")
	_, body = clitest.Open(t, browser, base+path+"?threshold=700m&maxReplicas=20")
	assert.Contains(t, body, "less than 10 minutes of the load are recorded without a gap")
	_, body = clitest.Open(t, browser, base+path+"?threshold=none")
	assert.Contains(t, body, "spec.threshold")
	_, body = clitest.Open(t, browser, base+"/local/v1/whatif/default/none")
	assert.Contains(t, body, "What was recorded cannot be read: There is no PredictedMetric default/none.")
}

// annMay gives ann a ClusterRole of her own.
func annMay(t *testing.T, cluster *controlplane.Cluster, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	_, err := cluster.Client().RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// lookAtEvents has ann look at Events that are written as Foresail does it: without the rights to,
// and with them.
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
	recorder.Eventf(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "checkout"}}, nil, corev1.EventTypeWarning,
		"Unlisted", "Launch", "it is missing")

	ofMetric, ofPool := base+"/local/v1/events/predictedmetrics/default/checkout", base+"/local/v1/events/workerpools/checkout"
	for _, path := range []string{ofMetric, ofPool} {
		code, body := clitest.Open(t, browser, path)
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, "You may not read Events, which takes the right list of events in namespace default: events is forbidden")
	}
	annMay(t, cluster, "ann-events", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"},
		Verbs: []string{"list"}})
	var body string
	clitest.Eventually(t, func() bool { // once the API server knows of the binding, and the Events are written
		_, body = clitest.Open(t, browser, ofMetric)
		return strings.Contains(body, "AboveThreshold") && strings.Contains(body, "Headroom")
	})
	assert.Contains(t, body, `"message":"the load \u003crises\u003e","count":1`)
	assert.NotContains(t, body, "Unlisted")
	clitest.Eventually(t, func() bool {
		_, body = clitest.Open(t, browser, ofPool)
		return strings.Contains(body, "Unlisted")
	})
	assert.Contains(t, body, `"type":"Warning","reason":"Unlisted","message":"it is missing","count":1`)
	assert.Contains(t, body, `"all":1`)
}

// lookAtPools has ann look at worker pools: without the rights to, and with them.
func lookAtPools(t *testing.T, cluster *controlplane.Cluster, browser *http.Client, base string) {
	t.Helper()
	code, body := clitest.Open(t, browser, base+"/local/v1/workerpools")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "You may not read WorkerPools, which requires the rights get and list of workerpools.foresail.dev")
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	clitest.NewPool(t, objects)
	annMay(t, cluster, "ann-pools", rbacv1.PolicyRule{APIGroups: []string{"foresail.dev"},
		Resources: []string{"workerpools"}, Verbs: []string{"get", "list"}})
	clitest.Eventually(t, func() bool { // once the API server knows of the binding
		_, body = clitest.Open(t, browser, base+"/local/v1/workerpools")
		return strings.Contains(body, `"name":"workers"`)
	})
	_, body = clitest.Open(t, browser, base+"/local/v1/workerpools/workers")
	assert.Contains(t, body, "because three pods are pending")
	assert.Contains(t, body, `"nodesError":"list nodes: nodes is forbidden`)
}

// askAboutPods has ann, who may neither list pods nor have tokens for it, ask about pods.
func askAboutPods(t *testing.T, browser *http.Client, base string) {
	t.Helper()
	_, body := clitest.Open(t, browser, base+"/local/v1/pods")
	assert.Contains(t, body, "You may not list the pods of all namespaces")
	_, body = clitest.Open(t, browser, base+"/local/v1/pods/default/checkout")
	assert.Contains(t, body, "get a token of the ServiceAccount foresail-explain in namespace foresail-system, for which the Role foresail-explain is")
}

// TestDashboardOfACluster has a user with no rights but the Role foresail-dashboard look at a real
// Foresail, without a tunnel.
func TestDashboardOfACluster(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	clitest.WithDefinitions(t, cluster, "../../manifests")
	applyManifests(t, cluster, "base/namespace.yaml", "base/serviceaccount.yaml", "components/dashboard/rbac.yaml",
		"examples/predictedmetric.yaml")
	user := withRole(t, cluster, "ann", "foresail-dashboard")
	free := freePorts(t, 3)
	cert, _, err := cluster.ServingCertificate("localhost", "127.0.0.1")
	require.NoError(t, err)
	server := fmt.Sprintf("https://127.0.0.1:%d", free[2])
	p := runAside(t, "run", "--dashboard", "--kubeconfig", cluster.Kubeconfig(), "--apiservice=none",
		"--leader-elect=false", "--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(free[0]), "--http-address", fmt.Sprintf("127.0.0.1:%d", free[1]),
		"--metrics-address", strings.TrimPrefix(server, "https://"), "--metrics-cert-dir", filepath.Dir(cert))
	clitest.Eventually(t, func() bool {
		require.False(t, p.hasEnded(), "it has ended: %s", p.stderr)
		return clitest.Status(t, free[1], "/readyz") == http.StatusOK
	})
	authorities := clitest.File(t, "ca.crt", string(cluster.CA()))
	browser, base, _ := clitest.Browse(t, newRoot(time.Now), "--kubeconfig", user, "--server", server,
		"--server-ca-file", authorities)
	clitest.Eventually(t, func() bool { // once there is a point of it
		code, body := clitest.Open(t, browser, base+dashboard.MetricsPath+"/default/checkout")
		require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, code, body)
		return strings.Contains(body, `"reason":["`)
	})
	code, body := clitest.Open(t, browser, base+dashboard.MetricsPath)
	assert.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, `"namespace":"default","name":"checkout"`)

	askWhatIf(t, browser, base)
	askAboutPods(t, browser, base)
	elsewhere := []string{"dashboard", "--kubeconfig", user, "--server", server, "--server-ca-file", authorities,
		"--foresail-namespace", "default"}
	_, stdout, stderr := foresail(t, "", elsewhere...)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "for which the Role foresail-dashboard is")
	lookAtPools(t, cluster, browser, base)
	_, _, said := clitest.Browse(t, newRoot(time.Now), elsewhere[1:]...)
	assert.Regexp(t, `^Open \S+#workerpools\nPredictedMetrics are not shown: .*for which the Role foresail-dashboard is`, said)
	lookAtEvents(t, cluster, browser, base)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.CA()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	own, err := cluster.ServiceAccountToken(t.Context(), "foresail-system", "foresail")
	require.NoError(t, err)
	shown, err := cluster.ServiceAccountToken(t.Context(), "foresail-system", "foresail-dashboard")
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
		code, _ := getWith(t, client, server+c.path, c.token)
		assert.Equal(t, c.code, code, c.path)
	}
	assert.Equal(t, http.StatusNotFound, clitest.Status(t, free[1], dashboard.MetricsPath), "probes alone are open")
	p.end(t)
}
