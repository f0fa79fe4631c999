//go:build long

package tenants

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
)

// span is how long the hostile tenant is at it.
var span = flag.Duration("span", 2*time.Minute, "how long a hostile tenant is at it")

const (
	// memoryLimit is that of the manifests, in bytes.
	memoryLimit = 1 << 30
	// readGoal and ageGoal are what the victim should notice at the most, at the 99th percentile
	// and at all. They are printed: a busy machine must not fail the test.
	readGoal, ageGoal = 100 * time.Millisecond, 2 * time.Second
)

// TestHostileTenant has one tenant do at once all that was ever found to harm others, on the
// servers, the receiver and the nodes that the other uses. The HPA of that one goes on to read the
// right value of fresh samples of each source, and the process stays within the memory of the
// manifests.
func TestHostileTenant(t *testing.T) {
	shop, mallory := newTenant(t, "shop"), newTenant(t, "attacker")
	scaler := newScaler(t)
	process := startForesail(t, "hostile", []string{"FORESAIL_MEMORY_LIMIT=" + strconv.Itoa(memoryLimit)},
		scaler.flags...)
	startMonitoring(t, "app=checkout")
	serveSlowly(t, shop)
	const replicas = 10
	shop.create(t, deployment("checkout", replicas))
	shop.ready(t, "checkout", replicas)
	require.NoError(t, shared.ServePages(t.Context(), "shop", "app=checkout", newVault("", 600)))
	for name, source := range victims() {
		shop.create(t, predictedMetric(name, "checkout", source, ""))
	}
	shop.create(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: checkout}, spec: {
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}, minReplicas: 2, maxReplicas: 20,
  metrics: [{type: External, external: {metric: {name: predicted_load_total, selector: {matchLabels: {predictedmetric: pods}}}, target: {type: AverageValue, averageValue: 700m}}}],
  behavior: {scaleUp: {tolerance: "0"}, scaleDown: {tolerance: "0", stabilizationWindowSeconds: 30}}}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for name := range victims() {
			served, err := shop.read(name)
			require.NoError(c, err)
			assert.InDelta(c, replicas*0.7, served, 1e-9, name)
		}
	}, patience, time.Second)

	ways := map[string]way{"KEDA": {"pods", shop.asKEDA(t, scaler, "pods")}}
	for name := range victims() {
		ways[name] = way{name, func() (float64, error) { return shop.read(name) }}
	}
	before := shop.observe(t, process, ways, 20*time.Second)
	attack(t, mallory)
	mallory.otherCertificates(t, scaler, shop)
	begun := process.MustUsage(t)
	profiled := make(chan error, 1)
	go func() { profiled <- process.SaveProfiles(t.Context(), "hostile", *span/2) }()
	during := shop.observe(t, process, ways, *span)
	require.NoError(t, <-profiled)
	table := fmt.Sprintf("\n%-30s %7s %9s %9s %9s %9s %9s %9s\n", "", "reads", "p50", "p99", "most", "age p99",
		"age most", "failures")
	for name := range ways {
		table += before[name].row(name+", nobody else") + during[name].row(name+", a hostile tenant")
	}
	t.Log(table)
	usage := process.MustUsage(t)
	t.Logf("memory at the most %d MiB of %d, %.2f cores", usage.Peak>>20, memoryLimit>>20, usage.Cores(begun))
	describe(t, mallory)

	for name, o := range during {
		t.Logf("goals, %s: reads within %s at the 99th percentile: %t; samples at most %s old: %t",
			name, readGoal, quantile(o.reads, 0.99) <= readGoal, ageGoal, quantile(o.ages, 1) <= ageGoal)
		// The control plane has the same few cores as those who attack, and may itself be late with a read.
		assert.LessOrEqual(t, len(o.failures), len(o.reads)/100, "%s: %v", name, o.failures)
		assert.Equal(t, []float64{7}, o.values(), "%s: what ten pods carry at the threshold, which suffices", name)
	}
	assert.Less(t, usage.Peak, uint64(memoryLimit))
	deployed, err := shared.Cluster.Client().AppsV1().Deployments("shop").Get(t.Context(), "checkout", getOptions)
	require.NoError(t, err)
	assert.EqualValues(t, replicas, *deployed.Spec.Replicas)
}

// victims are the sources of the tenant that is attacked, by name of the PredictedMetric: those
// whose samples are a second apart, and its Prometheus server is one that the hostile tenant
// queries too.
func victims() map[string]string {
	all := sources()
	return map[string]string{
		"pods": all["pods"], "remote-write": all["remote-write"],
		"prometheus": fmt.Sprintf(`{prometheus: {address: "http://%s", query: secret_load, interval: 1s}}`,
			ports.Loopback(slowPort)),
	}
}

// way is how a prediction is read, and the PredictedMetric whose samples it is made of.
type way struct {
	metric string
	read   func() (float64, error)
}

// observation is what a tenant notices.
type observation struct {
	reads, ages []time.Duration
	served      []float64
	failures    []string
}

