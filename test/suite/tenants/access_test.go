package tenants

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

var getOptions = metav1.GetOptions{}

// secret is in a label of the bank's series.
const secret = "customer-4711"

// vault answers for pods of the application vault, which are all at the same load.
type vault struct {
	labels string
	began  time.Time
	load   atomic.Int64 // thousandths; below 0: nothing is told
}

func newVault(labels string, load int64) *vault {
	v := &vault{labels: labels, began: time.Now()}
	v.load.Store(load)
	return v
}

func (v *vault) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	load := float64(v.load.Load()) / 1000
	if load < 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	// The latter two are what the kubelets of these tests take for the CPU time of a pod.
	fmt.Fprintf(w, `# TYPE secret_load gauge
secret_load%s %g
# TYPE workload_busy_seconds_total counter
workload_busy_seconds_total %g
# TYPE workload_queue_length gauge
workload_queue_length 0
`, v.labels, load, load*time.Since(v.began).Seconds())
}

// sources are the four, by name of the PredictedMetric, as a user would set each.
func sources() map[string]string {
	return map[string]string{
		"pods":         `{pods: {port: metrics, metric: secret_load}}`,
		"prometheus":   query("secret_load"),
		"remote-write": `{remoteWrite: {metric: secret_load}}`,
		"resource":     `{resource: {name: cpu}}`,
	}
}

func query(selector string) string {
	return fmt.Sprintf(`{prometheus: {address: "http://%s", query: '%s', interval: 1s}}`,
		ports.Loopback(prometheusPort), selector)
}

// attempts are queries by which a user may try to reach the series of the bank.
var attempts = map[string]string{
	"by-namespace":  `secret_load{namespace="bank"}`,
	"by-pattern":    `secret_load{namespace=~".+"}`,
	"by-absence":    `secret_load{namespace!="mallory"}`,
	"by-everything": `{__name__=~".+",secret!=""}`,
	"by-either":     `secret_load or secret_load{namespace="bank"}`,
	"by-label":      `label_replace(secret_load{namespace="bank"}, "namespace", "mallory", "", "")`,
}

// noSelectors are queries that the API server refuses to store.
var noSelectors = map[string]string{
	"by-comment": `secret_load{namespace="bank"} # {`,
}

// TestNamespacedUserThroughEachSource has the user of a namespace give pods the names and labels of
// the bank's, and PredictedMetrics the bank's target and metric. While they tell nothing, nothing
// must be known of them; while they tell of a hundred times the load, the bank's predictions must
// stay as they are.
func TestNamespacedUserThroughEachSource(t *testing.T) {
	bank, mallory := newTenant(t, "bank"), newTenant(t, "mallory")
	process := startForesail(t, "access", nil)
	startMonitoring(t, "app=vault")

	const replicas = 3
	bank.create(t, deployment("vault", replicas))
	bank.ready(t, "vault", replicas)
	require.NoError(t, shared.ServePages(t.Context(), "bank", "app=vault", newVault(`{secret="`+secret+`"}`, 500)))
	for name, source := range sources() {
		bank.create(t, predictedMetric(name, "vault", source, ""))
	}
	before := map[string]float64{}
	for name := range sources() {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			served, err := bank.read(name)
			require.NoError(c, err)
			assert.InDelta(c, replicas*0.7, served, 0.01) // three pods are right for the load, and an HPA keeps them
			before[name] = served
		}, patience, time.Second, "the bank's prediction from %s", name)
	}

	pages := newVault("", -1)
	pods := mallory.imitate(t, "vault")
	require.NoError(t, shared.ServePages(t.Context(), "mallory", "app=vault", pages))
	t.Run("the API server refuses what is the bank's", func(t *testing.T) { mallory.isRefused(t, bank) })
	t.Run("nothing is read of the bank", func(t *testing.T) { mallory.learnsNothing(t) })
	t.Run("nothing is changed for the bank", func(t *testing.T) {
		pages.load.Store(50_000)
		end := bank.watch(t, before)
		for name := range sources() {
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				served, err := mallory.read(name)
				require.NoError(c, err)
				assert.Greater(c, served, 40.0*float64(pods)) // her own
			}, patience, time.Second, "mallory's own prediction from %s", name)
		}
		end()
	})
	if t.Failed() {
		t.Log(process.LogTail())
	}
}

