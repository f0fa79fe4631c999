package kubeapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/serving"
)

// ResultOK is the result of a read with a value. Others are the reasons of errors.
const ResultOK = "OK"

// OtherMetric is the label value of all metrics that do not exist: clients could choose any number of names.
const OtherMetric = "other"

// Telemetry counts and times the reads of a door. It is a prometheus.Collector.
type Telemetry struct {
	Duration *prometheus.HistogramVec // by metric and result
}

// NewTelemetry returns the telemetry of the door of an API, external or custom, whose errors have the given reasons.
func NewTelemetry(api string, reasons ...string) *Telemetry {
	t := &Telemetry{Duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "foresail_metric_request_duration_seconds",
		Help: "Time to answer a read of an external or a custom metric, without authentication, authorization and transport, " +
			"by metric and by result: OK, or the reason why there was no value.",
		Buckets:     prometheus.ExponentialBuckets(1e-6, 16, 6), // to a second
		ConstLabels: prometheus.Labels{"api": api},
	}, []string{"metric", "result"})}
	for _, metric := range serving.Metrics() {
		t.Duration.WithLabelValues(metric, ResultOK)
		for _, reason := range reasons {
			if reason != serving.ReasonUnknownMetric {
				t.Duration.WithLabelValues(metric, reason) // from 0, so that the first one is an increase
			}
		}
	}
	t.Duration.WithLabelValues(OtherMetric, serving.ReasonUnknownMetric)
	return t
}

// Observe counts a read. failed is nil for one with a value.
func (t *Telemetry) Observe(metric string, failed *StatusError, took time.Duration) {
	result := ResultOK
	if failed != nil {
		result = failed.cause.Reason
	}
	if result == serving.ReasonUnknownMetric {
		metric = OtherMetric
	}
	t.Duration.WithLabelValues(metric, result).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (t *Telemetry) Describe(ch chan<- *prometheus.Desc) { t.Duration.Describe(ch) }

// Collect implements prometheus.Collector.
func (t *Telemetry) Collect(ch chan<- prometheus.Metric) { t.Duration.Collect(ch) }
