// Package externalmetrics serves forecasts to HorizontalPodAutoscalers through external.metrics.k8s.io: it is the API
// server of the metrics of package serving.
//
// An error is 404 where a metric or a PredictedMetric does not exist, 400 where a selector matches several whose values
// cannot be added up, and 503 where there is no forecast at the moment. No answer carries Retry-After: the HPA's client
// would wait for it, and other HPAs with it.
package externalmetrics

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/serving"
)

// Provider answers requests for external metrics. It is also the prometheus.Collector of its requests.
type Provider struct {
	*telemetry
	reader serving.Reader
	clock  func() time.Time
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a provider of the snapshots of reader, whose age it judges by the clock.
func New(reader serving.Reader, clock func() time.Time) *Provider {
	return &Provider{telemetry: newTelemetry(), reader: reader, clock: clock}
}

// ListAllExternalMetrics names all metrics, whether or not they have values.
func (p *Provider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	infos := make([]provider.ExternalMetricInfo, 0, len(serving.Metrics()))
	for _, metric := range serving.Metrics() {
		infos = append(infos, provider.ExternalMetricInfo{Metric: metric})
	}
	return infos
}

// GetExternalMetric returns the item of the one PredictedMetric of the namespace that the selector matches. Without one, or
// with one that has no value, it returns an error that carries a metav1.Status.
func (p *Provider) GetExternalMetric(_ context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	start := p.clock()
	item, err := serving.Read(p.reader, serving.Query{Namespace: namespace, Selector: selector, Metric: info.Metric, Now: start})
	failed := asStatusError(err)
	p.observe(info.Metric, failed, p.clock().Sub(start))
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

// statusError is an error of package serving as the Kubernetes API reports it.
type statusError struct{ cause *serving.Error }

func asStatusError(err error) *statusError {
	if err == nil {
		return nil
	}
	return &statusError{serving.AsError(err)}
}

func (e *statusError) Error() string { return e.cause.Message }
func (e *statusError) Unwrap() error { return e.cause }

// Status implements apierrors.APIStatus. It has no RetryAfterSeconds: the HPA's client would sleep for it, and keep other
// HPAs waiting.
func (e *statusError) Status() metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Message: e.cause.Message}
	switch e.cause.Class {
	case serving.NotFound:
		status.Code, status.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
	case serving.Invalid:
		status.Code, status.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	case serving.Unavailable:
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	default:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	if e.cause.Name != "" {
		status.Details = &metav1.StatusDetails{Group: "foresail.dev", Kind: "predictedmetrics", Name: e.cause.Name}
	}
	return status
}