// startMonitoring runs what the operator has: a Prometheus, an agent that sends to Foresail, and
// metrics-server, for the pods that a label selects.
func startMonitoring(t *testing.T, selector string) {
	t.Helper()
	const quick = "--scrape.discovery-reload-interval=1s"
	for _, o := range []monitoring.PrometheusOptions{
		{Name: "prometheus", Port: prometheusPort},
		{Name: "agent", Agent: true, RemoteWrite: []monitoring.RemoteWrite{{
			URL: "http://" + receiver + "/api/v1/write", Version: 2, BatchSendDeadline: time.Second, BasicAuth: &agent,
		}}},
	} {
		o.Progress, o.Selector, o.ExtraArgs = os.Stderr, selector, []string{quick}
		p, err := monitoring.StartPrometheus(suite, shared.Cluster, o)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, p.Stop()) })
	}
	server, err := monitoring.StartMetricsServer(suite, shared.Cluster, monitoring.MetricsServerOptions{
		Progress: os.Stderr, Selector: selector, Resolution: 10 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
}

// imitate gives pods of the tenant the names and labels of the bank's, and PredictedMetrics their
// target. It returns how many pods there are.
func (n *tenant) imitate(t *testing.T, target string) int {
	t.Helper()
	n.create(t, deployment(target, 1))
	n.ready(t, target, 1)
	theirs, err := shared.Cluster.Client().CoreV1().Pods("bank").List(t.Context(),
		metav1.ListOptions{LabelSelector: "app=" + target})
	require.NoError(t, err)
	require.NotEmpty(t, theirs.Items)
	for _, pod := range theirs.Items {
		n.create(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: %s}`,
			pod.Name, target, podSpec))
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, theirs := range theirs.Items {
			own, err := shared.Cluster.Client().CoreV1().Pods(n.namespace).Get(t.Context(), theirs.Name, getOptions)
			require.NoError(c, err)
			assert.NotEmpty(c, own.Status.PodIP)
		}
	}, patience, 200*time.Millisecond)
	for name, source := range sources() {
		n.create(t, predictedMetric(name, target, source, ""))
	}
	for name, selector := range attempts {
		n.create(t, predictedMetric(name, target, query(selector), ""))
	}
	return 1 + len(theirs.Items)
}

// isRefused asks the API server itself.
func (n *tenant) isRefused(t *testing.T, bank *tenant) {
	for name, selector := range noSelectors {
		err := n.tryCreate(t.Context(), predictedMetric(name, "vault", query(selector), ""))
		assert.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
	}
	err := n.tryCreate(t.Context(), `{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric, metadata: {name: mine, namespace: bank}, spec: {
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vault}, source: {resource: {name: cpu}}, threshold: 700m}}`)
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = stack.ReadMetric(n.metrics, stack.App{Namespace: bank.namespace, Name: "pods",
		Metric: "predicted_load_total"})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	var theirs v1alpha1.PredictedMetricList
	err = n.client.List(t.Context(), &theirs, client.InNamespace(bank.namespace))
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// learnsNothing looks at all that the tenant is told for a while.
func (n *tenant) learnsNothing(t *testing.T) {
	all := len(sources()) + len(attempts)
	for range 20 {
		var list v1alpha1.PredictedMetricList
		require.NoError(t, n.client.List(t.Context(), &list, client.InNamespace(n.namespace)))
		require.Len(t, list.Items, all)
		for i := range list.Items {
			pm := &list.Items[i]
			served, err := n.read(pm.Name)
			if assert.Error(t, err, "%s: %v is served", pm.Name, served) {
				assert.NotContains(t, err.Error(), secret, pm.Name)
			}
			assert.NotContains(t, encoded(t, pm.Status), secret, pm.Name)
		}
		if t.Failed() {
			return
		}
		time.Sleep(time.Second) // between two looks
	}
	events, err := shared.Cluster.Client().EventsV1().Events(n.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.NotContains(t, encoded(t, events.Items), secret)
	var list v1alpha1.PredictedMetricList
	require.NoError(t, n.client.List(t.Context(), &list, client.InNamespace(n.namespace)))
	for i := range list.Items {
		assert.Equal(t, list.Items[i].Generation, list.Items[i].Status.ObservedGeneration, "%s has been looked at",
			list.Items[i].Name)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	content, err := json.Marshal(v)
	require.NoError(t, err)
	return string(content)
}

// watch checks each second, until it is called back, that predictions are what they were. Then
// there is one of each.
func (n *tenant) watch(t *testing.T, before map[string]float64) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	halt := sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	t.Cleanup(halt)
	looks := 0
	go func() {
		defer close(done)
		for {
			for name, was := range before {
				if served, err := n.read(name); err == nil { // a busy machine may be late with samples
					assert.InDelta(t, was, served, 0.01, name)
					looks++
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return func() {
		halt()
		t.Logf("%d looks", looks)
		for name, was := range before {
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				served, err := n.read(name)
				require.NoError(c, err)
				assert.InDelta(c, was, served, 0.01, name)
			}, patience, time.Second)
		}
	}
}