// observe reads each prediction ten times a second, and the age of its samples every other second.
func (n *tenant) observe(t *testing.T, process *foresail.Process, ways map[string]way,
	span time.Duration) map[string]*observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	all := map[string]*observation{}
	var group sync.WaitGroup
	for name, w := range ways {
		o := &observation{}
		all[name] = o
		group.Go(func() {
			every(ctx, 100*time.Millisecond, func() {
				begun := time.Now()
				served, err := w.read()
				if ctx.Err() == nil {
					o.note(time.Since(begun), served, err)
				}
			})
		})
	}
	group.Go(func() {
		every(ctx, 2*time.Second, func() {
			families, err := process.Metrics(ctx)
			if err != nil {
				return
			}
			for name, o := range all {
				if age, ok := families.Gauge("foresail_sample_age_seconds", "namespace", n.namespace, "predictedmetric",
					ways[name].metric); ok {
					o.ages = append(o.ages, time.Duration(age*float64(time.Second)))
				}
			}
		})
	})
	group.Wait()
	for _, o := range all {
		require.NotEmpty(t, o.reads)
		require.NotEmpty(t, o.ages)
	}
	return all
}

// note takes a read.
func (o *observation) note(took time.Duration, served float64, err error) {
	o.reads = append(o.reads, took)
	if err != nil {
		o.failures = append(o.failures, err.Error())
		return
	}
	o.served = append(o.served, served)
}

func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// values are those that were served, each once.
func (o *observation) values() []float64 {
	return slices.Compact(slices.Sorted(slices.Values(o.served)))
}

func (o *observation) row(name string) string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%-30s %7d %9s %9s %9s %9s %9s %9d\n", name, len(o.reads), ms(quantile(o.reads, 0.5)),
		ms(quantile(o.reads, 0.99)), ms(quantile(o.reads, 1)),
		ms(quantile(o.ages, 0.99)), ms(quantile(o.ages, 1)), len(o.failures))
}

func quantile(values []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// attack begins all that the tenant does; it ends with the test.
func attack(t *testing.T, n *tenant) {
	t.Helper()
	n.pods(t)
	n.metricsOfMany(t)
	n.slowQueries(t)
	n.slowBodies(t)
	n.wrongPasswords(t)
	n.games(t)
	n.restless(t)
}

// pods have pages that are long, late or endless, and PredictedMetrics that read each as often as they may.
func (n *tenant) pods(t *testing.T) {
	t.Helper()
	line := []byte("other{a=\"" + strings.Repeat("x", 100) + "\"} 1\n")
	chunk := bytes.Repeat(line, 1<<20/len(line))
	var turn atomic.Int64
	for name, c := range map[string]struct {
		replicas int
		page     http.HandlerFunc
	}{
		"long": {20, func(w http.ResponseWriter, _ *http.Request) {
			for range 16 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}},
		"full": {20, func(w http.ResponseWriter, _ *http.Request) { // a little less than is accepted
			_, _ = w.Write(chunk)
			_, _ = w.Write(chunk[:len(chunk)/len(line)*9/10*len(line)])
			_, _ = io.WriteString(w, "secret_load 0.5\n")
		}},
		"turns": {40, func(w http.ResponseWriter, r *http.Request) {
			if turn.Add(1)%2 == 0 {
				<-r.Context().Done()
			}
			_, _ = io.WriteString(w, "secret_load 0.5\n")
		}},
		"endless": {40, func(w http.ResponseWriter, r *http.Request) {
			every(r.Context(), 100*time.Millisecond, func() {
				_, _ = io.WriteString(w, "secret_load 0.5\n")
				_ = http.NewResponseController(w).Flush()
			})
		}},
		"greedy": {300, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret_load 0.5\n") }},
		"many":   {5, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret_load 0.5\n") }},
	} {
		n.create(t, deployment(name, c.replicas))
		n.ready(t, name, c.replicas)
		require.NoError(t, shared.ServePages(t.Context(), n.namespace, "app="+name, c.page))
		for i := range 5 {
			n.create(t, predictedMetric(fmt.Sprintf("%s-%d", name, i), name, sources()["pods"],
				", sampleInterval: 100ms"))
		}
	}
}

// metricsOfMany are 1,500 PredictedMetrics of one target.
func (n *tenant) metricsOfMany(t *testing.T) {
	t.Helper()
	for i := range 1500 {
		n.create(t, predictedMetric(fmt.Sprintf("one-of-many-%d", i), "many", sources()["pods"], ""))
	}
}

// serveSlowly has a server that the operator lists pass on what one tenant asks to the real
// Prometheus server, and answer others slowly and at length.
func serveSlowly(t *testing.T, n *tenant) {
	t.Helper()
	listener, err := net.Listen("tcp", ports.Loopback(slowPort))
	require.NoError(t, err)
	filler := bytes.Repeat([]byte(" "), 1<<20)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: ports.Loopback(prometheusPort)})
	own := url.QueryEscape(fmt.Sprintf("namespace=%q", n.namespace))
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			form, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if strings.Contains(r.URL.RawQuery+string(form), own) {
				r.Body = io.NopCloser(bytes.NewReader(form))
				proxy.ServeHTTP(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
			every(r.Context(), 200*time.Millisecond, func() { _, _ = w.Write(filler) })
		})}
	go func() { _ = server.Serve(listener) }() // its error is that it is closed
	t.Cleanup(func() { _ = server.Close() })
}

