package predictedmetric

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/foresail/foresail/api/v1alpha1"
)

// withTargets returns a cluster whose client knows objects of the kinds that are always watched.
func withTargets(t *testing.T, objects ...client.Object) *cluster {
	c := newCluster(t)
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	c.scale = nil // reads of scales fail
	return c
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: labels, Generation: 3},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// A start with thousands of PredictedMetrics of one namespace reads no scale of a watched kind, and so waits for none.
func TestTargetsThatAreWatchedCostNoReads(t *testing.T) {
	const many = 5000
	var objects []client.Object
	for i := range many {
		pm := predictedMetric()
		pm.Name = fmt.Sprint("pm-", i)
		pm.Spec.ScaleTargetRef.Name = pm.Name
		objects = append(objects, pm, deployment(pm.Name, 4))
	}
	c := withTargets(t, objects...)
	for i := range many {
		of := types.NamespacedName{Namespace: key.Namespace, Name: fmt.Sprint("pm-", i)}
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: of})
		require.NoError(t, err)
		assertResync(t, result.RequeueAfter)
		require.NoError(t, c.problems.get(of).err)
	}
	assert.Equal(t, many, c.setCount(), "all are read")
}

func TestWatchedTargetHasWhatItsScaleHas(t *testing.T) {
	d := deployment("checkout", 4)
	d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "canary",
		Operator: metav1.LabelSelectorOpDoesNotExist}}
	s := &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta,
		Spec: appsv1.StatefulSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector}}
	c := withTargets(t, d, s)
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		found, ok := c.watchedTarget(t.Context(), key.Namespace,
			v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: kind, Name: "checkout"})
		require.True(t, ok, kind)
		assert.Equal(t, int32(4), found.replicas)
		assert.Equal(t, "app=checkout,!canary", found.selector.String())
	}
	for _, ref := range []v1alpha1.ScaleTargetRef{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "another"},
		{APIVersion: "example.com/v1", Kind: "Game", Name: "checkout"},
	} {
		_, ok := c.watchedTarget(t.Context(), key.Namespace, ref)
		assert.False(t, ok, ref)
	}
}

// The cache keeps of targets what their scales have, and what shows changes.
func TestCacheKeepsTheScaleOfTargets(t *testing.T) {
	for object, of := range WatchedTargets() {
		require.NotNil(t, of.Transform, object)
	}
	kept, err := stripTarget(deployment("checkout", 4))
	require.NoError(t, err)
	object, err := meta.Accessor(kept)
	require.NoError(t, err)
	assert.Equal(t, "checkout", object.GetName())
	assert.Equal(t, int64(3), object.GetGeneration())
	assert.Empty(t, kept.(*appsv1.Deployment).Spec.Template.Labels)
	replicas, selector := scaleOf(kept)
	assert.Equal(t, int32(4), *replicas)
	assert.Equal(t, map[string]string{"app": "checkout"}, selector.MatchLabels)
}
