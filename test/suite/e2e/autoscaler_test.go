package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	autoscaling "k8s.io/client-go/kubernetes/typed/autoscaling/v2"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/stack"
)

// inDryRun sets spec.dryRun with another bound, and returns once the HPA, which stays as it was, reports it.
func inDryRun(t *testing.T, app stack.App, hpas autoscaling.HorizontalPodAutoscalerInterface) {
	t.Helper()
	before, err := hpas.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace).
		Patch(t.Context(), app.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"dryRun":true,"maxReplicas":%d}}`, app.Max+1), metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, time.Minute, "the HPA reads that it is a dry run", func(c *assert.CollectT) {
		status := statusOf(c, app)
		assert.Equal(c, "DryRun", conditionOf(status, v1alpha1.ConditionAutoscalerReady).Reason)
		ready := conditionOf(status, v1alpha1.ConditionReady)
		assert.Equal(c, "True DryRun", string(ready.Status)+" "+ready.Reason, ready.Message)
		assert.Nil(c, status.Served)
		assert.Contains(c, strings.Join(hpaConditions(c, app), "\n"),
			"ScalingActive False: the HPA was unable to compute the replica count: unable to get external metric")
		assert.Contains(c, strings.Join(hpaConditions(c, app), "\n"), "spec.dryRun is true")
	})
	after, err := hpas.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.Spec, after.Spec)
}

// TestAutoscalerOfThePredictedMetric has the HPA of spec.autoscaler scale a Deployment, with the
// rights that the manifests grant, once the one that was written by hand has gone. In dry run it
// reads an error.
func TestAutoscalerOfThePredictedMetric(t *testing.T) {
	t.Parallel()
	const load, needed = 3.5, 5
	app := newApp("autoscaler", "app", "predicted_load_total")
	place(t, app)
	hpas := shared.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(app.Namespace)
	byHand, err := hpas.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	set := func(autoscaler string) {
		_, err := shared.Cluster.Dynamic().Resource(predictedMetrics).Namespace(app.Namespace).
			Patch(t.Context(), app.Name, types.MergePatchType, []byte(`{"spec":{"autoscaler":`+autoscaler+`}}`),
				metav1.PatchOptions{})
		require.NoError(t, err)
	}
	reads := func(reason, name string) {
		eventually(t, time.Minute, reason, func(c *assert.CollectT) {
			status := statusOf(c, app)
			ready := conditionOf(status, v1alpha1.ConditionAutoscalerReady)
			assert.Equal(c, reason, ready.Reason, ready.Message)
			assert.Equal(c, name, status.Autoscaler)
		})
	}
	set("{}")
	reads("TargetHasAnotherAutoscaler", "")
	untouched, err := hpas.Get(t.Context(), app.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, byHand.Spec, untouched.Spec)
	require.NoError(t, hpas.Delete(t.Context(), app.Name, metav1.DeleteOptions{}))
	reads("AsRecommended", app.Name)

	shared.Shares.Set(app.Namespace, app.Name, func() float64 { return load })
	defer shared.Shares.Set(app.Namespace, app.Name, nil)
	replicas := func(c require.TestingT) int {
		deployment, err := shared.Cluster.Client().AppsV1().Deployments(app.Namespace).Get(suite, app.Name,
			metav1.GetOptions{})
		require.NoError(c, err)
		return int(*deployment.Spec.Replicas)
	}
	eventually(t, 2*time.Minute, "the load has its pods", func(c *assert.CollectT) {
		assert.GreaterOrEqual(c, replicas(c), needed, "%v", hpaConditions(c, app))
	})

	_, err = hpas.Patch(t.Context(), app.Name, types.MergePatchType, []byte(`{"spec":{"maxReplicas":5}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, time.Minute, "the change is undone", func(c *assert.CollectT) {
		hpa, err := hpas.Get(suite, app.Name, metav1.GetOptions{})
		require.NoError(c, err)
		assert.EqualValues(c, app.Max, hpa.Spec.MaxReplicas)
	})

	inDryRun(t, app, hpas)
	set("null")
	reads("", "")
	_, err = hpas.Get(t.Context(), app.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}
