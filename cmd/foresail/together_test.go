package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
)

// What fake servers of Prometheus are asked in tests.
const cpuOfNodes, memoryOfNodes = "rate(cpu[1m])", "last_over_time(memory[1m])"

// nodesOfPrometheus plays a server that has told the same of two nodes for long: one is idle, the
// other has little memory left.
func nodesOfPrometheus(w http.ResponseWriter, r *http.Request) {
	number := func(name string) float64 {
		x, _ := strconv.ParseFloat(r.FormValue(name), 64) // 0 is answered with nothing
		return x
	}
	used := map[string]string{cpuOfNodes: "1", memoryOfNodes: strconv.Itoa(1 << 30)}
	full := map[string]string{cpuOfNodes: "1", memoryOfNodes: strconv.Itoa(7 << 30)}
	var series []map[string]any
	for instance, values := range map[string]map[string]string{"10.0.0.1:9100": used, "10.0.0.2:9100": full} {
		var points [][2]any
		for t := number("start"); t <= number("end"); t += number("step") {
			points = append(points, [2]any{t, values[r.FormValue("query")]})
		}
		series = append(series, map[string]any{"metric": map[string]string{"node": instance}, "values": points})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success",
		"data": map[string]any{"resultType": "matrix", "result": series}})
}

// TestRunOfTheExtenderAlone has one process answer what a scheduler would ask, by what Prometheus
// tells of nodes, with no rights but those of the DaemonSet, in a cluster without WorkerPools.
func TestRunOfTheExtenderAlone(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	addNode(t, cluster, "idle", "10.0.0.1")
	addNode(t, cluster, "full", "10.0.0.2")
	addGuest(t, cluster, "full") // without one a pod would not be refused for what it would use
	applyManifests(t, cluster, "base/namespace.yaml", "base/serviceaccount.yaml", "base/rbac-users.yaml",
		"overlays/extender/serviceaccount.yaml", "overlays/extender/binding.yaml", "components/extender-rights/rbac.yaml")
	_, err := cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "foresail-metrics-scraper"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "foresail-system", Name: "foresail-extender"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), "foresail-system", "foresail-extender")
	require.NoError(t, err)
	prometheus := httptest.NewServer(http.HandlerFunc(nodesOfPrometheus))
	defer prometheus.Close()
	free := freePorts(t, 4)
	secure, open, answers, authorized := free[0], free[1], free[2], free[3]
	cert, _, err := cluster.ServingCertificate("localhost", "127.0.0.1")
	require.NoError(t, err)

	// what was there before a Node is not its
	t.Setenv("FORESAIL_TEST_OPTIONS", "extender-warm-up=0s extender-metrics-interval=1s")
	p := runAside(t, "run", "--enable", "extender", "--kubeconfig", kubeconfig, "--extender-address",
		fmt.Sprintf("127.0.0.1:%d", answers),
		"--secure-port", strconv.Itoa(secure), "--http-address", fmt.Sprintf("127.0.0.1:%d", open), "--prometheus",
		prometheus.URL,
		"--extender-cpu-query", cpuOfNodes, "--extender-memory-query", memoryOfNodes,
		"--metrics-address", fmt.Sprintf("127.0.0.1:%d", authorized), "--metrics-cert-dir", filepath.Dir(cert),
	)
	clitest.Eventually(t, func() bool {
		require.False(t, p.hasEnded(), "it has ended: %s", p.stderr)
		return clitest.Status(t, open, "/readyz") == http.StatusOK
	})
	assert.Zero(t, clitest.Status(t, secure, "/"), "the adapter's door is not open")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid-1",
		CreationTimestamp: metav1.Now()}}
	pod.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: quantities("1", "1Gi")}}}
	args := extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{"idle", "full", "unknown"}}
	var result extenderv1.ExtenderFilterResult
	clitest.Eventually(t, func() bool {
		result = extenderv1.ExtenderFilterResult{}
		return asScheduler(t, answers, "filter", args, &result) && len(result.FailedAndUnresolvableNodes) > 0
	})
	assert.Equal(t, extenderv1.FailedNodesMap{"full": v1alpha1.FilteredElsewhere}, result.FailedAndUnresolvableNodes)
	assert.Equal(t, []string{"idle", "unknown"}, *result.NodeNames, "what is not known passes")
	args.NodeNames = result.NodeNames
	var scores extenderv1.HostPriorityList
	require.True(t, asScheduler(t, answers, "prioritize", args, &scores))
	require.Len(t, scores, 2)
	assert.Equal(t, extenderv1.HostPriority{Host: "idle", Score: 9}, scores[0], "2 of 4 cores: 0.65 + 0.35*0.5/0.65")

	code, stdout, complaints := foresail(t, "", "explain", "pod", "checkout", "-n", "shop",
		"--kubeconfig", cluster.Kubeconfig(), "--server", fmt.Sprintf("https://127.0.0.1:%d",
			authorized), "--server-ca-file", clitest.File(t, "ca.crt", string(cluster.CA())))
	require.Equal(t, cli.ExitDone, code, complaints)
	assert.Contains(t, stdout, "There is no such pod now.")
	lines := strings.Split(stdout, "\n")
	assert.Equal(t, strings.Fields("idle 9 0.50 1.00 0.00 1.00 4.00 1Gi 0 1Gi 8Gi"),
		strings.Fields(clitest.Rows(lines, "NODE")[1])[:11])
	assert.Contains(t, clitest.Rows(lines, "FILTERED FOR")[1], "full: memory up to 7Gi predicted")

	checkSurfaces(t, cluster, open, authorized)
	p.end(t)
	assert.NotContains(t, p.stderr.String(), "forbidden")
}

