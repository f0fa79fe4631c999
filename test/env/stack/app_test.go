package stack

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/workload"
)

// A program that listens on a port of all addresses has that port of every pod too, so pods get
// ports that are free.
func TestPodsListenOnThePortsOfTheStack(t *testing.T) {
	free, err := takePodPorts()
	require.NoError(t, err)
	assert.NotEqual(t, free.App, free.Metrics)

	manifest, err := App{Namespace: "shop", Name: "checkout", Metric: "predicted_load_total",
		Threshold: resource.MustParse("700m")}.manifest(1, free, true)
	require.NoError(t, err)
	var deployment appsv1.Deployment
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		if bytes.HasPrefix(document, []byte("apiVersion: apps/v1\n")) {
			require.NoError(t, yaml.UnmarshalStrict(document, &deployment))
		}
	}
	pod := &corev1.Pod{Spec: deployment.Spec.Template.Spec, Status: corev1.PodStatus{PodIP: "127.0.0.1"}}
	app, err := workload.AppAddress(pod)
	require.NoError(t, err)
	metrics, err := workload.MetricsAddress(pod)
	require.NoError(t, err)
	assert.Equal(t, []string{ports.Loopback(free.App), ports.Loopback(free.Metrics)},
		[]string{app.String(), metrics.String()})
}

func TestTheFirstFailureIsTheCause(t *testing.T) {
	s := &Stack{failed: make(chan error, 1)}
	s.fail(assert.AnError)
	s.fail(nil)
	assert.Equal(t, assert.AnError, <-s.Failed())
	assert.Empty(t, s.Failed())
}
