package forward

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Why a read has no HTTP status of the second adapter, as the label code says.
const (
	resultFailed   = "Failed"   // no connection, or it broke
	resultTimeout  = "Timeout"  // not answered within the time limit
	resultOpen     = "Open"     // not asked: the reads before had no answer
	resultBusy     = "Busy"     // not asked: too many reads wait already
	resultCanceled = "Canceled" // the client did not wait
)

type telemetry struct {
	duration *prometheus.HistogramVec // by code
	shadowed prometheus.Gauge
}

func newTelemetry(r prometheus.Registerer, available func() bool) *telemetry {
	factory := promauto.With(r)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "foresail_forward_available",
		Help: "1 if the second adapter answers, 0 if reads of its metrics fail.",
	}, func() float64 {
		if available() {
			return 1
		}
		return 0
	})
	t := &telemetry{
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foresail_forward_request_duration_seconds",
			Help: "Time until the second adapter had answered a read of a metric that is not Foresail's, or the read was given up, by its HTTP status or why there is none: " +
				"Failed, Timeout, Open (not asked, as the reads before had no answer), Busy (not asked, as too many reads wait for it), or Canceled by the client.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"code"}),
		shadowed: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_forward_shadowed_metrics",
			Help: "Metrics of the second adapter that cannot be read, as Foresail has metrics of the same names.",
		}),
	}
	for _, code := range []string{"200", resultFailed, resultTimeout, resultOpen, resultBusy} {
		t.duration.WithLabelValues(code) // from 0, so that the first one is an increase
	}
	return t
}
