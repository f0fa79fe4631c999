package workload

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// testPod is a pod on an address of its own, with ports that are free there now.
func testPod(t *testing.T, name, ip string) *corev1.Pod {
	t.Helper()
	var ports [2]int32
	for i := range ports {
		listener, err := net.Listen("tcp", ip+":0")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		ports[i] = int32(listener.Addr().(*net.TCPAddr).Port)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, UID: types.UID(name + "-1"),
			Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar"},
			{Name: "main", Ports: []corev1.ContainerPort{
				{Name: AppPortName, ContainerPort: ports[0]}, {Name: MetricsPortName, ContainerPort: ports[1]},
			}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}
}

func addresses(t *testing.T, pod *corev1.Pod) (app, metrics string) {
	t.Helper()
	a, err := AppAddress(pod)
	require.NoError(t, err)
	m, err := MetricsAddress(pod)
	require.NoError(t, err)
	return a.String(), m.String()
}

// run starts RunWithClient and returns a function that ends it and waits for it.
func run(t *testing.T, client *fake.Clientset, options Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- RunWithClient(ctx, client, options) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-returned)
		}
	}
	t.Cleanup(stop)
	return stop
}

func listening(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 10*ms, what)
}

func TestRunServesPodsWhileTheyRun(t *testing.T) {
	pod := testPod(t, "one", "127.0.0.41")
	app, metrics := addresses(t, pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	other := testPod(t, "other", "127.0.0.42")
	other.Labels = nil
	otherApp, _ := addresses(t, other)
	client := fake.NewClientset(pod, other)
	stop := run(t, client, Options{Namespace: "test", Selector: "app=web"})
	pods := client.CoreV1().Pods("test")

	marker := testPod(t, "marker", "127.0.0.43")
	markerApp, _ := addresses(t, marker)
	_, err := pods.Create(t.Context(), marker, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { return listening(markerApp) }, "the marker is served")
	assert.False(t, listening(app), "one is not running yet")
	assert.False(t, listening(otherApp), "the selector leaves other out")

	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.41"} // running, not ready
	_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { return listening(app) && listening(metrics) }, "one is served")
	status, body, _ := get(t, "http://"+app)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "test/one\n", body)
	assert.EqualValues(t, 1, scrape(t, "http://"+metrics)["workload_requests_served_total"])

	require.NoError(t, pods.Delete(t.Context(), "one", metav1.DeleteOptions{}))
	eventually(t, func() bool { return !listening(app) && !listening(metrics) }, "one is closed")
	assert.True(t, listening(markerApp))

	marker.Status.Phase = corev1.PodFailed
	_, err = pods.UpdateStatus(t.Context(), marker, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { return !listening(markerApp) }, "the failed pod is closed")
	stop()
}

func TestRemovalCutsConnections(t *testing.T) {
	pod := testPod(t, "slow", "127.0.0.44")
	pod.Annotations = map[string]string{ServiceTimeAnnotation: "1h"}
	app, metrics := addresses(t, pod)
	client := fake.NewClientset(pod)
	run(t, client, Options{})
	eventually(t, func() bool { return listening(app) && listening(metrics) }, "slow is served")

	failed := make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + app)
		if err == nil {
			_ = response.Body.Close()
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		failed <- err
	}()
	eventually(t, func() bool {
		values, err := read("http://" + metrics)
		return err == nil && values["workload_queue_length"] == 1
	}, "the request is in service")
	require.NoError(t, client.CoreV1().Pods("test").Delete(t.Context(), "slow", metav1.DeleteOptions{}))
	select {
	case err := <-failed:
		require.ErrorContains(t, err, "EOF")
	case <-time.After(20 * time.Second):
		t.Fatal("the connection outlived its pod")
	}
}

func TestEndOfRunDoesNotDrain(t *testing.T) {
	pod := testPod(t, "slow", "127.0.0.45")
	pod.Annotations = map[string]string{ServiceTimeAnnotation: "1h"}
	app, metrics := addresses(t, pod)
	stop := run(t, fake.NewClientset(pod), Options{Drain: time.Hour})
	eventually(t, func() bool { return listening(app) && listening(metrics) }, "slow is served")
	go func() {
		if response, err := http.Get("http://" + app); err == nil {
			_ = response.Body.Close()
		}
	}()
	eventually(t, func() bool {
		values, err := read("http://" + metrics)
		return err == nil && values["workload_queue_length"] == 1
	}, "the request is in service")
	stop()
	assert.False(t, listening(app))
}

