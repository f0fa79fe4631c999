//go:build long

package keda_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/suite/keda"
)

//go:embed app.yaml
var appYAML string

var appTemplate = template.Must(template.New("app.yaml").Funcs(releaseFuncs).Parse(appYAML))

// app is an application that KEDA scales.
type app struct {
	*testing.T
	Namespace, Source, Threshold, Address string
	CPU                                   string // of the HPA's target for CPU, "" for no such trigger
	HPA                                   string // its name
	NoScaledObject                        bool   // that comes later
	Min, Fallback, DownWindow             int
	load                                  atomic.Uint64 // of all pods together
}

// newApp deploys one whose pods carry a load exactly, and waits until its HPA knows what it scales by.
func newApp(t *testing.T, namespace string, load float64, change func(*app)) *app {
	t.Helper()
	a := &app{
		T: t, Namespace: namespace, Source: "{pods: {port: metrics, metric: nodejs_eventloop_utilization}}",
		Threshold: "700m",
		Address:   shared.address, HPA: "app", Min: 4, DownWindow: 10,
	}
	if change != nil {
		change(a)
	}
	a.carry(load)
	shared.stack.Shares.Set(a.Namespace, "app", func() float64 { return math.Float64frombits(a.load.Load()) })
	var manifest bytes.Buffer
	require.NoError(t, appTemplate.Execute(&manifest, a))
	_, err := shared.stack.Cluster.Apply(t.Context(), manifest.Bytes())
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last words of KEDA's operator:\n%s", shared.keda.OperatorLog())
		}
		assert.NoError(t, shared.stack.Cluster.Client().CoreV1().Namespaces().Delete(context.Background(), a.Namespace,
			metav1.DeleteOptions{}))
	})
	return a
}

func (a *app) carry(load float64) { a.load.Store(math.Float64bits(load)) }

func (a *app) app() stack.App {
	return stack.App{Namespace: a.Namespace, Name: "app", Metric: "predicted_load_total"}
}

func (a *app) eventually(span time.Duration, what string, holds func(*assert.CollectT)) {
	a.Helper()
	require.EventuallyWithT(a, holds, span, 250*time.Millisecond, what)
}

func (a *app) hpa(c require.TestingT) *autoscalingv2.HorizontalPodAutoscaler {
	hpa, err := shared.stack.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(a.Namespace).Get(shared, a.HPA,
		metav1.GetOptions{})
	require.NoError(c, err)
	return hpa
}

func (a *app) replicas(c require.TestingT) int {
	d, err := shared.stack.Cluster.Client().AppsV1().Deployments(a.Namespace).Get(shared, "app", metav1.GetOptions{})
	require.NoError(c, err)
	return int(*d.Spec.Replicas)
}

// active is whether the HPA knows what it scales by.
func (a *app) active(c require.TestingT) bool {
	for _, x := range a.hpa(c).Status.Conditions {
		if x.Type == autoscalingv2.ScalingActive {
			return x.Status == corev1.ConditionTrue
		}
	}
	return false
}

// throughKEDA is what the HPA reads.
func (a *app) throughKEDA(c require.TestingT) (float64, error) {
	client, err := externalmetrics.NewForConfig(shared.stack.Cluster.RESTConfig())
	require.NoError(c, err)
	for _, m := range a.hpa(c).Spec.Metrics {
		if m.External == nil {
			continue
		}
		list, err := client.NamespacedMetrics(a.Namespace).List(m.External.Metric.Name,
			labels.SelectorFromSet(m.External.Metric.Selector.MatchLabels))
		if err != nil {
			return 0, err
		}
		require.Len(c, list.Items, 1)
		return float64(list.Items[0].Value.MilliValue()) / 1000, nil
	}
	return 0, fmt.Errorf("the HPA has no external metric: %v", a.hpa(c).Spec.Metrics)
}

// direct is what a replica of Foresail serves as an external metric, to whoever asks it.
func (a *app) direct(c require.TestingT) (float64, error) {
	config, err := shared.stack.Cluster.RESTConfigFor("reader", "system:masters")
	require.NoError(c, err)
	config.Host = "https://localhost:" + strconv.Itoa(shared.replicas[0].SecurePort)
	client, err := externalmetrics.NewForConfig(config)
	require.NoError(c, err)
	return stack.ReadMetric(client, a.app())
}

