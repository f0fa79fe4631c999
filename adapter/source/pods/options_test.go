package pods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
)

func TestConfigOfSpec(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{Pods: &v1alpha1.PodsSource{
		Port: intstr.Parse("9090"), Metric: "elu", MatchLabels: map[string]string{"worker": "main"},
	}}}
	spec.Default()
	assert.Equal(t, Config{
		Port: "9090", Path: "/metrics", Metric: "elu", Type: source.Gauge,
		MatchLabels: map[string]string{"worker": "main"}, Interval: time.Second,
	}, configOf(spec.Source.Pods))
}
