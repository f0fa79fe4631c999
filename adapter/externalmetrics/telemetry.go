package externalmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/serving"
)

// resultOK is the result of a read with a value. Others are the reasons of package serving.
const resultOK = "OK"

// otherMetric is the label value of all metrics that do not exist: clients could choose any number of names.
const otherMetric = "other"

// telemetry counts and times reads.
type telemetry struct {
	requests *prometheus.CounterVec   // by metric and result
	duration *prometheus.HistogramVec // by metric
}

func newTelemetry() *telemetry {
	t := &telemetry{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_external_metric_requests_total",
			Help: "Reads of an external metric, by metric and by result: OK, or the reason why there was no value.",
		}, []string{"metric", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "foresail_external_metric_request_duration_seconds",
			Help:    "Time to answer a read of an external metric, without authentication, authorization and transport.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"metric"}),
	}
	for _, metric := range serving.Metrics() {
		t.duration.WithLabelValues(metric)
		for _, result := range append(serving.Reasons(), resultOK) {
			if result != serving.ReasonUnknownMetric {
				t.requests.WithLabelValues(metric, result) // from 0, so that the first one is an increase
			}
		}
	}
	t.duration.WithLabelValues(otherMetric)
	t.requests.WithLabelValues(otherMetric, serving.ReasonUnknownMetric)
	return t
}

func (t *telemetry) observe(metric string, failed *statusError, took time.Duration) {
	result := resultOK
	if failed != nil {
		result = failed.cause.Reason
	}
	if result == serving.ReasonUnknownMetric {
		metric = otherMetric
	}
	t.requests.WithLabelValues(metric, result).Inc()
	t.duration.WithLabelValues(metric).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (t *telemetry) Describe(ch chan<- *prometheus.Desc) {
	t.requests.Describe(ch)
	t.duration.Describe(ch)
}

// Collect implements prometheus.Collector.
func (t *telemetry) Collect(ch chan<- prometheus.Metric) {
	t.requests.Collect(ch)
	t.duration.Collect(ch)
}
