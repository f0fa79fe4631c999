// Package externalmetrics serves forecasts to HorizontalPodAutoscalers through
// external.metrics.k8s.io: it is the API server of the metrics of package serving. The same server
// has the provider of custom.metrics.k8s.io, if it is given one.
//
// Errors are those of package kubeapi. One is 400 where a selector matches several
// PredictedMetrics, whose values cannot be added up.
package externalmetrics

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/kubeapi"
)

// Provider answers requests for external metrics. It is also the prometheus.Collector of its requests.
type Provider struct {
	*kubeapi.Telemetry
	reader serving.Reader
	clock  func() time.Time
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a provider of the snapshots of reader, whose age it judges by the clock.
func New(reader serving.Reader, clock func() time.Time) *Provider {
	return &Provider{Telemetry: kubeapi.NewTelemetry("external", serving.Reasons()...), reader: reader, clock: clock}
}

// ListAllExternalMetrics names all metrics, whether or not they have values.
func (p *Provider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	infos := make([]provider.ExternalMetricInfo, 0, len(serving.Metrics()))
	for _, metric := range serving.Metrics() {
		infos = append(infos, provider.ExternalMetricInfo{Metric: metric})
	}
	return infos
}

// GetExternalMetric returns the item of the one PredictedMetric of the namespace that the selector
// matches. Without one, or with one that has no value, it returns an error that carries a
// metav1.Status.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector,
	info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	start := p.clock()
	query := serving.Query{Namespace: namespace, Selector: selector, Metric: info.Metric, Now: start}
	item, err := serving.Read(p.reader, query)
	kubeapi.Trace(ctx, query, item, err)
	failed := kubeapi.AsStatusError(err)
	p.Observe(info.Metric, failed, p.clock().Sub(start))
	if failed != nil {
		return nil, failed
	}
	return &external_metrics.ExternalMetricValueList{Items: []external_metrics.ExternalMetricValue{{
		MetricName:   info.Metric,
		MetricLabels: item.Labels,
		Timestamp:    metav1.NewTime(item.Timestamp),
		Value:        *resource.NewMilliQuantity(item.Milli, resource.DecimalSI),
	}}}, nil
}
