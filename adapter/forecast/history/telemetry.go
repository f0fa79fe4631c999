package history

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// telemetry is the metrics of histories.
type telemetry struct {
	waiting prometheus.Gauge
	reads   *prometheus.CounterVec
	filled  prometheus.Counter
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	t := &telemetry{
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_history_waiting",
			Help: "PredictedMetrics whose history the elected replica is reading, or has yet to read or to try again.",
		}),
		reads: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_history_reads_total",
			Help: "Attempts of the elected replica to read the history of a PredictedMetric from Prometheus, by result: Filled, Partly if the rest could not be read, " +
				"Empty if nothing is stored, Ambiguous if it cannot be known which series were of the target, or Failed.",
		}, []string{"result"}),
		filled: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_history_filled_seconds_total",
			Help: "Time for which loads are known by the histories that were read.",
		}),
	}
	for _, r := range []result{resultFilled, resultPartly, resultEmpty, resultAmbiguous, resultFailed} {
		t.reads.WithLabelValues(string(r))
	}
	return t
}

// read counts an attempt.
func (t *telemetry) read(filled bool, known time.Duration, err error) {
	t.reads.WithLabelValues(string(resultOf(filled, err))).Inc()
	if filled {
		t.filled.Add(known.Seconds())
	}
}
