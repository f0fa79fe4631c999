package remotewrite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/servertls/servertlstest"
)

// exporting returns a provider of instruments in the pod web-0, whose readings are pushed when they are flushed.
func exporting(t *testing.T, url string, options ...otlpmetrichttp.Option) *sdk.MeterProvider {
	options = append(options, otlpmetrichttp.WithEndpointURL(url+otlpPath),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	exporter, err := otlpmetrichttp.New(t.Context(), options...)
	require.NoError(t, err)
	provider := sdk.NewMeterProvider(
		sdk.WithReader(sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("k8s.namespace.name", "shop"),
			attribute.String("k8s.pod.name", "web-0"))))
	// it pushes once more, to a server that may be gone
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider
}

// onTheClock sets the clock that the SDK has.
func onTheClock(o *Options) { o.Now = time.Now }

// The SDK is a client that others wrote.
func TestOpenTelemetrySDK(t *testing.T) {
	for name, options := range map[string][]otlpmetrichttp.Option{
		"plain": nil,
		"gzip":  {otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression)},
	} {
		t.Run(name, func(t *testing.T) {
			r, sink, rates, raw := newReceiver(onTheClock), sourcetest.NewRecorder(),
				sourcetest.NewRecorder(), sourcetest.NewRecorder()
			pod := instance("shop", "web-0")
			pod.Start = time.Now().Add(-time.Minute)
			fleet := sourcetest.NewFleet(pod)
			utilization := Config{Metric: "eventloop_utilization_ratio", Type: source.Gauge, PodLabel: "pod"}
			r.Set(key("utilization"), matching(utilization, "worker", "main", "otel_scope_name", "app"), fleet, sink)
			r.Set(key("requests"), Config{Metric: "requests_total", Type: source.Counter, PodLabel: "pod"}, fleet,
				rates)
			r.Set(key("total"), Config{Metric: "requests_total", Type: source.Gauge, PodLabel: "pod"}, fleet, raw)
			server := httptest.NewServer(r.handler)
			defer server.Close()
			provider := exporting(t, server.URL, options...)
			meter := provider.Meter("app")
			gauge, err := meter.Float64Gauge("eventloop.utilization", metric.WithUnit("1"))
			require.NoError(t, err)
			counter, err := meter.Int64Counter("requests", metric.WithUnit("{request}"))
			require.NoError(t, err)
			latency, err := meter.Float64Histogram("latency", metric.WithUnit("s"))
			require.NoError(t, err)

			gauge.Record(t.Context(), 0.5, metric.WithAttributes(attribute.String("worker", "main")))
			counter.Add(t.Context(), 5)
			latency.Record(t.Context(), 0.1)
			require.NoError(t, provider.ForceFlush(t.Context()))
			gauge.Record(t.Context(), 0.75, metric.WithAttributes(attribute.String("worker", "main")))
			counter.Add(t.Context(), 10)
			require.NoError(t, provider.ForceFlush(t.Context()))

			assert.Equal(t, []float64{0.5, 0.75}, sink.Values("uid-web-0"))
			assert.Empty(t, rates.Failing("uid-web-0"))
			assert.Empty(t, raw.Values("uid-web-0"))
			assert.Contains(t, raw.Failing("uid-web-0"), "requests_total is a counter by its sender")
			assert.InDelta(t, time.Now().UnixMilli(), sink.Samples("uid-web-0")[1].T, 60_000)
			assert.InDelta(t, 2, sourcetest.Gathered(t, r.registry, "foresail_remote_write_request_duration_seconds",
				"200"), 0)
		})
	}
}

// What is rejected shows in the log of the application.
func TestOpenTelemetrySDKReportsWhatIsRejected(t *testing.T) {
	unknown := error(nil)
	r := newReceiver(onTheClock, func(o *Options) { o.Ready = func() error { return unknown } })
	r.Set(key("m"), Config{Metric: "requests_total", Type: source.Counter, PodLabel: "pod"},
		newFleet("shop", "web-0"), sourcetest.NewRecorder())
	server := httptest.NewServer(r.handler)
	defer server.Close()
	provider := exporting(t, server.URL,
		otlpmetrichttp.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality {
			return metricdata.DeltaTemporality
		}))
	counter, err := provider.Meter("app").Int64Counter("requests")
	require.NoError(t, err)
	counter.Add(t.Context(), 5)
	assert.ErrorContains(t, provider.ForceFlush(t.Context()),
		"requests_total is a sum of delta temporality, which must be cumulative")
	counter.Add(t.Context(), 5)
	unknown = errors.New("not listed")
	assert.ErrorContains(t, provider.ForceFlush(t.Context()), "retry-able request failure: body: ")
}

// With client_auth_type and client_allowed_sans the receiver takes metrics from clients with those names alone.
func TestOpenTelemetrySDKPresentsACertificate(t *testing.T) {
	ours := servertlstest.NewAuthority(t, "ours")
	r, sink := newReceiver(onTheClock, func(o *Options) {
		o.Address, o.WebConfigFile = ":9201", webConfigOf(t, ours, "collector")
	}), sourcetest.NewRecorder()
	require.NoError(t, r.options.Validate(), "clients are authenticated")
	r.Set(key("m"), whole("queue"), newFleet("shop"), sink)
	url := strings.Replace(strings.TrimSuffix(serving(t, r.Source), path), "http://", "https://", 1)
	push := func(client *tls.Config) error {
		provider := exporting(t, url, otlpmetrichttp.WithTLSClientConfig(client))
		queue, err := provider.Meter("app").Int64Gauge("queue")
		require.NoError(t, err)
		queue.Record(t.Context(), 7)
		return provider.ForceFlush(t.Context())
	}
	as := func(name string) *tls.Config {
		return ours.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, "", name), ours)
	}
	require.Error(t, push(&tls.Config{RootCAs: servertlstest.Pool(ours), MinVersion: tls.VersionTLS12}))
	require.Error(t, push(as("mallory")))
	require.Empty(t, sink.Values(source.WholeTarget))
	require.NoError(t, push(as("collector")))
	assert.Equal(t, []float64{7}, sink.Values(source.WholeTarget))
}

// webConfigOf returns a configuration that requires certificates of the authority, with one of the names unless there
// are none.
func webConfigOf(t *testing.T, a *servertlstest.Authority, names ...string) string {
	t.Helper()
	certificate, key := a.Issue(t, servertlstest.Leaf(x509.ExtKeyUsageServerAuth, "foresail"))
	text := fmt.Sprintf("tls_server_config:\n  cert_file: %s\n  key_file: %s\n  client_ca_file: %s\n"+
		"  client_auth_type: RequireAndVerifyClientCert\n", file(t, string(certificate)),
		file(t, string(key)), file(t, string(a.PEM)))
	if len(names) > 0 {
		text += fmt.Sprintf("  client_allowed_sans: [%s]\n", strings.Join(names, ", "))
	}
	return file(t, text)
}
