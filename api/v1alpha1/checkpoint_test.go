package v1alpha1_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
)

// TestCheckpointsAreBounded: the schema holds what Foresail writes, and nothing larger.
func TestCheckpointsAreBounded(t *testing.T) {
	crd := crdtest.Load(t, "../../manifests/crds/foresail.dev_predictedmetriccheckpoints.yaml")
	checkpoint := func(field string, value any) map[string]any {
		object := parse(t, []byte(`{apiVersion: foresail.dev/v1alpha1, kind: PredictedMetricCheckpoint, metadata: {name: web, namespace: shop},
version: 1, learned: 8h0m0s, updated: "2026-10-01T08:00:00Z", data: ""}`))
		object[field] = value
		return object
	}
	data := func(size int) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, size))
	}
	largest := checkpoint("data", data(v1alpha1.MaxCheckpointData))
	require.Empty(t, crd.UnknownFields(largest))
	require.Empty(t, crd.Validate(largest))
	var typed v1alpha1.PredictedMetricCheckpoint
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(largest, &typed))
	assert.Len(t, typed.Data, v1alpha1.MaxCheckpointData)

	for name, bad := range map[string]map[string]any{
		"too large":        checkpoint("data", data(v1alpha1.MaxCheckpointData+1)),
		"no base64":        checkpoint("data", "*"),
		"data of a number": checkpoint("data", int64(1)),
		"no version":       checkpoint("version", int64(0)),
		"learned nothing":  checkpoint("learned", "all"),
		"learned too long": checkpoint("learned", "0000000000000000000000000000001h0m"),
		"updated":          checkpoint("updated", "yesterday"),
	} {
		assert.NotEmpty(t, crd.Validate(bad), name)
	}

	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind("PredictedMetricCheckpoint")))
	assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind("PredictedMetricCheckpointList")))
}
