package smoke

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
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
		until(t, "a forecast for "+a.Name, func() error {
			_, err := stack.ReadMetric(externalMetrics(t), a)
			return err
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

// until repeats a check until it returns no error, without which a test cannot continue.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "not within %s: %s: %v", patience, what, err)
	}
}

// all returns an error that says what is wrong unless all conditions hold.
func all(wrong string, conditions ...bool) error {
	if slices.Contains(conditions, false) {
		return errors.New(wrong)
	}
	return nil
}
