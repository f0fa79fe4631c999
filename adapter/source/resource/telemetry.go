package resource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/foresail/foresail/internal/metricsapi"
)

// telemetry is what a Source tells of itself.
type telemetry struct {
	lists    map[metricsapi.Result]prometheus.Counter
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
		lists: map[metricsapi.Result]prometheus.Counter{},
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
	for _, r := range metricsapi.Results() {
		t.lists[r] = lists.WithLabelValues(string(r))
	}
	return t
}
