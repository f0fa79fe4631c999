package scale

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
)

var binary = foresail.DefineFlags()

// adapter is a foresail that serves external metrics.
type adapter struct {
	*foresail.Process
	securePort int
	push       string // address that remote write is taken on
}

// startForesail runs foresail under the service account of the manifests until the benchmark ends,
// with more in its environment.
func startForesail(b *testing.B, c *controlplane.Cluster, environment ...string) *adapter {
	b.Helper()
	program, err := binary.Build(b.Context(), b.Output())
	require.NoError(b, err)
	flags, securePort, err := foresail.AdapterFlags(b.Context(), c)
	require.NoError(b, err)
	push, err := ports.TakeAddress()
	require.NoError(b, err)
	o := foresail.Options{Binary: program, Dir: c.Dir(), Flags: append(flags, "--remote-write-address", push),
		Env: environment}
	return &adapter{foresail.StartFor(b, o), securePort, push}
}

// waitServed waits until /readyz answers with 200 and every PredictedMetric is served.
func (a *adapter) waitServed(ctx context.Context, metrics int) error {
	const interval = 5 * time.Second // /metrics is work for it
	return a.Wait(ctx, interval, func(ctx context.Context) error { return a.served(ctx, metrics) })
}

func (a *adapter) served(ctx context.Context, metrics int) error {
	if err := a.Probe(ctx, "/readyz"); err != nil {
		return err
	}
	families, err := a.Metrics(ctx)
	if err != nil {
		return err
	}
	if served := families.Sum("foresail_forecast_available"); int(served) != metrics {
		return fmt.Errorf("%v of %d PredictedMetrics are served", served, metrics)
	}
	return nil
}