// checkSurfaces asks a process that runs the extender, at the port of its probes and at that of its
// metrics, as various clients.
func checkSurfaces(t *testing.T, cluster *controlplane.Cluster, open, authorized int) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.CA()))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	explains, metrics := extender.ExplainPath+"shop/checkout", "/metrics"
	asAccount := func(account, path string) (int, string) {
		token := ""
		if account != "" {
			var err error
			token, err = cluster.ServiceAccountToken(t.Context(), "foresail-system", account)
			require.NoError(t, err)
		}
		return getWith(t, client, fmt.Sprintf("https://127.0.0.1:%d%s", authorized, path), token)
	}
	for _, path := range []string{metrics, explains} {
		assert.Equal(t, http.StatusNotFound, clitest.Status(t, open, path), "probes alone are open")
		code, body := asAccount("", path)
		assert.Equal(t, http.StatusUnauthorized, code, path)
		assert.NotContains(t, body, "idle")
		code, body = asAccount("foresail", path)
		assert.Equal(t, http.StatusForbidden, code, path)
		assert.NotContains(t, body, "idle")
	}
	assert.Equal(t, http.StatusOK, clitest.Status(t, open, "/livez"))
	code, _ := asAccount("foresail-explain", metrics)
	assert.Equal(t, http.StatusForbidden, code, "explanations are all it may read")
	code, body := asAccount("foresail-explain", explains)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "idle")

	code, body = asAccount("foresail-extender", metrics)
	assert.Equal(t, http.StatusOK, code, "it may scrape")
	assert.Contains(t, body, "foresail_extender_request_duration_seconds")
}

