package smoke

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/loadgen"
	"github.com/foresail/foresail/test/stack"
)

// deploy creates applications and waits for the first forecast of each.
func deploy(t *testing.T, apps ...stack.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range apps {
		group.Go(func() error { return shared.Deploy(ctx, a) })
	}
	require.NoError(t, group.Wait())
	for _, a := range apps {
		until(t, "a forecast for "+a.Name, func() bool {
			_, err := stack.ReadMetric(externalMetrics(t), a)
			return err == nil
		})
	}
}

// play deploys applications and sends each the same load. The runs are in the order of the applications.
func play(t *testing.T, profile loadgen.Profile, apps ...stack.App) []stack.Run {
	t.Helper()
	deploy(t, apps...)
	runs := make([]stack.Run, len(apps))
	group, ctx := errgroup.WithContext(t.Context())
	for i, a := range apps {
		group.Go(func() (err error) {
			runs[i], err = shared.Play(ctx, a, profile, nil)
			return err
		})
	}
	require.NoError(t, group.Wait())
	return runs
}

func externalMetrics(t *testing.T) externalmetrics.ExternalMetricsClient {
	t.Helper()
	metrics, err := externalmetrics.NewForConfig(shared.Cluster.RESTConfig())
	require.NoError(t, err)
	return metrics
}

// until waits for a condition without which a test cannot continue. It checks in the goroutine of the test, so that the
// condition may use require.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not within %s: %s", patience, what)
	}
}
