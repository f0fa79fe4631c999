package resource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// result classifies how a list ended.
type result string

const (
	resultSuccess     result = "success"
	resultMissing     result = "missing" // nothing serves the API
	resultForbidden   result = "forbidden"
	resultUnavailable result = "unavailable" // the API is registered, but its server does not answer
	resultTimeout     result = "timeout"
	resultError       result = "error"
)

// telemetry is what a Source tells of itself.
type telemetry struct {
	lists    map[result]prometheus.Counter
	duration prometheus.Histogram
	samples  prometheus.Counter
	pollers  prometheus.Gauge
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	lists := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_resource_lists_total", Help: "Lists of PodMetrics, by how they ended.",
	}, []string{"result"})
	t := &telemetry{
		lists: map[result]prometheus.Counter{},
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "foresail_resource_list_duration_seconds", Help: "How long lists of PodMetrics took, failed ones included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		samples: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_resource_samples_total", Help: "Samples taken from PodMetrics with a new timestamp.",
		}),
		pollers: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_resource_polled_lists", Help: "Lists of PodMetrics that are read regularly: one for each namespace and interval.",
		}),
	}
	for _, r := range []result{resultSuccess, resultMissing, resultForbidden, resultUnavailable, resultTimeout, resultError} {
		t.lists[r] = lists.WithLabelValues(string(r))
	}
	return t
}
