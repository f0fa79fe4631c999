//go:build long

package otel

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

const token = "secret of the collector"

// What each pod reports, by its place in the list: a share of its time, and requests a second.
var (
	busy     = []float64{0.25, 0.5}
	requests = []float64{5, 15}
)

var (
	app = stack.App{
		Namespace: "shop", Name: "busy", Metric: "predicted_load_total", Replicas: 2, Min: 2, Max: 2,
		ServiceTime: 10 * time.Millisecond,
		Source:      v1alpha1.Source{RemoteWrite: &v1alpha1.RemoteWriteSource{Metric: "app_busy_ratio"}},
		Threshold:   resource.MustParse("700m"),
	}
	counted = func() stack.App { a := app; a.Name = "requests"; return a }()
)

const countedManifest = `
apiVersion: foresail.dev/v1alpha1
kind: PredictedMetric
metadata: {name: requests, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  source: {remoteWrite: {metric: app_requests_total, type: Counter}}
  threshold: 50
  minReplicas: 2
  maxReplicas: 2
`

// release is a release of the collector: a file with the modules that it is built from.
type release struct{ name, modules string }

var (
	current = release{"collector", "go.mod"}
	// oldest is that of docs/operating.md#supported-versions.
	oldest = release{"collector-oldest", "oldest.mod"}
)

// TestCollector has applications send to a collector, which sends to Foresail: the forecast is what
// they reported.
func TestCollector(t *testing.T) {
	for _, r := range []release{current, oldest} {
		t.Run(r.name, func(t *testing.T) { testCollector(t, r) })
	}
}

func testCollector(t *testing.T, r release) {
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends before what is cleaned up
	t.Cleanup(cancel)
	s, err := stack.Start(ctx, stack.Options{Progress: os.Stderr, ReadyDelay: time.Second, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	receiver, err := ports.TakeAddress()
	require.NoError(t, err)
	collector := startCollector(t, r, receiver)
	adapter := startForesail(ctx, t, s, receiver)
	require.NoError(t, s.Deploy(t.Context(), app))
	_, err = s.Cluster.Apply(t.Context(), []byte(countedManifest))
	require.NoError(t, err)
	pods := exporters(t, s, collector)

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, pod := range pods {
			assert.NoError(c, pod.ForceFlush(t.Context()))
		}
		assert.InDelta(c, busy[0]+busy[1], forecast(c, adapter, app), 0.001)
		assert.InDelta(c, requests[0]+requests[1], forecast(c, adapter, counted), 0.2)
		assert.GreaterOrEqual(c, served(c, s, app), busy[0]+busy[1])
		assert.GreaterOrEqual(c, served(c, s, counted), requests[0]+requests[1])
	}, 2*time.Minute, time.Second)
	rejected := adapter.MustMetrics(t).Find("foresail_remote_write_samples_total", "result", "unsupported_type")
	require.Len(t, rejected, 1)
	assert.Zero(t, rejected[0].GetCounter().GetValue(), "delta sums are made cumulative")
}

// startForesail runs a Foresail that takes metrics at an address from who has the token.
func startForesail(ctx context.Context, t *testing.T, s *stack.Stack, receiver string) *stack.Adapter {
	t.Helper()
	a, err := s.StartAdapter(ctx, "adapter", "--remote-write-address="+receiver,
		"--remote-write-bearer-token-file="+tokenFile(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Stop()) })
	require.NoError(t, s.Register(t.Context(), a))
	return a
}

func tokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	return file
}

// startCollector builds and runs the collector, and returns where it receives OTLP.
func startCollector(t *testing.T, r release, foresailAddress string) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	binary := filepath.Join(root, ".cache", "bin", r.name)
	done := controlplane.Announce(os.Stderr, "building the OpenTelemetry "+r.name)
	err = foresail.GoBuild{
		Dir: "test/suite/otel/collector", Package: ".", Output: binary,
		Flags: []string{"-trimpath", "-modfile=" + r.modules}, Env: []string{"CGO_ENABLED=0", "GOWORK=off"},
	}.Run(t.Context())
	done()
	require.NoError(t, err)
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	dir := t.TempDir()
	p, err := controlplane.StartProcess("collector", binary, filepath.Join(dir, "log"), dir,
		[]string{"--config", filepath.Join(root, "test", "suite", "otel", "collector.yaml")},
		"RECEIVE="+address, "FORESAIL=http://"+foresailAddress, "TOKEN="+token)
	require.NoError(t, err)
	foresail.EndWith(t, "collector", p)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		response, err := http.Get("http://" + address)
		if assert.NoError(c, err, p.LogTail()) {
			assert.NoError(c, response.Body.Close())
		}
	}, 30*time.Second, 100*time.Millisecond, "the collector listens")
	return address
}

// exporters returns an SDK for each pod.
func exporters(t *testing.T, s *stack.Stack, collector string) (all []*sdk.MeterProvider) {
	t.Helper()
	pods, err := s.Cluster.Client().CoreV1().Pods(app.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: app.Selector()})
	require.NoError(t, err)
	require.Len(t, pods.Items, app.Replicas)
	for i, pod := range pods.Items {
		provider := exporting(t, collector, pod.Name)
		instrument(t, provider.Meter("app"), busy[i], requests[i])
		all = append(all, provider)
	}
	return all
}

// exporting returns the SDK of a pod, which exports when it is flushed. It claims another
// namespace, which the collector corrects, and exports delta sums.
func exporting(t *testing.T, collector, pod string) *sdk.MeterProvider {
	t.Helper()
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL("http://"+collector+"/v1/metrics"),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression),
		otlpmetrichttp.WithTemporalitySelector(func(k sdk.InstrumentKind) metricdata.Temporality {
			if k == sdk.InstrumentKindUpDownCounter { // as the preference "delta" of SDKs
				return metricdata.CumulativeTemporality
			}
			return metricdata.DeltaTemporality
		}))
	require.NoError(t, err)
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour))),
		sdk.WithResource(sdkresource.NewSchemaless(attribute.String("k8s.namespace.name", "bank"),
			attribute.String("k8s.pod.name", pod))))
	// it exports once more, to a collector that may be gone
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider
}

// instrument has a pod report a share of its time, and a count that rises steadily.
func instrument(t *testing.T, meter metric.Meter, busy, rate float64) {
	t.Helper()
	begun := time.Now()
	_, err := meter.Float64ObservableGauge("app.busy", metric.WithUnit("1"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(busy)
			return nil
		}))
	require.NoError(t, err)
	_, err = meter.Float64ObservableCounter("app.requests", metric.WithUnit("{request}"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(rate * time.Since(begun).Seconds())
			return nil
		}))
	require.NoError(t, err)
}

// forecast returns the load of all pods at the horizon.
func forecast(c require.TestingT, a *stack.Adapter, of stack.App) float64 {
	families, err := a.Metrics(context.Background())
	require.NoError(c, err)
	found := families.Find("foresail_predicted_load_per_instance", "predictedmetric", of.Name)
	require.Len(c, found, 1)
	return found[0].GetGauge().GetValue() * float64(of.Replicas)
}

// served returns what the HPA would read: the threshold for each replica that the forecast needs.
func served(c require.TestingT, s *stack.Stack, a stack.App) float64 {
	client, err := externalmetrics.NewForConfig(s.Cluster.RESTConfig())
	require.NoError(c, err)
	value, err := stack.ReadMetric(client, a)
	require.NoError(c, err)
	return value
}
