package keda

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/adapter/serving"
)

// FuzzTrigger sends triggers of any content: one that is taken names a PredictedMetric of the namespace of the
// ScaledObject, and one that is not is answered in a short text that a gRPC status can carry.
func FuzzTrigger(f *testing.F) {
	f.Add("shop", "checkout", keyPredictedMetric, "checkout", keyActivation, "0.5")
	f.Add("shop", "checkout", keyMetric, serving.Replicas, "activationFromEnv", "0")
	f.Add("shop", "checkout", keyActivation, "-0", "caCert", "x")
	f.Fuzz(func(t *testing.T, namespace, name, key1, value1, key2, value2 string) {
		if !utf8.ValidString(namespace + name + key1 + value1 + key2 + value2) {
			t.Skip("protobuf refuses it")
		}
		got, err := triggerOf(&externalscaler.ScaledObjectRef{
			Namespace: namespace, Name: name, ScalerMetadata: map[string]string{key1: value1, key2: value2},
		})
		if err != nil {
			assert.Equal(t, serving.Invalid, serving.AsError(err).Class)
			assert.Less(t, len(err.Error()), 1000)
			assert.True(t, utf8.ValidString(err.Error()))
			return
		}
		assert.Equal(t, namespace, got.predicted.Namespace)
		assert.Contains(t, []string{name, value1, value2}, got.predicted.Name)
		assert.Contains(t, []string{serving.LoadTotal, serving.Replicas}, got.metric)
		assert.GreaterOrEqual(t, got.activation, 0.0)
		require.False(t, got.isActive(0), "nothing is no activity")
	})
}
