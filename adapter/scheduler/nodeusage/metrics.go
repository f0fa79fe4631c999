package nodeusage

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/metricsapi"
	"github.com/foresail/foresail/internal/promapi"
)

// telemetry has the metrics of a Forecaster.
type telemetry struct {
	duration *prometheus.HistogramVec // by result
	rejected map[rejection]prometheus.Counter
}

func newTelemetry(r prometheus.Registerer, f *Forecaster) *telemetry {
	factory := promauto.With(r)
	rejected := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "foresail_node_samples_rejected_total",
		Help: "Samples of node use that were rejected, by reason: value, future or old.",
	}, []string{"reason"})
	t := &telemetry{
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foresail_node_read_duration_seconds",
			Help: "How long reads of the use of all nodes took, by how they ended: success, partial if a part " +
				"of it could be read, or the kind of failure.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
		rejected: map[rejection]prometheus.Counter{},
	}
	for _, why := range rejections() {
		t.rejected[why] = rejected.WithLabelValues(string(why))
	}
	if r != nil {
		r.MustRegister(&collector{f})
	}
	return t
}

func (t *telemetry) reject(why rejection) { t.rejected[why].Inc() }

// ended records a read of so many series.
func (t *telemetry) ended(took time.Duration, series int, err error) {
	t.duration.WithLabelValues(resultOf(series, err)).Observe(took.Seconds())
}

func resultOf(series int, err error) string {
	var listed *metricsapi.Failure
	var asked *promapi.Failure
	switch {
	case err == nil:
		return string(metricsapi.Success)
	case series > 0:
		return "partial"
	case errors.As(err, &listed):
		return string(listed.Result)
	case errors.As(err, &asked):
		return string(asked.Kind)
	default:
		return string(metricsapi.Failed)
	}
}

// collector exposes the published forecasts, so that no series of removed nodes remain.
type collector struct{ forecaster *Forecaster }

var (
	descAge = prometheus.NewDesc("foresail_node_sample_age_seconds",
		"Age of the newest samples that forecasts of nodes are made of: the median, the 0.99 quantile and the "+
			"oldest. Its count is that of nodes with a forecast.", []string{"resource"}, nil)
	descTrouble = prometheus.NewDesc("foresail_node_source_failing",
		"1 while the use of nodes cannot be read, or only a part of it, else 0.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descAge
	ch <- descTrouble
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	loads, now := c.forecaster.NodeLoads(), c.forecaster.options.Now()
	trouble := 0.0
	if loads.SourceErr != nil {
		trouble = 1
	}
	ch <- prometheus.MustNewConstMetric(descTrouble, prometheus.GaugeValue, trouble)
	for _, r := range []Resource{CPU, Memory} {
		ages := agesOf(loads, r, now)
		if len(ages) > 0 {
			ch <- prometheus.MustNewConstSummary(descAge, uint64(len(ages)), sum(ages), quantiles(ages), string(r))
		}
	}
}

// agesOf returns the ages in seconds of the newest samples behind forecasts.
func agesOf(loads *snapshot.NodeLoads, r Resource, now time.Time) []float64 {
	ages := make([]float64, 0, len(loads.Nodes))
	for _, n := range loads.Nodes {
		u := n.Memory
		if r == CPU {
			u = n.CPU
		}
		if !u.Sampled.IsZero() {
			ages = append(ages, now.Sub(u.Sampled).Seconds())
		}
	}
	return ages
}

// quantiles sorts x, which must not be empty.
func quantiles(x []float64) map[float64]float64 {
	slices.Sort(x)
	out := map[float64]float64{}
	for _, q := range []float64{0.5, 0.99, 1} {
		out[q] = x[int(q*float64(len(x)-1))]
	}
	return out
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
