package remotewrite

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
)

func TestConfigOfSpec(t *testing.T) {
	spec := v1alpha1.PredictedMetricSpec{Source: v1alpha1.Source{RemoteWrite: &v1alpha1.RemoteWriteSource{
		Metric: "requests_total", Type: v1alpha1.MetricCounter, MatchLabels: map[string]string{"app": "checkout"},
	}}}
	spec.Default()
	assert.Equal(t, Config{
		Metric: "requests_total", PodLabel: "pod", Type: source.Counter,
		MatchLabels: map[string]string{"app": "checkout"},
	}, configOf(spec.Source.RemoteWrite))
}

func TestWithoutAnAddressSpecsAreRejected(t *testing.T) {
	s, err := Registration(func() bool { return false }).New(source.Environment{})
	require.NoError(t, err)
	err = s.Set(key("m"), &v1alpha1.PredictedMetricSpec{}, nil, nil)
	require.EqualError(t, err, "remote write is disabled: Foresail must be started with --remote-write-address")
	s.Remove(key("m"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, s.Run(ctx))
}
