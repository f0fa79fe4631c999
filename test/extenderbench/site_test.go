package extenderbench

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/controlplane"
)

// startSite runs etcd and an API server that hold a crowd, and what its nodes use beside them, until the benchmark ends.
func startSite(b *testing.B, c crowd) *controlplane.Cluster {
	b.Helper()
	cluster, err := controlplane.Start(context.WithoutCancel(b.Context()), controlplane.Options{APIOnly: true, Progress: b.Output()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cluster.Stop()) })
	applyDefinitions(b, cluster)
	begun := time.Now()
	require.NoError(b, c.fill(b.Context(), cluster))
	b.Logf("%d nodes and %d pods have been written in %s", c.nodes, c.nodes*c.podsOnNode, time.Since(begun).Round(100*time.Millisecond))
	serveUsage(b, cluster, c)
	return cluster
}

func applyDefinitions(b *testing.B, cluster *controlplane.Cluster) {
	b.Helper()
	root, err := controlplane.Root()
	require.NoError(b, err)
	files, err := filepath.Glob(filepath.Join(root, "manifests", "crds", "foresail.dev_*.yaml"))
	require.NoError(b, err)
	for _, file := range files {
		definition, err := os.ReadFile(file)
		require.NoError(b, err)
		_, err = cluster.Apply(b.Context(), definition)
		require.NoError(b, err, file)
	}
}
