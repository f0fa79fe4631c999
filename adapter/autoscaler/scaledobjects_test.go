package autoscaler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// The ScaledObject has the HPA, so the PredictedMetric has no spec.autoscaler.
func TestMaximumOfAScaledObjectIsCompared(t *testing.T) {
	pm, o := checkout(), newScaledObject("checkout-keda", "checkout")
	pm.Spec.Autoscaler, pm.Status.Conditions = nil, nil
	play(t, []client.Object{pm, o}, func(f *fixture) {
		_, known := f.maximum()
		assert.False(f, known, "nothing has been listed")
		f.lead()
		f.pass()
		c, _ := f.maximum()
		require.NotNil(f, c)
		assert.Equal(f, metav1.ConditionFalse, c.Status, "KEDA's default is 100")
		assert.Equal(f, "ScaledObject checkout-keda has maxReplicaCount 100, this PredictedMetric maxReplicas 20: predicted_replicas and the status end at the latter; set both alike",
			c.Message)

		require.NoError(f, f.client.Patch(f.ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxReplicaCount":20}}`))))
		time.Sleep(scaledObjectPeriod)
		f.pass()
		c, _ = f.maximum()
		require.NotNil(f, c)
		assert.Equal(f, metav1.ConditionTrue, c.Status)

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.Schedules = scheduled() })
		f.pass()
		c, _ = f.maximum()
		assert.Equal(f, "ScaledObject checkout-keda has maxReplicaCount 20, this PredictedMetric maxReplicas 100, with its schedules: predicted_replicas and the status end at the latter; set both alike",
			c.Message)

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.MaxReplicas, pm.Spec.Schedules = nil, nil })
		f.pass()
		c, known = f.maximum()
		assert.True(f, known)
		assert.Nil(f, c, "there is nothing to compare")
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.MaxReplicas = new(int32(20)) })

		require.NoError(f, f.client.Delete(f.ctx, o))
		time.Sleep(scaledObjectPeriod)
		f.pass()
		c, known = f.maximum()
		assert.True(f, known)
		assert.Nil(f, c, "there is no ScaledObject")
		assert.Empty(f, f.wrote(), "of HPAs")
	})
}

func (f *fixture) maximum() (*metav1.Condition, bool) { return f.MaxReplicas("uid-1") }
