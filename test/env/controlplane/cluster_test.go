package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	defaultReadyDelay = time.Second
	slowReadyDelay    = 3 * time.Second
)

// TestCluster takes one cluster through what tests of other packages rely on; its steps follow each other.
func TestCluster(t *testing.T) {
	binaries, err := Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	began := time.Now()
	cluster, err := Start(t.Context(), Options{
		Binaries:    binaries,
		Nodes:       3,
		ReadyDelay:  defaultReadyDelay,
		Dir:         t.TempDir(),
		AuditPolicy: []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [watched]}, {level: None}]\n"),
		ExtraArgs: map[Component][]string{
			ControllerManager: {"--horizontal-pod-autoscaler-sync-period=1s"},
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	t.Logf("started in %.1f s", time.Since(began).Seconds())

	steps := []struct {
		name string
		run  func(*testing.T, *Cluster)
	}{
		{"pods become ready after the delay", testPodsBecomeReady},
		{"a pod's own delay goes before the cluster's", testReadyDelayAnnotation},
		{"kwok logs an invalid delay", testBadReadyDelay},
		{"readiness taken away stays away", testReadinessTakenAway},
		{"addresses are given once", testAddressesAreGivenOnce},
		{"definitions and their objects are applied together", testApplyDefinition},
		{"users have the permissions they are given", testPermissions},
		{"requests are logged that the audit policy names", testAuditLog},
		{"namespaces are deleted", testNamespaceDeletion},
		{"a further scheduler schedules what names it", testFurtherScheduler},
		{"the HPA controller reads an aggregated metric", testAggregatedMetricScales},
		{"a second cluster is another cluster", testSecondCluster},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, cluster) }) {
			return
		}
	}
	require.NoError(t, cluster.Err())
	requireStopLeavesNothing(t, cluster)
}

// requireStopLeavesNothing stops a cluster and looks for what it may have left.
func requireStopLeavesNothing(t *testing.T, cluster *Cluster) {
	t.Helper()
	pids := cluster.PIDs()
	require.Len(t, pids, len(Components()))
	began := time.Now()
	require.NoError(t, cluster.Stop())
	t.Logf("stopped in %.1f s", time.Since(began).Seconds())
	for component, pid := range pids {
		require.True(t, gone(pid), "%s (pid %d) is still there", component, pid)
	}
	require.NoDirExists(t, cluster.Dir())
	<-cluster.Done()
}

