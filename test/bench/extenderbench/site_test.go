package extenderbench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

// startSite runs etcd and an API server that hold a crowd, and what its nodes use beside them,
// until the benchmark ends.
func startSite(b *testing.B, c crowd) *controlplane.Cluster {
	b.Helper()
	cluster, err := controlplane.Start(context.WithoutCancel(b.Context()),
		controlplane.Options{APIOnly: true, Progress: b.Output()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cluster.Stop()) })
	require.NoError(b, foresail.Apply(b.Context(), cluster, "crds/*.yaml"))
	begun := time.Now()
	require.NoError(b, c.fill(b.Context(), cluster))
	b.Logf("%d nodes and %d pods have been written in %s", c.nodes, c.nodes*c.podsOnNode,
		time.Since(begun).Round(100*time.Millisecond))
	serveUsage(b, cluster, c)
	return cluster
}
