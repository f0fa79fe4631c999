package prometheus

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// measured is pods of which a startup time has been measured, 0 = of none.
type measured time.Duration

func (m measured) StartupTime(_ pipeline.Method, initial time.Duration) time.Duration {
	return cmp.Or(time.Duration(m), initial)
}

func TestConfigOfSpec(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{
		Holt: &v1alpha1.Holt{}, // its window does not grow
		Source: v1alpha1.Source{Prometheus: &v1alpha1.PrometheusSource{Address: "http://prometheus:9090",
			Query: "elu"}},
	}
	spec.Default()
	want := Config{
		Address: "http://prometheus:9090", Query: "elu", PodLabel: "pod",
		Type: source.Gauge, Interval: 5 * time.Second, Window: 90 * time.Second,
	}
	assert.Equal(t, want, configOf(&spec, measured(time.Hour)))

	spec.Source.Prometheus.Interval.Duration = 2 * time.Minute
	want.Interval, want.Window = 2*time.Minute, 2*time.Minute
	assert.Equal(t, want, configOf(&spec, measured(time.Hour)), "the window covers an interval at least")
}

// After a restart the start-ups of the pods that exist are measured before the first query.
func TestWindowFollowsTheMeasuredStartup(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{Prometheus: &v1alpha1.PrometheusSource{}}}
	spec.Default()
	window := func(m measured) time.Duration { return configOf(&spec, m).Window }
	assumed := window(0)
	assert.Equal(t, assumed, window(measured(spec.StartupTime.Duration)))
	assert.Greater(t, window(measured(10*time.Minute)), max(assumed, 10*time.Minute))
}
