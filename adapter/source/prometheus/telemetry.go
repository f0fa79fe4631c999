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
	duration *prometheus.HistogramVec // by result
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	t := &telemetry{
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "foresail_prometheus_query_duration_seconds",
			Help:    "Duration of queries to Prometheus servers, by result.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
	}
	for _, r := range []result{
		resultSuccess, resultEmpty, resultPartial, resultConnection, resultTimeout, resultQuery, resultStatus,
		resultContent,
		resultLimit, resultCancelled,
	} {
		t.duration.WithLabelValues(string(r))
	}
	return t
}

// outcome is how a query ended.
type outcome struct {
	partial, empty bool
	err            error
}

// asked counts a query.
func (t *telemetry) asked(ctx context.Context, o outcome, took time.Duration) {
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
	t.duration.WithLabelValues(string(as)).Observe(took.Seconds())
}
