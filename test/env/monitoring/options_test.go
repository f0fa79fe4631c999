package monitoring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRejectsBadOptions(t *testing.T) {
	for message, options := range map[string]PrometheusOptions{
		"PrometheusOptions.ScrapeInterval: -1s": {ScrapeInterval: -time.Second},
		"PrometheusOptions.ScrapeTimeout: 2s":   {ScrapeTimeout: 2 * time.Second},
		"PrometheusOptions.RemoteWrite: none":   {Agent: true},
		"PrometheusOptions.History: 1h0m0s":     {Agent: true, History: time.Hour},
		"PrometheusOptions.RemoteWrite[1].Version: 3": {RemoteWrite: []RemoteWrite{{URL: "http://a"},
			{URL: "http://a", Version: 3}}},
		`PrometheusOptions.RemoteWrite[0].URL: "foresail"`: {RemoteWrite: []RemoteWrite{{URL: "foresail"}}},
	} {
		_, err := StartPrometheus(t.Context(), nil, options)
		require.ErrorContains(t, err, message)
	}
	_, err := StartMetricsServer(t.Context(), nil, MetricsServerOptions{Resolution: time.Second})
	require.ErrorContains(t, err, "MetricsServerOptions.Resolution: 1s: want 10s or more")
}
