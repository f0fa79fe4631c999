package externalmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherMetric is the label value for names that do not exist: the client chooses those, so they are not counted apart.
const otherMetric = "other"

// telemetry counts and times requests.
type telemetry struct {
	requests *prometheus.CounterVec   // by metric and result
	duration *prometheus.HistogramVec // by metric
}

func newTelemetry(metrics []metric) *telemetry {
	t := &telemetry{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_external_metric_requests_total",
			Help: "Reads of an external metric, by metric and by result: OK, or the reason why no value was served.",
		}, []string{"metric", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "foresail_external_metric_request_duration_seconds",
			Help:    "Time to answer a read of an external metric, without authentication, authorization and transport.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"metric"}),
	}
	for _, m := range metrics {
		t.duration.WithLabelValues(m.name)
		for _, result := range results() {
			if result != resultUnknownMetric {
				t.requests.WithLabelValues(m.name, result) // from 0, so that the first one is an increase
			}
		}
	}
	t.duration.WithLabelValues(otherMetric)
	t.requests.WithLabelValues(otherMetric, resultUnknownMetric)
	return t
}

func (t *telemetry) observe(metric string, refused *refusal, took time.Duration) {
	result := resultOK
	if refused != nil {
		result = refused.result
	}
	if result == resultUnknownMetric {
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
