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
	scrapes    map[result]prometheus.Counter
	duration   prometheus.Histogram
	inFlight   prometheus.Gauge
	skipped    prometheus.Counter
	bytes      prometheus.Counter
	unselected prometheus.Counter
	endpoints  prometheus.Gauge
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	scrapes := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_scrapes_total", Help: "Scrapes of pods, by result.",
	}, []string{"result"})
	t := &telemetry{
		scrapes: map[result]prometheus.Counter{},
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "foresail_scrape_duration_seconds", Help: "Duration of scrapes of pods, failed ones included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_scrapes_in_flight", Help: "Scrapes of pods that are running.",
		}),
		skipped: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_scrapes_skipped_total", Help: "Scrapes skipped because the previous one was still running or all slots were taken.",
		}),
		bytes: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_scrape_body_bytes_total", Help: "Bytes of the answers to scrapes of pods.",
		}),
		unselected: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_scrape_selection_failures_total", Help: "Readings that could not be taken from an answer, because the series is missing, ambiguous, of another type or not a number.",
		}),
		endpoints: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_scrape_endpoints", Help: "Endpoints of pods that are scraped.",
		}),
	}
	for _, r := range []result{resultSuccess, resultAddress, resultConnection, resultTimeout, resultStatus, resultContent, resultCancelled} {
		t.scrapes[r] = scrapes.WithLabelValues(string(r))
	}
	return t
}
