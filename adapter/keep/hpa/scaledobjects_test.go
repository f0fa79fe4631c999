package hpa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep/keeptest"
	"github.com/foresail/foresail/api/v1alpha1"
)

// The ScaledObject has the HPA, so the PredictedMetric has no spec.autoscaler.
func TestMaximumOfAScaledObjectIsCompared(t *testing.T) {
	pm, o := subject.Checkout(), newScaledObject("checkout-keda", "checkout")
	pm.Spec.Autoscaler, pm.Status.Conditions = nil, nil
	subject.Play(t, []client.Object{pm, o}, func(f *keeptest.Fixture) {
		maximum := func() *metav1.Condition {
			f.Helper()
			f.Pass()
			return meta.FindStatusCondition(f.Metric("checkout").Status.Conditions, v1alpha1.ConditionMaxReplicasMatch)
		}
		f.Lead()
		c := maximum()
		require.NotNil(f, c)
		assert.Equal(f, metav1.ConditionFalse, c.Status, "KEDA's default is 100")
		assert.Equal(f, "ScaledObject checkout-keda has maxReplicaCount 100, this PredictedMetric maxReplicas 20: predicted_replicas and the status end at the latter; set both alike",
			c.Message)

		require.NoError(f, f.Client.Patch(f.Context(), o,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxReplicaCount":20}}`))))
		f.PassFor(scaledObjectPeriod)
		c = maximum()
		require.NotNil(f, c)
		assert.Equal(f, metav1.ConditionTrue, c.Status)

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.Schedules = scheduled() })
		c = maximum()
		assert.Equal(f, "ScaledObject checkout-keda has maxReplicaCount 20, this PredictedMetric maxReplicas 100, with its schedules: predicted_replicas and the status end at the latter; set both alike",
			c.Message)

		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.MaxReplicas, s.Schedules = nil, nil })
		c = maximum()
		assert.Nil(f, c, "there is nothing to compare")
		f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.MaxReplicas = new(int32(20)) })

		require.NoError(f, f.Client.Delete(f.Context(), o))
		f.PassFor(scaledObjectPeriod)
		c = maximum()
		assert.Nil(f, c, "there is no ScaledObject")
		assert.Empty(f, f.Wrote())

		require.NoError(f, f.Client.Create(f.Context(), newScaledObject("checkout-keda", "checkout")))
		f.PassFor(scaledObjectPeriod)
		require.NotNil(f, maximum())
		f.Lead()
		f.WriteStatus()
		assert.NotNil(f, meta.FindStatusCondition(f.Metric("checkout").Status.Conditions,
			v1alpha1.ConditionMaxReplicasMatch),
			"a new leader knows nothing yet")
	})
}