// deployment returns the manifest of a Deployment of pods without anything to run.
func deployment(name string, replicas int, delay string) []byte {
	annotations := "{}"
	if delay != "" {
		annotations = fmt.Sprintf("{%s: %q}", ReadyDelayAnnotation, delay)
	}
	return fmt.Appendf(nil, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: %[3]s
    spec:
      containers: [{name: main, image: none}]
`, name, replicas, annotations)
}

func listPods(ctx context.Context, cluster *Cluster, app string) ([]corev1.Pod, error) {
	list, err := cluster.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func readyCondition(pod corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// waitPods waits until exactly n pods of an app are there and all fulfil a condition.
func waitPods(t *testing.T, cluster *Cluster, app string, n int, what string,
	fulfils func(corev1.Pod) bool) []corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var pods []corev1.Pod
	err := cluster.poll(ctx, fmt.Sprintf("%d pods of %s to be %s", n, app, what), func(ctx context.Context) error {
		var err error
		if pods, err = listPods(ctx, cluster, app); err != nil {
			return err
		}
		if len(pods) != n {
			return fmt.Errorf("%d pods", len(pods))
		}
		for _, pod := range pods {
			if !fulfils(pod) {
				return fmt.Errorf("pod %s: %s", pod.Name, pod.Status.String())
			}
		}
		return nil
	})
	require.NoError(t, err)
	return pods
}

func isRunning(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func isReady(pod corev1.Pod) bool { return readyCondition(pod).Status == corev1.ConditionTrue }

func apply(t *testing.T, cluster *Cluster, manifests ...[]byte) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Apply(t.Context(), manifests...)
	require.NoError(t, err)
	return objects
}

func testPodsBecomeReady(t *testing.T, cluster *Cluster) {
	apply(t, cluster, deployment("plain", 6, ""))
	pods := waitPods(t, cluster, "plain", 6, "ready", isReady)
	seen := map[string]bool{}
	nodes := map[string]bool{}
	for _, pod := range pods {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		require.NoError(t, err)
		require.True(t, cluster.PodCIDR().Contains(address), "%s within %s", address, cluster.PodCIDR())
		require.False(t, seen[pod.Status.PodIP], "address %s given twice", address)
		seen[pod.Status.PodIP] = true
		nodes[pod.Spec.NodeName] = true
		delay := readyCondition(pod).LastTransitionTime.Sub(pod.Status.StartTime.Time)
		// Both times are cut to whole seconds.
		require.GreaterOrEqual(t, delay, defaultReadyDelay-time.Second)
		require.LessOrEqual(t, delay, defaultReadyDelay+2*time.Second)

		listener, err := net.Listen("tcp", net.JoinHostPort(pod.Status.PodIP, "0"))
		require.NoError(t, err, "a program can listen on a pod's address")
		require.NoError(t, listener.Close())
	}
	require.Len(t, nodes, 3, "the scheduler spreads pods over the nodes")
}

// dueTime reads when a pod that is starting will be ready.
func dueTime(t *testing.T, pod corev1.Pod) time.Time {
	t.Helper()
	condition := readyCondition(pod)
	require.Equal(t, corev1.ConditionFalse, condition.Status)
	words := strings.Fields(condition.Message)
	require.NotEmpty(t, words)
	due, err := time.Parse(time.RFC3339Nano, words[len(words)-1])
	require.NoError(t, err)
	return due
}

func testReadyDelayAnnotation(t *testing.T, cluster *Cluster) {
	apply(t, cluster, deployment("slow", 1, slowReadyDelay.String()))
	started := waitPods(t, cluster, "slow", 1, "running", isRunning)[0]
	due := dueTime(t, started)
	delay := due.Sub(started.Status.StartTime.Time)
	require.GreaterOrEqual(t, delay, slowReadyDelay)
	require.Less(t, delay, slowReadyDelay+time.Second, "the start is cut to whole seconds")
	require.NotEmpty(t, started.Status.PodIP, "a pod has its address before it is ready")

	// What happens to a pod while it starts, half-way say, does not start its delay anew.
	apply(t, cluster, deployment("half", 1, (slowReadyDelay/2).String()))
	waitPods(t, cluster, "half", 1, "ready", isReady)
	_, err := cluster.Client().CoreV1().Pods("default").Patch(t.Context(), started.Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	ready := waitPods(t, cluster, "slow", 1, "ready", isReady)[0]
	late := time.Since(due)
	require.GreaterOrEqual(t, late, time.Duration(0), "ready too early")
	require.Less(t, late, time.Second)
	require.Equal(t, started.Status.PodIP, ready.Status.PodIP)
	require.Equal(t, started.Status.ContainerStatuses[0].State, ready.Status.ContainerStatuses[0].State)
	require.True(t, ready.Status.ContainerStatuses[0].Ready)
	require.Empty(t, readyCondition(ready).Message)
}

func testBadReadyDelay(t *testing.T, cluster *Cluster) {
	apply(t, cluster, deployment("never", 1, "soon"))
	require.NoError(t, cluster.poll(timeout(t), "kwok's complaint", func(context.Context) error {
		log, err := os.ReadFile(cluster.LogFile(Kwok))
		if err != nil {
			return err
		}
		if !strings.Contains(string(log), `invalid duration \"soon\"`) {
			return errors.New("none in its log")
		}
		return nil
	}))
	pods := waitPods(t, cluster, "never", 1, "pending",
		func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending })
	require.Empty(t, pods[0].Status.PodIP)
}