// objects are those of the application, of a kind.
func (a *app) objects(kind string) dynamic.ResourceInterface {
	resources := map[string]schema.GroupVersionResource{
		"predictedmetrics": {Group: "foresail.dev", Version: "v1alpha1", Resource: "predictedmetrics"},
		"scaledobjects":    {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	}
	return shared.stack.Cluster.Dynamic().Resource(resources[kind]).Namespace(a.Namespace)
}

func (a *app) patch(kind, patch string) {
	a.Helper()
	_, err := a.objects(kind).Patch(a.Context(), "app", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(a, err)
}

// setThreshold changes the threshold, in thousandths, and waits until the HPA has it. The oldest
// KEDA reads the target only when the ScaledObject changes, here by another polling interval.
func (a *app) setThreshold(threshold int64, interval int) {
	a.Helper()
	a.patch("predictedmetrics", fmt.Sprintf(`{"spec":{"threshold":"%dm"}}`, threshold))
	if release() == keda.Oldest {
		a.waitForThreshold(threshold)
		a.patch("scaledobjects", fmt.Sprintf(`{"spec":{"pollingInterval":%d}}`, interval))
	}
	a.eventually(30*time.Second, "the HPA has the new threshold", func(c *assert.CollectT) {
		assert.Equal(c, threshold, a.target(c))
	})
	a.eventually(time.Minute, "the doors agree to the digit", func(c *assert.CollectT) {
		through, err := a.throughKEDA(c)
		require.NoError(c, err)
		direct, err := a.direct(c)
		require.NoError(c, err)
		assert.InDelta(c, direct, through, 0)
	})
}

// waitForThreshold waits until both replicas send a threshold to KEDA.
func (a *app) waitForThreshold(threshold int64) {
	a.Helper()
	for _, address := range shared.scalers {
		scaler := scalerClient(a.T, address, "keda-operator")
		a.eventually(30*time.Second, "the replica has the new threshold", func(c *assert.CollectT) {
			spec, err := scaler.GetMetricSpec(a.Context(), refTo(a.Namespace, "app"))
			require.NoError(c, err)
			require.Len(c, spec.MetricSpecs, 1)
			assert.InDelta(c, threshold, 1000*spec.MetricSpecs[0].TargetSizeFloat, 1)
		})
	}
}

// maxReplicasMatch is the condition of the PredictedMetric, "" if there is none.
func (a *app) maxReplicasMatch(c require.TestingT) string {
	o, err := a.objects("predictedmetrics").Get(a.Context(), "app", metav1.GetOptions{})
	require.NoError(c, err)
	var pm v1alpha1.PredictedMetric
	require.NoError(c, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &pm))
	if found := meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionMaxReplicasMatch); found != nil {
		return string(found.Status) + " " + found.Reason
	}
	return ""
}

func (a *app) becomesActive() {
	a.Helper()
	a.eventually(2*time.Minute, "the HPA reads the forecast through KEDA", func(c *assert.CollectT) {
		assert.True(c, a.active(c), "%v", a.hpa(c).Status.Conditions)
	})
}

// target returns that of the HPA's external metric, in thousandths; 0 if it has none.
func (a *app) target(c require.TestingT) int64 {
	for _, m := range a.hpa(c).Spec.Metrics {
		if m.External != nil {
			return m.External.Target.AverageValue.MilliValue()
		}
	}
	return 0
}

func TestScaledObjectFollowsTheForecast(t *testing.T) {
	a := newApp(t, "follows", 2.5, nil)
	a.becomesActive()
	a.eventually(time.Minute, "the doors agree to the digit", func(c *assert.CollectT) {
		through, err := a.throughKEDA(c)
		require.NoError(c, err)
		direct, err := a.direct(c)
		require.NoError(c, err)
		assert.InDelta(c, direct, through, 0)
		assert.InDelta(c, 2.8, direct, 0, "what four pods take")
	})
	assert.Equal(t, int64(700), a.target(t))

	a.carry(5.1)
	a.eventually(time.Minute, "there are as many pods as the load needs",
		func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 8) })
	a.setThreshold(600, 4)
	a.eventually(time.Minute, "there are as many pods as the new threshold needs",
		func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 9) })
	a.carry(1)
	a.eventually(2*time.Minute, "the pods go with the load",
		func(c *assert.CollectT) { assert.Equal(c, 4, a.replicas(c)) })
	a.setThreshold(1001, 5) // 1.001 × 1000 is less than 1001 in a float64, and KEDA 2.17 to 2.19 truncate
	a.eventually(2*time.Minute, "the maxima of both objects have been compared",
		func(c *assert.CollectT) { assert.Equal(c, "True SameMaximum", a.maxReplicasMatch(c)) })
}

