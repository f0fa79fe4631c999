package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/stack"
)

func metricsClient(t *testing.T) externalmetrics.ExternalMetricsClient {
	t.Helper()
	client, err := externalmetrics.NewForConfig(shared.Cluster.RESTConfig())
	require.NoError(t, err)
	return client
}

func waitForForecast(t *testing.T, a stack.App) {
	t.Helper()
	client := metricsClient(t)
	var last error
	require.Eventually(t, func() bool {
		_, last = stack.ReadMetric(client, a)
		return last == nil
	}, time.Minute, 500*time.Millisecond, "no forecast of %s/%s", a.Namespace, a.Name)
	require.NoError(t, last)
}
