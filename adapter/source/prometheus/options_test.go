package prometheus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
)

func TestConfigOfSpec(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{
		Window: &metav1.Duration{Duration: 90 * time.Second},
		Source: v1alpha1.Source{Prometheus: &v1alpha1.PrometheusSource{Address: "http://prometheus:9090", Query: "elu"}},
	}
	spec.Default()
	want := Config{
		Address: "http://prometheus:9090", Query: "elu", PodLabel: "pod", NamespaceLabel: "namespace",
		Type: source.Gauge, Interval: 5 * time.Second, Window: 90 * time.Second,
	}
	assert.Equal(t, want, configOf(&spec))

	spec.Source.Prometheus.Interval.Duration = 2 * time.Minute
	want.Interval, want.Window = 2*time.Minute, 2*time.Minute
	assert.Equal(t, want, configOf(&spec), "the window covers an interval at least")
}