// slowQueries are 300 of the server that the other tenant queries too.
func (n *tenant) slowQueries(t *testing.T) {
	t.Helper()
	for i := range 300 {
		source := fmt.Sprintf(`{prometheus: {address: "http://%s", query: 'load_%d', interval: 1s}}`,
			ports.Loopback(slowPort), i)
		n.create(t, predictedMetric(fmt.Sprintf("slow-%d", i), "many", source, ""))
	}
}

// elsewhere dials from an address that is not the one of the operator's agent.
var elsewhere = net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

// slowBodies are 40 of the greatest length at a time at the receiver that the other tenant's
// samples are sent to. They have a right password, and arrive byte by byte.
func (n *tenant) slowBodies(t *testing.T) {
	t.Helper()
	for range 40 {
		n.keep(t, 100*time.Millisecond, func(int) error {
			body, w := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				every(ctx, 100*time.Millisecond, func() { _, _ = w.Write([]byte{0}) })
				_ = w.CloseWithError(ctx.Err()) // or the transport waits for more of the body
			}()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+receiver+"/api/v1/write", body)
			if err != nil {
				return err
			}
			request.ContentLength = 8 << 20
			request.SetBasicAuth(agent.Username, agent.Password)
			return sent(request)
		})
	}
}

// wrongPasswords are sent ten times a second.
func (n *tenant) wrongPasswords(t *testing.T) {
	t.Helper()
	n.keep(t, 100*time.Millisecond, func(i int) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+receiver+"/api/v1/write",
			strings.NewReader("x"))
		if err != nil {
			return err
		}
		request.SetBasicAuth(agent.Username, strconv.Itoa(i))
		return sent(request)
	})
}

// sent sends a request from elsewhere. What is answered does not matter.
func sent(request *http.Request) error {
	transport := &http.Transport{DialContext: elsewhere.DialContext, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

var games = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}

// games are targets of a kind that Foresail may not watch, whose selectors move from some pods to
// others all the time.
func (n *tenant) games(t *testing.T) {
	t.Helper()
	_, err := shared.Cluster.Apply(t.Context(), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Game, plural: games, singular: game}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: foresail-games}
rules:
- {apiGroups: [example.com], resources: [games/scale], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foresail-games}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: foresail-games}
subjects: [{kind: ServiceAccount, name: foresail, namespace: foresail-system}]
`))
	require.NoError(t, err)
	const many = 200
	for i := range many {
		n.create(t, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Game, metadata: {name: game-%d}, spec: {replicas: 5}}`, i))
		n.create(t, fmt.Sprintf(`{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetric, metadata: {name: game-%[1]d}, spec: {
  scaleTargetRef: {apiVersion: example.com/v1, kind: Game, name: game-%[1]d}, source: %s, threshold: 700m}}`, i, sources()["pods"]))
	}
	n.keep(t, 50*time.Millisecond, func(i int) error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(games)
		object.SetNamespace(n.namespace)
		object.SetName(fmt.Sprintf("game-%d", i%many))
		selector := []string{"app=many", "app=greedy"}[i/many%2]
		patch := fmt.Sprintf(`{"status":{"replicas":5,"selector":%q}}`, selector)
		return n.client.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// restless changes specs, and reads lists of all that it has.
func (n *tenant) restless(t *testing.T) {
	t.Helper()
	n.keep(t, 50*time.Millisecond, func(i int) error {
		pm := &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace,
			Name: fmt.Sprintf("one-of-many-%d", i%1500)}}
		patch := fmt.Sprintf(`{"spec":{"threshold":"%dm"}}`, 500+i%400)
		return n.client.Patch(t.Context(), pm, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	for range 3 {
		n.keep(t, 500*time.Millisecond, func(int) error {
			_, err := n.metrics.NamespacedMetrics(n.namespace).List("predicted_load", labels.Everything())
			return err
		})
	}
}

// keep does something again and again until the test ends. That it fails is no matter.
func (n *tenant) keep(t *testing.T, interval time.Duration, do func(i int) error) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		i, failures := 0, 0
		var last error
		every(ctx, interval, func() {
			if err := do(i); err != nil {
				failures, last = failures+1, err
			}
			i++
		})
		if !errors.Is(last, context.Canceled) {
			fmt.Fprintf(os.Stderr, "%d of %d times it failed, the last time: %v\n", failures, i, last)
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// describe counts what has become of the tenant's PredictedMetrics.
func describe(t *testing.T, n *tenant) {
	t.Helper()
	var list v1alpha1.PredictedMetricList
	require.NoError(t, n.client.List(t.Context(), &list, client.InNamespace(n.namespace)))
	reasons := map[string]int{}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.Type == v1alpha1.ConditionReady {
				reasons[c.Reason]++
			}
		}
	}
	t.Logf("the hostile tenant's %d PredictedMetrics: %v", len(list.Items), reasons)
}
