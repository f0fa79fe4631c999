package prometheus

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/foresail/foresail/internal/promapi"
)

// result classifies how a query ended.
type result string

const (
	resultSuccess    result = "success"
	resultEmpty      result = "empty"   // an answer without series
	resultPartial    result = "partial" // an answer that warns of something
	resultConnection        = result(promapi.Connection)
	resultTimeout           = result(promapi.Timeout)
	resultQuery             = result(promapi.Rejected) // or it is no selector
	resultStatus            = result(promapi.Status)
	resultContent           = result(promapi.Content)
	resultLimit             = result(promapi.Limit)
	resultCancelled  result = "cancelled"
)

// telemetry is the metrics of a Source.
type telemetry struct {
	queries  *prometheus.CounterVec
	duration prometheus.Histogram
	series   prometheus.Counter
	samples  prometheus.Counter
	groups   prometheus.Gauge
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	t := &telemetry{
		queries: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_prometheus_queries_total", Help: "Queries to Prometheus servers, by result.",
		}, []string{"result"}),
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "foresail_prometheus_query_duration_seconds", Help: "Duration of queries to Prometheus servers, failed ones included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		series: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_prometheus_series_total", Help: "Series in the answers of Prometheus servers.",
		}),
		samples: factory.NewCounter(prometheus.CounterOpts{
			Name: "foresail_prometheus_samples_total", Help: "Samples taken from the answers of Prometheus servers, once for each PredictedMetric that takes them.",
		}),
		groups: factory.NewGauge(prometheus.GaugeOpts{
			Name: "foresail_prometheus_groups", Help: "Groups of PredictedMetrics that share a query to a Prometheus server.",
		}),
	}
	for _, r := range []result{
		resultSuccess, resultEmpty, resultPartial, resultConnection, resultTimeout, resultQuery, resultStatus, resultContent, resultLimit, resultCancelled,
	} {
		t.queries.WithLabelValues(string(r))
	}
	return t
}

// outcome is how a query ended.
type outcome struct {
	series         int
	partial, empty bool
	err            error
}

// asked counts a query.
func (t *telemetry) asked(ctx context.Context, o outcome, took time.Duration) {
	t.duration.Observe(took.Seconds())
	as := resultSuccess
	var why *promapi.Failure
	switch {
	case ctx.Err() != nil:
		as = resultCancelled
	case errors.As(o.err, &why):
		as = result(why.Kind)
	case o.partial:
		as = resultPartial
	case o.empty:
		as = resultEmpty
	}
	t.series.Add(float64(o.series))
	t.queries.WithLabelValues(string(as)).Inc()
}