func testReadinessTakenAway(t *testing.T, cluster *Cluster) {
	pod := waitPods(t, cluster, "slow", 1, "ready", isReady)[0]
	_, err := cluster.Client().CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"TakenAway"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	// A pod that starts and becomes ready meanwhile shows that kwok had its turn.
	apply(t, cluster, deployment("meanwhile", 1, "1ms"))
	waitPods(t, cluster, "meanwhile", 1, "ready", isReady)
	pods, err := listPods(t.Context(), cluster, "slow")
	require.NoError(t, err)
	require.Len(t, pods, 1)
	require.False(t, isReady(pods[0]))
}

func scale(t *testing.T, cluster *Cluster, name string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := cluster.Client().AppsV1().Deployments("default").
		Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
}

func testAddressesAreGivenOnce(t *testing.T, cluster *Cluster) {
	seen := map[string]bool{}
	for range 3 {
		scale(t, cluster, "plain", 20)
		for _, pod := range waitPods(t, cluster, "plain", 20, "running", isRunning) {
			require.False(t, seen[pod.Status.PodIP], "address %s given twice", pod.Status.PodIP)
			seen[pod.Status.PodIP] = true
		}
		began := time.Now()
		scale(t, cluster, "plain", 0)
		waitPods(t, cluster, "plain", 0, "gone", isRunning)
		require.Less(t, time.Since(began), 10*time.Second)
	}

	// Owned objects go with their owner: that is the garbage collector's work.
	scale(t, cluster, "plain", 2)
	waitPods(t, cluster, "plain", 2, "ready", isReady)
	policy := metav1.DeletePropagationBackground
	err := cluster.Client().AppsV1().Deployments("default").Delete(t.Context(), "plain",
		metav1.DeleteOptions{PropagationPolicy: &policy})
	require.NoError(t, err)
	waitPods(t, cluster, "plain", 0, "gone", isRunning)
}

// testEndpointSlices needs a cluster whose pods are not on loopback addresses.
func testEndpointSlices(t *testing.T, cluster *Cluster) {
	t.Helper()
	apply(t, cluster, deployment("web", 3, "1ms"), []byte(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`))
	pods := waitPods(t, cluster, "web", 3, "ready", isReady)
	want := map[string]bool{}
	for _, pod := range pods {
		require.True(t, cluster.PodCIDR().Contains(netip.MustParseAddr(pod.Status.PodIP)))
		want[pod.Status.PodIP] = true
	}
	selector := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"}
	err := cluster.poll(timeout(t), "endpoint slices", func(ctx context.Context) error {
		slices, err := cluster.Client().DiscoveryV1().EndpointSlices("default").List(ctx, selector)
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready[endpoint.Addresses[0]] = true
				}
			}
		}
		if fmt.Sprint(ready) != fmt.Sprint(want) {
			return fmt.Errorf("ready %v, want %v", ready, want)
		}
		return nil
	})
	require.NoError(t, err)
}

// timeout returns a context that bounds one wait.
func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func testApplyDefinition(t *testing.T, cluster *Cluster) {
	objects := apply(t, cluster, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 3}}}}}}
---
apiVersion: example.org/v1
kind: Gauge
metadata: {name: one}
spec: {}
`))
	require.Len(t, objects, 2)
	require.Equal(t, "default", objects[1].GetNamespace())
	size, found, err := unstructured.NestedInt64(objects[1].Object, "spec", "size")
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, 3, size)

	_, err = cluster.Apply(t.Context(), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n"))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "Bad_Name")
}

func testPermissions(t *testing.T, cluster *Cluster) {
	config, err := cluster.RESTConfigFor("jane", "team")
	require.NoError(t, err)
	jane, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = jane.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "jane"`)

	apply(t, cluster, []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}
- {kind: ServiceAccount, name: reader, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
`))
	path, err := cluster.KubeconfigForServiceAccount(t.Context(), "default", "reader")
	require.NoError(t, err)
	config, err = loadKubeconfig(path)
	require.NoError(t, err)
	reader, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for _, client := range []kubernetes.Interface{jane, reader} {
		require.NoError(t, cluster.poll(timeout(t), "the permission", func(ctx context.Context) error {
			_, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			return err
		}))
		_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{},
			metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	_, err = cluster.ServiceAccountToken(t.Context(), "default", "nobody")
	require.ErrorContains(t, err, "default/nobody")
}

