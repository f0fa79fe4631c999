package kubeapi

import (
	"fmt"
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
	Requests *prometheus.CounterVec   // by metric and result
	Duration *prometheus.HistogramVec // by metric
}

// NewTelemetry returns the telemetry of a door for metrics of a kind, external or custom, whose errors have the given reasons.
func NewTelemetry(kind string, reasons ...string) *Telemetry {
	article := "a"
	if kind == "external" {
		article = "an"
	}
	t := &Telemetry{
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_" + kind + "_metric_requests_total",
			Help: fmt.Sprintf("Reads of %s %s metric, by metric and by result: OK, or the reason why there was no value.", article, kind),
		}, []string{"metric", "result"}),
		Duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "foresail_" + kind + "_metric_request_duration_seconds",
			Help:    fmt.Sprintf("Time to answer a read of %s %s metric, without authentication, authorization and transport.", article, kind),
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"metric"}),
	}
	for _, metric := range serving.Metrics() {
		t.Duration.WithLabelValues(metric)
		t.Requests.WithLabelValues(metric, ResultOK)
		for _, reason := range reasons {
			if reason != serving.ReasonUnknownMetric {
				t.Requests.WithLabelValues(metric, reason) // from 0, so that the first one is an increase
			}
		}
	}
	t.Duration.WithLabelValues(OtherMetric)
	t.Requests.WithLabelValues(OtherMetric, serving.ReasonUnknownMetric)
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
	t.Requests.WithLabelValues(metric, result).Inc()
	t.Duration.WithLabelValues(metric).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (t *Telemetry) Describe(ch chan<- *prometheus.Desc) {
	t.Requests.Describe(ch)
	t.Duration.Describe(ch)
}

// Collect implements prometheus.Collector.
func (t *Telemetry) Collect(ch chan<- prometheus.Metric) {
	t.Requests.Collect(ch)
	t.Duration.Collect(ch)
}