func TestAddressHeldByAnotherIsTakenOnceFree(t *testing.T) {
	pod := testPod(t, "successor", "127.0.0.46")
	app, metrics := addresses(t, pod)
	holder, err := net.Listen("tcp", app)
	require.NoError(t, err)

	logged, failed := make(chan string, 1), make(chan error, 1)
	logger := funcr.New(func(_, line string) { logged <- line }, funcr.Options{})
	f := newFleet(Options{Model: DefaultModel(), Failed: func(err error) { failed <- err }})
	f.sync(klog.NewContext(t.Context(), logger), pod)
	assert.Contains(t, <-logged, "address already in use")
	assert.False(t, listening(metrics), "both ports or none")
	err = <-failed
	require.ErrorContains(t, err, "pod test/successor is not served: listen tcp "+app)
	require.ErrorContains(t, err, "stop that program")

	require.NoError(t, holder.Close())
	eventually(t, func() bool { _, err := read("http://" + metrics); return err == nil },
		"the address is taken once it is free")
	f.stop(cache.MetaObjectToName(pod))
	f.wait()
	assert.Empty(t, logged, "it is logged once")
	assert.Empty(t, failed, "it is reported once")
}

func TestReplacedPodIsServedAnew(t *testing.T) {
	f := newFleet(Options{Model: DefaultModel()})
	pod := testPod(t, "same", "127.0.0.47")
	app, metrics := addresses(t, pod)
	f.sync(t.Context(), pod)
	eventually(t, func() bool { return listening(app) }, "the first is served")
	require.Equal(t, http.StatusOK, func() int { status, _, _ := get(t, "http://"+app); return status }())

	successor := pod.DeepCopy()
	successor.UID = "same-2"
	f.sync(t.Context(), successor)
	eventually(t, func() bool {
		values, err := read("http://" + metrics)
		return err == nil && values["workload_requests_total"] == 0
	}, "the second begins with nothing served")
	f.stop(cache.MetaObjectToName(successor))
	f.wait()
	assert.False(t, listening(app))
}

func TestPodsThatCannotBeServed(t *testing.T) {
	f := newFleet(Options{Model: DefaultModel()})
	for want, change := range map[string]func(*corev1.Pod){
		"must be a loopback address": func(p *corev1.Pod) { p.Status.PodIP = "192.0.2.1" },
		"status.podIP":               func(p *corev1.Pod) { p.Status.PodIP = "localhost" },
		"must differ": func(p *corev1.Pod) {
			p.Spec.Containers[1].Ports[1].ContainerPort = p.Spec.Containers[1].Ports[0].ContainerPort
		},
		"time: invalid duration":       func(p *corev1.Pod) { p.Annotations = map[string]string{ServiceTimeAnnotation: "fast"} },
		"service time 0s: must be abo": func(p *corev1.Pod) { p.Annotations = map[string]string{ServiceTimeAnnotation: "0s"} },
	} {
		pod := testPod(t, "bad", "127.0.0.48")
		change(pod)
		require.ErrorContains(t, f.serve(t.Context(), pod, nil), want)
		failed := make(chan error, 1)
		reporting := newFleet(Options{Model: DefaultModel(), Failed: func(err error) { failed <- err }})
		reporting.sync(t.Context(), pod)
		require.ErrorContains(t, <-failed, want)
	}
}

func TestDefaultPorts(t *testing.T) {
	pod := testPod(t, "plain", "127.0.0.49")
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	app, metrics := addresses(t, pod)
	assert.Equal(t, "127.0.0.49:8080", app)
	assert.Equal(t, "127.0.0.49:9090", metrics)
}

func TestRunRefusesBadOptions(t *testing.T) {
	client := fake.NewClientset()
	require.ErrorContains(t, RunWithClient(t.Context(), client, Options{Selector: "a=b=c"}), "label selector")
	require.ErrorContains(t, RunWithClient(t.Context(), client,
		Options{Model: Model{ServiceTime: 1, Jitter: 2, QueueLimit: 1}}), "jitter")
}
