package forecaster

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// telemetry is the metrics of the forecasts.
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
			Help:    "Time to make the forecasts of all PredictedMetrics once, without the pauses by which they are spread over a second.",
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

// collector exposes the current snapshots, so that no series is left of a deleted PredictedMetric.
type collector struct{ forecaster *Forecaster }

func newDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("foresail_"+name, help, []string{"namespace", "predictedmetric"}, nil)
}

func describeSamples(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("foresail_"+name, help, []string{"namespace", "predictedmetric", "source"}, nil)
}

func describeSpan(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("foresail_"+name, help, []string{"namespace", "predictedmetric", "over"}, nil)
}

var (
	descAvailable = newDesc("forecast_available",
		"1 while there is a forecast, else 0. It is served unless foresail_dry_run is 1.")
	descDryRun    = newDesc("dry_run", "1 while spec.dryRun is true, so that nothing acts on the forecast, else 0.")
	descThreshold = newDesc("threshold", "Threshold per instance, in units of the metric.")
	descNow       = newDesc("load_per_instance", "Smoothed load per instance now, in units of the metric.")
	descLoad      = newDesc("load",
		"Smoothed load of all instances now: what they carry together, as spec.model has it.")
	descPredicted = newDesc("predicted_load_per_instance",
		"Load per instance of the target count at the horizon, in units of the metric.")
	descTotal    = newDesc("predicted_load", "Load of all instances at the horizon, as served to the HPA.")
	descDesired  = newDesc("desired_replicas", "Replicas that the forecast needs.")
	descCombined = newDesc("target_desired_replicas",
		"Replicas that all PredictedMetrics of the target need together, those in dry run left out: the largest. Absent while none has a decision.")
	descTarget  = newDesc("target_replicas", "Replicas that the scale target is set to.")
	descReady   = newDesc("ready_pods", "Pods of the target that are Running and Ready.")
	descAge     = describeSamples("sample_age_seconds", "Age of the newest sample.")
	descRate    = describeSamples("samples_per_second", "Samples received over the last ten seconds, of all instances.")
	descSpacing = describeSamples("sample_interval_seconds",
		"Mean time between two samples of an instance, as measured.")
	descFailing    = describeSamples("source_failing", "1 while the source as a whole cannot be read, else 0.")
	descUnreadable = newDesc("unreadable_pods", "Ready pods whose last reading failed.")
	descHorizon    = newDesc("horizon_seconds", "How far ahead the load is forecast.")
	descStartup    = newDesc("startup_time_seconds",
		"Time from the creation of a pod to its readiness, assumed or measured.")
	descError = describeSpan("forecast_error_ratio",
		"Mean absolute error of the forecast at its horizon, divided by that of the present load taken to stay; below 1 is better. Absent until a time has been judged.")
	descLate = describeSpan("forecast_late_ratio",
		"Share of the time with too few pods: more load came than the replicas that were ordered for it hold at the threshold, and the maximum allowed for more. spec.lateness asks for it.")
	descLateness = newDesc("forecast_lateness_ratio",
		"The share of the time that spec.lateness allows forecast_late_ratio to be. 0 with method Holt.")
)

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descAvailable, descDryRun, descThreshold, descNow, descLoad, descPredicted, descTotal,
		descDesired, descCombined, descTarget,
		descReady, descAge, descRate, descSpacing, descFailing, descUnreadable, descHorizon, descStartup,
		descError, descLate, descLateness,
	} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	now := c.forecaster.now()
	for _, feed := range c.forecaster.feeds.all() {
		s, ok := c.forecaster.Get(feed.key)
		if !ok {
			continue // it has been deleted
		}
		collectSamples(ch, &s, now)
		collectForecast(ch, &s)
	}
}

func collectSamples(ch chan<- prometheus.Metric, s *snapshot.Snapshot, now time.Time) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Metric.Namespace, s.Metric.Name, s.Source)
	}
	gauge(descRate, s.SamplesPerSecond)
	gauge(descFailing, indicator(s.SourceErr != nil))
	if !s.NewestSample.IsZero() {
		gauge(descAge, now.Sub(s.NewestSample).Seconds())
	}
	if s.SampleInterval > 0 {
		gauge(descSpacing, s.SampleInterval.Seconds())
	}
}

func collectForecast(ch chan<- prometheus.Metric, s *snapshot.Snapshot) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Metric.Namespace, s.Metric.Name)
	}
	gauge(descThreshold, s.Threshold)
	gauge(descReady, float64(s.Ready))
	gauge(descUnreadable, float64(len(s.Failing)))
	gauge(descStartup, s.StartupTime.Seconds())
	gauge(descAvailable, indicator(s.Err == nil))
	gauge(descDryRun, indicator(s.DryRun))
	if s.Err != nil {
		return
	}
	gauge(descNow, s.Forecast.LoadNow)
	gauge(descLoad, s.Forecast.Level)
	gauge(descPredicted, s.Forecast.LoadPredicted)
	gauge(descTotal, s.Forecast.ServedLoad)
	gauge(descDesired, float64(s.Decision.Desired))
	if s.Combined.Decided() {
		gauge(descCombined, float64(s.Combined.Desired))
	}
	gauge(descTarget, float64(s.Forecast.Target))
	gauge(descHorizon, s.Forecast.Horizon.Seconds())
	gauge(descLateness, s.Lateness)
	collectScore(ch, s, s.Accuracy.LastHour, "1h")
	collectScore(ch, s, s.Accuracy.LastDay, "1d")
}

func collectScore(ch chan<- prometheus.Metric, s *snapshot.Snapshot, score pipeline.Score, over string) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Metric.Namespace, s.Metric.Name, over)
	}
	if score.LateKnown > 0 {
		gauge(descLate, score.Late)
	}
	if ratio := score.Ratio(); !math.IsNaN(ratio) {
		gauge(descError, ratio)
	}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
