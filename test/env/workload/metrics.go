package workload

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics returns the handler of the pod's metrics port: /metrics, in Prometheus text or
// OpenMetrics as the client asks. All values of one answer belong to the same moment, that of the
// scrape.
func (p *Pod) Metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{p})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// metric is one exposed series and how it follows from a pod's usage.
type metric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(Usage) float64
}

var metrics = []metric{
	series("nodejs_eventloop_utilization", "Share of the last second that the event loop was busy, 0 to 1.",
		prometheus.GaugeValue, func(u Usage) float64 { return u.Utilization }),
	series("workload_queue_length", "Requests waiting and in service.",
		prometheus.GaugeValue, func(u Usage) float64 { return float64(u.Length) }),
	series("workload_busy_seconds_total", "Seconds that the event loop was busy.",
		prometheus.CounterValue, func(u Usage) float64 { return u.Busy.Seconds() }),
	series("workload_requests_total", "Requests received, whatever became of them.",
		prometheus.CounterValue, func(u Usage) float64 { return float64(u.Received) }),
	series("workload_requests_served_total", "Requests served to their end.",
		prometheus.CounterValue, func(u Usage) float64 { return float64(u.Served) }),
	series("workload_requests_rejected_total", "Requests refused because the queue was full.",
		prometheus.CounterValue, func(u Usage) float64 { return float64(u.Rejected) }),
	series("workload_requests_abandoned_total", "Requests whose client left before service started.",
		prometheus.CounterValue, func(u Usage) float64 { return float64(u.Abandoned) }),
}

func series(name, help string, kind prometheus.ValueType, value func(Usage) float64) metric {
	return metric{prometheus.NewDesc(name, help, nil, nil), kind, value}
}

// collector exposes the usage of one pod.
type collector struct{ pod *Pod }

func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range metrics {
		descriptions <- m.description
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	usage := c.pod.usage()
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.description, m.kind, m.value(usage))
	}
}
