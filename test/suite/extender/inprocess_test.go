package extender

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/nodeusage"
	"github.com/foresail/foresail/nodepool/drain"
)

// startWithoutAssumedPods serves an extender of this process that does not count what was bound since the last reading: no
// flag of the command does that.
func startWithoutAssumedPods(t *testing.T, interval time.Duration) *probe {
	t.Helper()
	metrics, err := metricsclient.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	loads, err := nodeusage.New(nodeusage.Options{Source: &nodeusage.MetricsAPI{Client: metrics.MetricsV1beta1()}, Interval: interval})
	require.NoError(t, err)
	rules := extender.DefaultRules()
	rules.IgnoreAssumedPods, rules.WarmUp = true, 0
	e, err := extender.New(extender.Options{Client: cluster.Client(), Forecasts: loads, RemovalMark: drain.Mark, Rules: rules})
	require.NoError(t, err)
	cert, key, err := cluster.ServingCertificate("127.0.0.1")
	require.NoError(t, err)
	server, err := extender.NewServer(extender.ServerOptions{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key}, e.Handler())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	parts, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{server.Run, e.Run, loads.Run} {
		parts.Go(func() error { return run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, parts.Wait())
	})
	explanations := httptest.NewServer(e.ExplainHandler())
	t.Cleanup(explanations.Close)
	return newProbe(t, server.Addr().String(), explanations.URL)
}
