package keda

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/internal/servertls"
)

// resultOK is the result of a request that was answered. Others are the reasons of package serving
// and the two of this package.
const resultOK = "OK"

// calls and streams are the methods by their full names, under which gRPC has them.
var (
	calls = map[string]string{
		externalscaler.ExternalScaler_GetMetricSpec_FullMethodName: "GetMetricSpec",
		externalscaler.ExternalScaler_GetMetrics_FullMethodName:    "GetMetrics",
		externalscaler.ExternalScaler_IsActive_FullMethodName:      "IsActive",
	}
	streams = map[string]string{
		externalscaler.ExternalScaler_StreamIsActive_FullMethodName:   "StreamIsActive",
		externalscaler.ExternalScaler_StreamMetricSpec_FullMethodName: "StreamMetricSpec",
	}
)

// telemetry counts and times requests.
type telemetry struct {
	duration    *prometheus.HistogramVec // by method and result
	open        *prometheus.GaugeVec     // by method
	tlsFailures prometheus.Counter
}

func newTelemetry() *telemetry {
	t := &telemetry{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foresail_keda_request_duration_seconds",
			Help: "Time to answer a request of KEDA, without transport, by method and by result: OK, or the " +
				"reason why there was no answer. A stream is observed when it ends, with its length.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 16, 6), // to a second
		}, []string{"method", "result"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "foresail_keda_streams",
			Help: "Streams that KEDA holds open, by method.",
		}, []string{"method"}),
		tlsFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: servertls.FailuresName, Help: servertls.FailuresHelp, ConstLabels: prometheus.Labels{"door": "keda"},
		}),
	}
	for _, method := range calls {
		t.declare(method, serving.Reasons()...) // from 0, so that the first one is an increase
	}
	for _, method := range streams {
		t.open.WithLabelValues(method)
		t.declare(method, reasonTooManyStreams)
	}
	return t
}

func (t *telemetry) declare(method string, reasons ...string) {
	for _, result := range append(reasons, resultOK, reasonInvalidTrigger) {
		if result != serving.ReasonUnknownMetric && result != serving.ReasonAmbiguous { // a trigger names both
			t.duration.WithLabelValues(method, result)
		}
	}
}

// resultOf is the result of a request. One whose client has gone was answered.
func resultOf(err error) string {
	if failed, ok := errors.AsType[*serving.Error](err); ok {
		return failed.Reason
	}
	return resultOK
}

func (t *telemetry) answered(method string, err error, took time.Duration) {
	t.duration.WithLabelValues(method, resultOf(err)).Observe(took.Seconds())
}

func (t *telemetry) opened(method string) { t.open.WithLabelValues(method).Inc() }

func (t *telemetry) ended(method string, err error, took time.Duration) {
	t.open.WithLabelValues(method).Dec()
	t.duration.WithLabelValues(method, resultOf(err)).Observe(took.Seconds())
}

func (t *telemetry) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.duration, t.open, t.tlsFailures}
}

// Describe implements prometheus.Collector.
func (t *telemetry) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range t.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (t *telemetry) Collect(ch chan<- prometheus.Metric) {
	for _, c := range t.collectors() {
		c.Collect(ch)
	}
}
