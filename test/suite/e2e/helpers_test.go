package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/monitoring"
	"github.com/foresail/foresail/test/env/stack"
)

func metricsClient(t *testing.T) externalmetrics.ExternalMetricsClient {
	t.Helper()
	client, err := externalmetrics.NewForConfig(shared.Cluster.RESTConfig())
	require.NoError(t, err)
	return client
}

func waitForForecast(t *testing.T, a stack.App) {
	t.Helper()
	waitForForecastWithin(t, a, time.Minute)
}

func waitForForecastWithin(t *testing.T, a stack.App, span time.Duration) {
	t.Helper()
	client := metricsClient(t)
	var last error
	if !assert.Eventually(t, func() bool {
		_, last = stack.ReadMetric(client, a)
		return last == nil
	}, span, 500*time.Millisecond, "no forecast of %s/%s", a.Namespace, a.Name) {
		require.NoError(t, last)
	}
}

// eventually waits for a condition that a test cannot go on without.
func eventually(t *testing.T, span time.Duration, what string, holds func(*assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, holds, span, 250*time.Millisecond, what)
}

// startPrometheus runs a server or an agent until the test ends, on its port of the list of servers
// if it has one. It notices pods that come and go within a second.
func startPrometheus(t *testing.T, o monitoring.PrometheusOptions) *monitoring.Prometheus {
	t.Helper()
	o.Progress, o.Port = os.Stderr, servers.ports[o.Name]
	o.ExtraArgs = append(o.ExtraArgs, "--scrape.discovery-reload-interval=1s")
	p, err := monitoring.StartPrometheus(suite, shared.Cluster, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last words of %s:\n%s", o.Name, p.LogTail())
		}
		assert.NoError(t, p.Stop())
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, p.WaitReady(ctx))
	return p
}

// scraped is the source of an application that a Prometheus scrapes; 0 leaves the interval to Foresail.
func scraped(p *monitoring.Prometheus, a stack.App, interval time.Duration) v1alpha1.Source {
	source := &v1alpha1.PrometheusSource{
		Address: p.URL, Query: stack.Utilization + `{namespace="` + a.Namespace + `",app="` + a.Name + `"}`,
	}
	if interval > 0 {
		source.Interval = &metav1.Duration{Duration: interval}
	}
	return v1alpha1.Source{Prometheus: source}
}

func written() v1alpha1.Source {
	return v1alpha1.Source{RemoteWrite: &v1alpha1.RemoteWriteSource{Metric: stack.Utilization}}
}

// addMetric makes a further PredictedMetric of an application like the one that it has, but for a
// change of its spec, and returns the application as seen through it.
func addMetric(t *testing.T, a stack.App, name string, change func(spec map[string]any)) stack.App {
	t.Helper()
	resource := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(a.Namespace)
	first, err := resource.Get(t.Context(), a.Name, metav1.GetOptions{})
	require.NoError(t, err)
	spec := first.Object["spec"].(map[string]any)
	change(spec)
	second := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": first.GetAPIVersion(), "kind": first.GetKind(), "metadata": map[string]any{"name": name},
		"spec": spec,
	}}
	_, err = resource.Create(t.Context(), second, metav1.CreateOptions{})
	require.NoError(t, err)
	a.Name = name
	return a
}

// statusOf reads what people read of the PredictedMetric of an application.
func statusOf(c require.TestingT, a stack.App) v1alpha1.PredictedMetricStatus {
	object, err := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(a.Namespace).Get(suite, a.Name,
		metav1.GetOptions{})
	require.NoError(c, err)
	var pm v1alpha1.PredictedMetric
	require.NoError(c, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pm))
	return pm.Status
}

// conditionOf returns a condition; one that is not there is empty.
func conditionOf(status v1alpha1.PredictedMetricStatus, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// quantile returns the value below which a share of the values is.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
