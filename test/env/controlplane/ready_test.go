package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestPollSaysWhatItWaitedFor(t *testing.T) {
	cluster := &Cluster{done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := cluster.poll(ctx, "something", func(context.Context) error {
		cancel(errors.New("out of patience"))
		return errors.New("nothing yet")
	})
	require.EqualError(t, err, "waiting for something: out of patience; last: nothing yet")
}

func TestPollGivesUpOnABrokenCluster(t *testing.T) {
	cluster := &Cluster{done: make(chan struct{})}
	reason := errors.New("etcd ended")
	err := cluster.poll(t.Context(), "something", func(context.Context) error {
		cluster.end(reason)
		return errors.New("nothing yet")
	})
	require.Equal(t, reason, err)

	stopped := &Cluster{done: make(chan struct{})}
	stopped.end(nil)
	err = stopped.poll(t.Context(), "something", func(context.Context) error { return errors.New("nothing yet") })
	require.EqualError(t, err, "waiting for something: the cluster was stopped")
}

func TestDecodeManifest(t *testing.T) {
	objects, err := decodeManifest([]byte(`# only a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: "---"}
---
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: b, namespace: shop}
`))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	require.Equal(t, "a", objects[0].GetName())
	require.Equal(t, "shop", objects[1].GetNamespace())

	for name, manifest := range map[string]string{
		"document 2: want apiVersion, kind and metadata.name": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: B\n",
		"document 1":  "a: [",
		"already set": "apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: a}\n",
	} {
		_, err := decodeManifest([]byte(manifest))
		require.ErrorContains(t, err, name)
	}
}

func TestSchedulerConfigKeepsWhatTheCallerSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	given := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 7, kubeconfig: /elsewhere}
profiles: [{schedulerName: mine}]
`
	require.NoError(t, writeSchedulerConfig(path, "/here", []byte(given)))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, yaml.Unmarshal(data, &document))
	require.Equal(t, map[string]any{"qps": 7.0, "kubeconfig": "/here"}, document["clientConnection"])
	require.Equal(t, map[string]any{"leaderElect": false}, document["leaderElection"])
	require.Equal(t, []any{map[string]any{"schedulerName": "mine"}}, document["profiles"])

	err = writeSchedulerConfig(path, "/here", []byte("- a list"))
	require.ErrorContains(t, err, "Options.SchedulerConfig")
}