// A forecast that is missing is an error, upon which KEDA falls back to what the ScaledObject says;
// without that the HPA holds.
func TestFallbackWhereTheForecastIsMissing(t *testing.T) {
	a := newApp(t, "fallback", 1.6, func(a *app) {
		a.Fallback = 7
		if release() == keda.Oldest { // its fallback takes the whole part of a threshold
			a.Threshold = "1"
		}
	})
	a.becomesActive()
	a.patch("predictedmetrics", `{"spec":{"source":{"pods":{"metric":"no_such_metric"}}}}`)
	a.eventually(time.Minute, "KEDA falls back", func(c *assert.CollectT) { assert.Equal(c, 7, a.replicas(c)) })
	a.patch("predictedmetrics", `{"spec":{"source":{"pods":{"metric":"nodejs_eventloop_utilization"}}}}`)
	a.eventually(2*time.Minute, "the forecast counts again",
		func(c *assert.CollectT) { assert.Equal(c, 4, a.replicas(c)) })
}

// asks waits until KEDA asks a replica that was started again. gRPC tries to connect less and less
// often, in the end every two minutes and a fifth, so this is later than that the replica is ready;
// until then KEDA needs the other one.
func (a *app) asks(replica *stack.Adapter) {
	a.Helper()
	a.eventually(4*time.Minute, "KEDA asks the replica", func(c *assert.CollectT) {
		metrics, err := replica.Metrics(a.Context())
		require.NoError(c, err)
		assert.NotZero(c, metrics.Sum("foresail_keda_request_duration_seconds", "method", "GetMetrics", "result", "OK"))
	})
}

// reader reads the metric as the HPA does until it is stopped.
type reader struct {
	stop     context.CancelFunc
	done     sync.WaitGroup
	reads    int
	failures []string
}

