package monitoring

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrometheusRelease(t *testing.T) {
	for module, release := range map[string]string{"v0.313.5": "3.13.5", "v0.300.0": "3.0.0", "v0.55.1": "2.55.1"} {
		got, err := prometheusRelease(module)
		require.NoError(t, err)
		assert.Equal(t, release, got)
	}
	_, err := prometheusRelease("v3")
	require.ErrorContains(t, err, `"v3": want one such as`)
}