// getWith returns what an address answers to a token; "" sends none.
func getWith(t *testing.T, client *http.Client, address, token string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// TestRunOfAllTogether has one process do everything that there is.
func TestRunOfAllTogether(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	clitest.WithDefinitions(t, cluster, "../../manifests")
	api := countRequests(t, cluster)
	addNode(t, cluster, "idle", "10.0.0.1")
	prometheus := httptest.NewServer(http.HandlerFunc(nodesOfPrometheus))
	defer prometheus.Close()
	free := freePorts(t, 5)
	secure, open, answers, metrics, scaler := free[0], free[1], free[2], free[3], fmt.Sprintf("127.0.0.1:%d", free[4])
	p := runAside(t, "run", "--enable", "adapter,extender", "--enable", "nodepool", "--kubeconfig", api.kubeconfig(t),
		"--apiservice=none", "--foresail-namespace", "default", "--bind-address", "127.0.0.1", "--secure-port",
		strconv.Itoa(secure),
		"--http-address", fmt.Sprintf("127.0.0.1:%d", open), "--extender-address", fmt.Sprintf("127.0.0.1:%d", answers),
		"--metrics-address", fmt.Sprintf("127.0.0.1:%d", metrics), "--allow-anonymous", "metrics", "--keda-address",
		scaler,
		"--prometheus", prometheus.URL, "--extender-cpu-query", cpuOfNodes, "--extender-memory-query", memoryOfNodes,
	)
	clitest.Eventually(t, func() bool {
		require.False(t, p.hasEnded(), "it has ended: %s", p.stderr)
		return clitest.Status(t, open, "/readyz") == http.StatusOK
	})
	door, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", secure))
	require.NoError(t, err, "the adapter's door is open")
	require.NoError(t, door.Close())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid-1"}}
	var result extenderv1.ExtenderFilterResult
	require.True(t, asScheduler(t, answers, "filter", extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{"idle"}},
		&result))
	assert.Equal(t, []string{"idle"}, *result.NodeNames)
	assert.Equal(t, http.StatusOK, clitest.Status(t, metrics, extender.ExplainPath+"shop/checkout"))
	assert.Equal(t, http.StatusNotFound, clitest.Status(t, metrics, extender.ExplainPath+"shop/cart"))
	assert.Equal(t, http.StatusOK, clitest.Status(t, metrics, "/metrics"))
	assert.Equal(t, 1, api.answered("/api/v1/pods"), "a list and a watch in one, for all")
	assert.Equal(t, 1, api.answered("/api/v1/nodes"), "a list and a watch in one, for all")
	stream := asKEDA(t, cluster, scaler)
	p.end(t)
	_, err = stream.Recv()
	assert.ErrorIs(t, err, io.EOF, "it ends in order")
}

// asKEDA asks for the target of a PredictedMetric whose Deployment does not exist, and returns a
// stream that is open.
func asKEDA(t *testing.T, cluster *controlplane.Cluster,
	address string) grpc.ServerStreamingClient[externalscaler.GetMetricSpecResponse] {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	client := externalscaler.NewExternalScalerClient(conn)
	ref := &externalscaler.ScaledObjectRef{Namespace: "default", Name: "checkout"}
	_, err = client.GetMetricSpec(t.Context(), ref)
	require.Equal(t, codes.NotFound, grpcstatus.Code(err), err)
	example, err := os.ReadFile("../../manifests/examples/predictedmetric.yaml")
	require.NoError(t, err)
	_, err = cluster.Apply(t.Context(), example)
	require.NoError(t, err)
	stream, err := client.StreamMetricSpec(t.Context(), ref)
	require.NoError(t, err)
	spec, err := stream.Recv()
	require.NoError(t, err)
	assert.EqualValues(t, 700, int64(1000*spec.MetricSpecs[0].TargetSizeFloat), "in milli-units, as KEDA truncates it")
	_, err = client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref})
	assert.Equal(t, codes.Unavailable, grpcstatus.Code(err), err)
	return stream
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

// addNode adds a Node that is Ready and has some room.
func addNode(t *testing.T, cluster *controlplane.Cluster, name, address string) {
	t.Helper()
	nodes := cluster.Client().CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Allocatable = quantities("4", "8Gi")
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now()}}
	_, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// addGuest adds a Pod that is bound to a Node.
func addGuest(t *testing.T, cluster *controlplane.Cluster, node string) {
	t.Helper()
	core := cluster.Client().CoreV1()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // nobody else makes it here
	_, err := core.ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "guest"}, Spec: corev1.PodSpec{NodeName: node}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
	_, err = core.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// asScheduler asks as kube-scheduler does, and tells whether there was an answer.
func asScheduler(t *testing.T, port int, verb string, args extenderv1.ExtenderArgs, answer any) bool {
	t.Helper()
	body, err := json.Marshal(args)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		fmt.Sprintf("https://127.0.0.1:%d%s/%s", port, extender.Prefix, verb), bytes.NewReader(body))
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, 2, response.ProtoMajor)
	require.NoError(t, json.NewDecoder(response.Body).Decode(answer))
	return true
}
