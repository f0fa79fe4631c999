package resource

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/api/v1alpha1"
)

func TestConfigOfSpec(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{
		Resource: &v1alpha1.ResourceSource{Name: v1alpha1.ResourceCPU, Container: "main"}}}
	spec.Default()
	assert.Equal(t, Config{Name: "cpu", Container: "main", Interval: 15 * time.Second}, configOf(spec.Source.Resource))
}
