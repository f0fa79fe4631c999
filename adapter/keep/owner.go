package keep

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

const ownerKind = "PredictedMetric"

// Reference returns the owner reference with which the garbage collector deletes an object with its PredictedMetric. It
// does not block the deletion of the PredictedMetric, which would take one more right.
func Reference(pm *v1alpha1.PredictedMetric) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: ownerKind, Name: pm.Name, UID: pm.UID, Controller: new(true),
	}
}

// OwnerOf returns the UID of the PredictedMetric that an object was created for, "" if there is none.
func OwnerOf(o metav1.Object) types.UID {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != ownerKind || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return ""
	}
	return owner.UID
}

// ofPredecessor reports whether an object was created for a PredictedMetric of the same name that has been deleted.
func ofPredecessor(pm *v1alpha1.PredictedMetric, o metav1.Object) bool {
	owner := OwnerOf(o)
	return owner != "" && owner != pm.UID && metav1.GetControllerOfNoCopy(o).Name == pm.Name
}

// takenError reports an object with the name of a PredictedMetric that was not created for it.
type takenError struct{ kind, name string }

func (e *takenError) Error() string {
	return fmt.Sprintf("there is a %s %s that Foresail did not create for this PredictedMetric: "+
		"rename the PredictedMetric, or delete the other", e.kind, e.name)
}

// Target identifies the target of a PredictedMetric or of an object. Versions of one kind are the same target.
type Target struct {
	Namespace string
	Kind      schema.GroupKind
	Name      string
}

// TargetOf returns the target that a reference names.
func TargetOf(namespace, apiVersion, kind, name string) Target {
	return Target{namespace, schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), name}
}

// TargetOfMetric returns the target of a PredictedMetric.
func TargetOfMetric(pm *v1alpha1.PredictedMetric) Target {
	ref := pm.Spec.ScaleTargetRef
	return TargetOf(pm.Namespace, ref.APIVersion, ref.Kind, ref.Name)
}

// byTarget returns the PredictedMetrics that are selected, by their targets, the oldest first.
func byTarget(
	metrics map[types.UID]*v1alpha1.PredictedMetric, selected func(*v1alpha1.PredictedMetric) bool,
) map[Target][]*v1alpha1.PredictedMetric {
	all := map[Target][]*v1alpha1.PredictedMetric{}
	for _, pm := range metrics {
		if selected(pm) {
			t := TargetOfMetric(pm)
			all[t] = append(all[t], pm)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *v1alpha1.PredictedMetric) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return all
}
