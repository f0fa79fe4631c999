package extenderbench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
)

var binary = foresail.DefineFlags()

// extenderProcess is a foresail that answers schedulers.
type extenderProcess struct {
	*foresail.Process
	address string // that schedulers ask
}

// startForesail runs an extender until the benchmark ends, and returns it once it is ready, with
// how long that took.
func startForesail(b *testing.B, cluster *controlplane.Cluster, program foresail.Binary) (*extenderProcess,
	time.Duration) {
	b.Helper()
	address, err := ports.TakeAddress()
	require.NoError(b, err)
	begun := time.Now()
	p := foresail.StartFor(b, foresail.Options{
		Binary: program, Dir: cluster.Dir(),
		Flags: []string{"--enable", "extender", "--kubeconfig", cluster.Kubeconfig(), "--extender-address", address},
	})
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(b, p.WaitReady(ctx))
	return &extenderProcess{p, address}, time.Since(begun)
}

// readsToForecast is how often the use of nodes is read until there is a forecast of it, and once
// more for good measure.
const readsToForecast = 6

// waitForecasts waits until nodes are scored by what they are predicted to use.
func (f *extenderProcess) waitForecasts(b *testing.B) {
	b.Helper()
	require.Eventually(b, func() bool {
		families, err := f.Metrics(b.Context())
		return err == nil && families.Sum("foresail_node_read_duration_seconds") >= readsToForecast
	}, 5*time.Minute, time.Second)
}

// buildForesail builds the command.
func buildForesail(b *testing.B) foresail.Binary {
	b.Helper()
	program, err := binary.Build(b.Context(), b.Output())
	require.NoError(b, err)
	return program
}

// profile writes profiles of foresail that cover some time, if they are asked for. It returns at
// once; wait ends with them.
func (f *extenderProcess) profile(b *testing.B, name string, span time.Duration) (wait func()) {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- f.SaveProfiles(b.Context(), name, span) }()
	return func() { require.NoError(b, <-done) }
}
