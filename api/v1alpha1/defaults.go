package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Default fills in every absent field that has a default: as the API server does, and those whose default depends on the
// method, which an API server cannot. The default of staleAfter depends on the source and stays absent.
func (s *PredictedMetricSpec) Default() {
	setDefault(&s.MinReplicas, 1)
	if s.Model.Type == "" {
		s.Model.Type = ModelLinear
	}
	if s.Saturation != nil {
		setQuantity(&s.Saturation.Zone, "20m")
	}
	s.Forecast.setDefaults()
	s.setDefaultsOfMethod()
	setSpan(&s.SampleInterval, time.Second)
	s.Source.setDefaults()
	s.Redistribution.setDefaults()
	s.Smoothing.setDefaults()
	s.Startup.setDefaults()
	s.Horizon.setDefaults()
	s.Decision.setDefaults()
	s.Cooldown.setDefaults()
}

func (f *Forecast) setDefaults() {
	setString(&f.Method, ForecastHolt)
	if f.Method == ForecastAdaptive {
		setQuantity(&f.NoiseMargin, "800m")
	}
}

// methodDefaults are the defaults that depend on the method.
type methodDefaults struct {
	window                      time.Duration
	multiplier, scaleDownMargin string
	maxStep                     int32
	downAfterUp, downAfterDown  time.Duration
}

func (s *PredictedMetricSpec) setDefaultsOfMethod() {
	d := methodDefaults{
		window: 90 * time.Second, multiplier: "1200m", scaleDownMargin: "300m", maxStep: 4,
		downAfterUp: 3 * time.Minute, downAfterDown: time.Minute,
	}
	if s.Forecast.Method == ForecastAdaptive {
		d = methodDefaults{window: 5 * time.Minute, multiplier: "1", scaleDownMargin: "50m"}
	}
	setSpan(&s.Window, d.window)
	setQuantity(&s.Horizon.Multiplier, d.multiplier)
	setQuantity(&s.Decision.ScaleDownMargin, d.scaleDownMargin)
	setDefault(&s.Decision.MaxStep, d.maxStep)
	setSpan(&s.Cooldown.DownAfterUp, d.downAfterUp)
	setSpan(&s.Cooldown.DownAfterDown, d.downAfterDown)
}

func (s *Source) setDefaults() {
	if p := s.Pods; p != nil {
		setString(&p.Path, "/metrics")
		setString(&p.Type, MetricGauge)
		setSpan(&p.Interval, time.Second)
	}
	if p := s.Prometheus; p != nil {
		setString(&p.PodLabel, "pod")
		setString(&p.NamespaceLabel, "namespace")
		setString(&p.Type, MetricGauge)
		setSpan(&p.Interval, 5*time.Second)
	}
	if w := s.RemoteWrite; w != nil {
		setString(&w.PodLabel, "pod")
		setString(&w.NamespaceLabel, "namespace")
		setString(&w.Type, MetricGauge)
	}
	if r := s.Resource; r != nil {
		setSpan(&r.Interval, 15*time.Second)
	}
}

func (r *Redistribution) setDefaults() {
	setSpan(&r.Timeout, 30*time.Second)
	setQuantity(&r.Shape, "1")
}

func (s *Smoothing) setDefaults() {
	setQuantity(&s.LevelUp, "200m")
	setQuantity(&s.LevelDown, "100m")
	setQuantity(&s.TrendUp, "200m")
	setQuantity(&s.TrendDown, "100m")
}

func (s *Startup) setDefaults() {
	setSpan(&s.Initial, 25*time.Second)
	setDefault(&s.Adaptive, true)
}

func (h *Horizon) setDefaults() {
	setSpan(&h.Min, 10*time.Second)
	setSpan(&h.Max, 40*time.Second)
	setSpan(&h.ReactionDelay, 15*time.Second)
}

func (d *Decision) setDefaults() {
	setQuantity(&d.TrendAngle, "10")
	setQuantity(&d.RiskFactor, "2")
	setQuantity(&d.Spillover, "100m")
	setSpan(&d.PendingExpiry, time.Minute)
}

func (c *Cooldown) setDefaults() {
	setSpan(&c.UpAfterUp, 5*time.Second)
	setSpan(&c.UpAfterDown, 5*time.Second)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setString[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setSpan(field **metav1.Duration, value time.Duration) {
	setDefault(field, metav1.Duration{Duration: value})
}

func setQuantity(field **resource.Quantity, value string) {
	setDefault(field, resource.MustParse(value))
}
