package forecaster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/snapshot"
)

// telemetry is what Prometheus can read of the forecasts.
type telemetry struct {
	runs  *prometheus.CounterVec
	round prometheus.Histogram
}

func newTelemetry(r prometheus.Registerer, f *Forecaster) *telemetry {
	t := &telemetry{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foresail_forecasts_total",
			Help: "Forecasts made, by result: ok, or the reason why there was none.",
		}, []string{"result"}),
		round: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "foresail_forecast_round_duration_seconds",
			Help:    "Time to make the forecasts of all PredictedMetrics once.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	r.MustRegister(t.runs, t.round, &collector{f})
	return t
}

func (t *telemetry) ran(failed snapshot.Reason) {
	result := "ok"
	if failed != "" {
		result = string(failed)
	}
	t.runs.WithLabelValues(result).Inc()
}

// collector exposes the current snapshots, so that nothing is left behind of a PredictedMetric that has gone.
type collector struct{ forecaster *Forecaster }

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("foresail_"+name, help, []string{"namespace", "predictedmetric"}, nil)
}

var (
	descAvailable  = describe("forecast_available", "1 while a forecast is served, else 0.")
	descThreshold  = describe("threshold", "Threshold per instance, in units of the metric.")
	descNow        = describe("load_per_instance", "Smoothed load per instance now, in units of the metric.")
	descPredicted  = describe("predicted_load_per_instance", "Load per instance of the target count at the horizon, in units of the metric.")
	descTotal      = describe("predicted_load", "Load of all instances at the horizon, as served to the HPA.")
	descWanted     = describe("wanted_replicas", "Replicas that the decision asks for.")
	descTarget     = describe("target_replicas", "Replicas that the scale target is set to.")
	descReady      = describe("ready_pods", "Pods of the target that are Running and Ready.")
	descAge        = describe("sample_age_seconds", "Age of the newest sample.")
	descRate       = describe("samples_per_second", "Samples received over the last ten seconds, of all instances.")
	descUnreadable = describe("unreadable_pods", "Ready pods whose last reading failed.")
	descHorizon    = describe("horizon_seconds", "How far ahead the load is forecast.")
	descInit       = describe("init_timeout_seconds", "How long a pod is taken to need to become Ready.")
	descDropped    = describe("dropped_samples", "Samples in the window that were refused.")
)

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descAvailable, descThreshold, descNow, descPredicted, descTotal, descWanted, descTarget,
		descReady, descAge, descRate, descUnreadable, descHorizon, descInit, descDropped,
	} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	now := c.forecaster.now()
	for _, feed := range c.forecaster.all() {
		s := feed.Snapshot()
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Metric.Namespace, s.Metric.Name)
		}
		gauge(descThreshold, s.Threshold)
		gauge(descReady, float64(s.Ready))
		gauge(descRate, s.SamplesPerSecond)
		gauge(descUnreadable, float64(len(s.Failing)))
		gauge(descInit, s.InitTimeout.Seconds())
		if !s.NewestSample.IsZero() {
			gauge(descAge, now.Sub(s.NewestSample).Seconds())
		}
		if s.Err != nil {
			gauge(descAvailable, 0)
			continue
		}
		gauge(descAvailable, 1)
		gauge(descNow, s.Forecast.LoadNow)
		gauge(descPredicted, s.Forecast.LoadPredicted)
		gauge(descTotal, s.Forecast.Serve)
		gauge(descWanted, float64(s.Decision.Wanted))
		gauge(descTarget, float64(s.Forecast.Target))
		gauge(descHorizon, s.Forecast.Horizon.Seconds())
		gauge(descDropped, float64(s.Forecast.Dropped))
	}
}
