package extender

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

// Strategies of NodeResourcesFit.
const (
	leastAllocated = "LeastAllocated" // as it is by default: spread
	mostAllocated  = "MostAllocated"  // as the manifests have it: pack
)

// schedulerConfig is the part of a KubeSchedulerConfiguration that is changed.
type schedulerConfig = map[string]any

// asking returns the configuration of the manifests for a scheduler, with an extender at another
// address that is known by the cluster's CA.
func asking(t *testing.T, address string, change ...func(schedulerConfig)) []byte {
	t.Helper()
	return configured(t, append([]func(schedulerConfig){func(c schedulerConfig) {
		e := c["extenders"].([]any)[0].(schedulerConfig)
		e["urlPrefix"] = "https://" + address + "/scheduler"
		e["tlsConfig"] = schedulerConfig{"caData": cluster.CA()}
	}}, change...)...)
}

// plain returns that of a scheduler without an extender, otherwise as it is by default.
func plain(t *testing.T) []byte {
	t.Helper()
	return configured(t, func(c schedulerConfig) { delete(c, "extenders") }, strategy(leastAllocated))
}

// strategy has nodes be scored by requests in a way.
func strategy(name string) func(schedulerConfig) {
	return func(c schedulerConfig) {
		profile := c["profiles"].([]any)[0].(schedulerConfig)
		args := profile["pluginConfig"].([]any)[0].(schedulerConfig)["args"].(schedulerConfig)
		args["scoringStrategy"].(schedulerConfig)["type"] = name
	}
}

// patient has answers be waited for, where a test is about what they say, on a machine that is busy
// with others' tests.
func patient(c schedulerConfig) {
	c["extenders"].([]any)[0].(schedulerConfig)["httpTimeout"] = "5s"
}

// configured changes the configuration of the manifests. The scheduler may write as fast as the API
// server takes it, where its own limit is 50 requests a second.
func configured(t *testing.T, change ...func(schedulerConfig)) []byte {
	t.Helper()
	manifest, err := foresail.ReadManifest("scheduler/kubescheduler.yaml")
	require.NoError(t, err)
	config := schedulerConfig{}
	require.NoError(t, yaml.Unmarshal(manifest, &config))
	config["clientConnection"] = schedulerConfig{"qps": 1000, "burst": 2000}
	delete(config["profiles"].([]any)[0].(schedulerConfig), "schedulerName")
	for _, edit := range change {
		edit(config)
	}
	content, err := yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

// startScheduler runs one until the test ends.
func startScheduler(t *testing.T, name string, config []byte) *controlplane.FurtherScheduler {
	t.Helper()
	s, err := cluster.StartScheduler(t.Context(), name, config)
	require.NoError(t, err)
	foresail.EndWith(t, s.Name, s.Process)
	return s
}

// skipped counts how often a scheduler went on without an answer of its extender, by its log.
func skipped(t *testing.T, s *controlplane.FurtherScheduler) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(cluster.Dir(), "scheduler-"+s.Name+".log"))
	require.NoError(t, err)
	return bytes.Count(content, []byte("Skipping extender as it returned error"))
}