func testAuditLog(t *testing.T, cluster *Cluster) {
	config, err := cluster.RESTConfigFor("watched")
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	log, err := os.ReadFile(cluster.AuditLog())
	require.NoError(t, err)
	require.Contains(t, string(log), `"authorization.k8s.io/decision":"forbid"`)
	for line := range strings.Lines(string(log)) {
		require.Contains(t, line, `"username":"watched"`)
	}
}

func testNamespaceDeletion(t *testing.T, cluster *Cluster) {
	apply(t, cluster, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: brief}\n"),
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: brief}\n"))
	namespaces := cluster.Client().CoreV1().Namespaces()
	require.NoError(t, namespaces.Delete(t.Context(), "brief", metav1.DeleteOptions{}))
	require.NoError(t, cluster.poll(timeout(t), "the namespace to go", func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, "brief", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	}))
}

// testSecondCluster runs a cluster beside the first, breaks it, and has its context end it.
func testSecondCluster(t *testing.T, first *Cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	second, err := Start(ctx, Options{
		Binaries: first.options.Binaries,
		Dir:      t.TempDir(),
		PodCIDR:  netip.MustParsePrefix("198.18.0.0/16"),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Stop()) }()
	t.Logf("started in %.1f s", time.Since(began).Seconds())

	require.NotEqual(t, first.URL(), second.URL())
	nodes, err := second.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, nodes.Items)
	names, err := second.AddNodes(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"node-1", "node-2"}, names)
	testEndpointSlices(t, second)
	require.NoError(t, second.Err())

	require.NoError(t, syscall.Kill(second.PIDs()[Scheduler], syscall.SIGKILL))
	<-second.Done()
	require.ErrorContains(t, second.Err(), "kube-scheduler")
	require.ErrorContains(t, second.Err(), "signal: killed")
	require.ErrorContains(t, second.Err(), "last lines of its log:")
	_, err = second.AddNodes(t.Context(), 1)
	require.ErrorIs(t, err, second.Err(), "what waits for a broken cluster gives up")
	nodes, err = second.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "the other components go on")
	require.Len(t, nodes.Items, 3)

	cancel()
	require.Eventually(t, func() bool { return !exists(second.Dir()) }, 20*time.Second, pollInterval)
	for component, pid := range second.PIDs() {
		require.Eventually(t, func() bool { return gone(pid) }, 20*time.Second, pollInterval, component)
	}
	require.ErrorContains(t, second.Err(), "kube-scheduler", "the reason outlives the cluster")
}

func TestStartSaysWhyAComponentFails(t *testing.T) {
	binaries, err := Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = Start(t.Context(), Options{
		Binaries:  binaries,
		Dir:       dir,
		ExtraArgs: map[Component][]string{APIServer: {"--no-such-flag"}},
	})
	require.ErrorContains(t, err, "kube-apiserver")
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStartRefusesBadOptions(t *testing.T) {
	for message, options := range map[string]Options{
		"Options.ReadyDelay: -1s": {ReadyDelay: -time.Second},
		"Options.Nodes: -1":       {Nodes: -1},
		"Options.Nodes: 1":        {Nodes: 1, APIOnly: true},
		"Options.PodCIDR":         {PodCIDR: netip.MustParsePrefix("127.9.0.1/16")},
		`"kubelet": want one of`:  {ExtraArgs: map[Component][]string{"kubelet": nil}},
	} {
		_, err := Start(t.Context(), options)
		require.ErrorContains(t, err, message)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	binaries, err := Build(t.Context(), &bytes.Buffer{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	_, err = Start(ctx, Options{Binaries: binaries, Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
