package keep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

func metric(name, target string, uid types.UID, created int64) *v1alpha1.PredictedMetric {
	return &v1alpha1.PredictedMetric{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid,
			CreationTimestamp: metav1.Unix(created, 0), Generation: 1},
		Spec: v1alpha1.PredictedMetricSpec{ScaleTargetRef: v1alpha1.ScaleTargetRef{APIVersion: "apps/v1",
			Kind: "Deployment", Name: target}},
	}
}

func TestOwnerIsAPredictedMetric(t *testing.T) {
	pm := metric("checkout", "checkout", "uid-1", 0)
	o := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{Reference(pm)}}
	assert.Equal(t, pm.UID, OwnerOf(o))
	for _, change := range []func(*metav1.OwnerReference){
		func(r *metav1.OwnerReference) { r.Controller = nil },
		func(r *metav1.OwnerReference) { r.Kind = "WorkerPool" },
		func(r *metav1.OwnerReference) { r.APIVersion = "example.com/v1alpha1" },
	} {
		reference := Reference(pm)
		change(&reference)
		assert.Empty(t, OwnerOf(&metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{reference}}))
	}
}

func TestByTarget(t *testing.T) {
	young, old, twin := metric("a", "checkout", "1", 20), metric("b", "checkout", "2", 10),
		metric("c", "checkout", "3", 20)
	other, unwanted := metric("d", "cart", "4", 0), metric("e", "cart", "5", 0)
	all := map[types.UID]*v1alpha1.PredictedMetric{}
	for _, pm := range []*v1alpha1.PredictedMetric{young, old, twin, other, unwanted} {
		all[pm.UID] = pm
	}
	got := byTarget(all, func(pm *v1alpha1.PredictedMetric) bool { return pm != unwanted })
	assert.Equal(t, map[Target][]*v1alpha1.PredictedMetric{
		TargetOf("shop", "apps/v1beta1", "Deployment", "checkout"): {old, young, twin},
		TargetOf("shop", "apps/v1", "Deployment", "cart"):          {other},
	}, got)
}
