package scale

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/controlplane"
)

func remoteWriteSource() v1alpha1.Source {
	return v1alpha1.Source{RemoteWrite: &v1alpha1.RemoteWriteSource{Metric: loadMetric, PodLabel: "pod"}}
}

// feed fills a cluster, runs Foresail on it and keeps it served until the benchmark ends.
func feed(b *testing.B, c *controlplane.Cluster, p population) *adapter {
	b.Helper()
	p.source = remoteWriteSource()
	require.NoError(b, fill(b.Context(), c, p))
	f := startForesail(b, c)
	startPushing(b, f, p, remoteWriteV1())
	waitServed(b, f, p)
	return f
}
