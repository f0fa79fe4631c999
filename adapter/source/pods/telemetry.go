package pods

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// result classifies how a scrape ended.
type result string

const (
	resultSuccess    result = "success"
	resultAddress    result = "address"    // the pod has no IP or no such port
	resultConnection result = "connection" // refused, reset, unreachable
	resultTimeout    result = "timeout"
	resultStatus     result = "status" // another HTTP status than 200
	resultContent    result = "content"
	resultCancelled  result = "cancelled" // the instance ended meanwhile, or the process is ending
)

// telemetry is the metrics of a Source.
type telemetry struct {
	duration map[result]prometheus.Observer
	inFlight prometheus.Gauge
	skipped  prometheus.Counter
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	duration := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "foresail_scrape_duration_seconds", Help: "Duration of scrapes of pods, by result.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"result"})
	t := &telemetry{
		duration: map[result]prometheus.Observer{},
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_scrapes_in_flight", Help: "Scrapes of pods that are running.",
		}),
		skipped: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_scrapes_skipped_total",
			Help: "Scrapes skipped because the previous one was still running or all slots were taken.",
		}),
	}
	for _, r := range []result{resultSuccess, resultAddress, resultConnection, resultTimeout, resultStatus,
		resultContent, resultCancelled} {
		t.duration[r] = duration.WithLabelValues(string(r))
	}
	return t
}