func (a *app) reading() *reader {
	ctx, cancel := context.WithCancel(a.Context())
	r := &reader{stop: cancel}
	r.done.Go(func() {
		for ctx.Err() == nil {
			_, err := a.throughKEDA(a)
			if r.reads++; err != nil && ctx.Err() == nil {
				r.failures = append(r.failures, fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	a.Cleanup(r.end)
	return r
}

func (r *reader) end() {
	r.stop()
	r.done.Wait()
}

// A replica that dies, and a certificate that changes, fail no read: KEDA asks the other one, and
// trusts the new one.
func TestNoReadFails(t *testing.T) {
	a := newApp(t, "reads", 1.6, nil)
	a.becomesActive()

	t.Run("while a replica is killed and comes back", func(t *testing.T) {
		r := a.reading()
		require.NoError(t, shared.replicas[1].Kill())
		pass(t, 15*time.Second)
		require.NoError(t, shared.replicas[1].Restart())
		a.asks(shared.replicas[1])
		r.end()
		t.Logf("%d reads, %d failed: %v", r.reads, len(r.failures), r.failures[:min(3, len(r.failures))])
		assert.Empty(t, r.failures)
		assert.Greater(t, r.reads, 50)
	})
	t.Run("while the certificate is replaced", func(t *testing.T) {
		r := a.reading()
		cert, key, err := shared.stack.Cluster.ServingCertificate(host, "localhost")
		require.NoError(t, err)
		for from, to := range map[string]string{cert: shared.tls.cert, key: shared.tls.key} {
			content, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, content, 0o600))
		}
		require.NoError(t, shared.replicas[0].Kill()) // so that KEDA connects anew
		pass(t, 15*time.Second)
		require.NoError(t, shared.replicas[0].Restart())
		a.asks(shared.replicas[0])
		r.end()
		t.Logf("%d reads, %d failed: %v", r.reads, len(r.failures), r.failures[:min(3, len(r.failures))])
		assert.Empty(t, r.failures)
	})
}

// pass lets time go by, for as long as the test has it.
func pass(t *testing.T, d time.Duration) {
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// While Foresail is gone the replicas stay as they are. A trigger for CPU, which the HPA reads
// itself, still scales up. There is no fallback: whether it fires depends on whether KEDA still has
// the target that was sent to it last.
func TestReplicasHoldWhileForesailIsGone(t *testing.T) {
	metrics, err := monitoring.StartMetricsServer(shared, shared.stack.Cluster, monitoring.MetricsServerOptions{
		Progress: os.Stderr, Selector: stack.WorkloadLabel + "=true", Resolution: 10 * time.Second,
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, metrics.Stop()) }()
	a := newApp(t, "gone", 3.3, func(a *app) { a.CPU = "900m" })
	a.becomesActive()
	a.eventually(time.Minute, "there are as many pods as the load needs",
		func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 5) })
	before := a.replicas(t)
	for _, replica := range shared.replicas {
		require.NoError(t, replica.Kill())
	}
	a.carry(0.5)
	a.eventually(time.Minute, "reads fail", func(c *assert.CollectT) {
		_, err := a.throughKEDA(c)
		assert.Error(c, err)
	})
	begin := time.Now()
	for time.Since(begin) < 20*time.Second {
		require.Equal(t, before, a.replicas(t))
		pass(t, 500*time.Millisecond)
	}
	a.carry(20)
	a.eventually(2*time.Minute, "CPU scales up", func(c *assert.CollectT) { assert.Greater(c, a.replicas(c), before) })
	a.carry(0.5)
	for _, replica := range shared.replicas {
		require.NoError(t, replica.Restart())
	}
	for _, replica := range shared.replicas {
		require.NoError(t, replica.WaitReady(t.Context()))
	}
	a.eventually(3*time.Minute, "the load counts again", func(c *assert.CollectT) { assert.Equal(c, 4, a.replicas(c)) })
}

// startGateway runs a Prometheus that knows the open requests of a namespace, as a gateway reports
// them, until the test ends. It returns the bits of their number, and the source that reads them.
func startGateway(t *testing.T, namespace string) (open *atomic.Uint64, source string) {
	open = &atomic.Uint64{}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE gateway_open_requests gauge\ngateway_open_requests{namespace=%q} %g\n", namespace,
			math.Float64frombits(open.Load()))
	}))
	t.Cleanup(gateway.Close)
	_, port, _ := strings.Cut(shared.gateway, ":")
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	server, err := monitoring.StartPrometheus(shared, shared.stack.Cluster, monitoring.PrometheusOptions{
		Name: "prometheus-" + namespace, Progress: os.Stderr, Selector: "app=none",
		Targets: []string{strings.TrimPrefix(gateway.URL, "http://")}, Port: number,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	encoded, err := json.Marshal(map[string]any{"prometheus": map[string]string{
		"address": "http://" + shared.gateway, "query": "gateway_open_requests", "scope": "Target", "interval": "1s",
	}})
	require.NoError(t, err)
	return open, string(encoded)
}

// A load that is there without pods wakes a target at zero through KEDA, and lets it sleep again.
func TestScaledObjectFromAndToZero(t *testing.T) {
	open, source := startGateway(t, "zero")
	a := newApp(t, "zero", 0, func(a *app) { a.Source, a.Threshold, a.Min, a.DownWindow = source, "50", 0, 5 })
	asleep := func() {
		a.eventually(2*time.Minute, "nothing is left to do", func(c *assert.CollectT) { assert.Zero(c, a.replicas(c)) })
		a.stays(*zeroHold, func(replicas int) bool { return replicas == 0 })
	}
	asleep()
	begun, cycles := time.Now(), 0
	for ; cycles < 2 || time.Since(begun) < *zeroSpan; cycles++ {
		open.Store(math.Float64bits(230))
		a.eventually(time.Minute, "the load has woken as many pods as it needs",
			func(c *assert.CollectT) { assert.GreaterOrEqual(c, a.replicas(c), 5) })
		a.stays(*zeroHold, func(replicas int) bool { return replicas >= 5 })
		open.Store(math.Float64bits(0))
		asleep()
	}
	t.Logf("woken and asleep %d times in %s, each time once", cycles, time.Since(begun).Round(time.Second))
}

var (
	zeroSpan = flag.Duration("zero-span", 0,
		"how long TestScaledObjectFromAndToZero wakes its target again and again; at least twice")
	zeroHold = flag.Duration("zero-hold", 10*time.Second,
		"how long TestScaledObjectFromAndToZero watches that the replicas stay as they are")
)

// stays watches the replicas.
func (a *app) stays(span time.Duration, right func(replicas int) bool) {
	a.Helper()
	for begun := time.Now(); time.Since(begun) < span; pass(a.T, 250*time.Millisecond) {
		replicas := a.replicas(a)
		require.True(a, right(replicas), "%d replicas after %s", replicas, time.Since(begun))
	}
}
