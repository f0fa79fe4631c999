// Package owned is what packages share that keep an object for each PredictedMetric: an HPA, or a CapacityBuffer. It says whose an object
// is, what it is for, how all are read, and when one is written.
package owned

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

const kind = "PredictedMetric"

// Reference has the garbage collector delete an object with its PredictedMetric. It does not block the deletion of the latter, which
// would take one more right.
func Reference(pm *v1alpha1.PredictedMetric) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: pm.Name, UID: pm.UID, Controller: new(true)}
}

// By returns the UID of the PredictedMetric that an object was created for, "" if another or nobody owns it.
func By(o metav1.Object) types.UID {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != kind || owner.APIVersion != v1alpha1.GroupVersion.String() {
		return ""
	}
	return owner.UID
}

// TakenError is an object of the name of a PredictedMetric that is not its own.
type TakenError struct{ Kind, Name string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("there is a %s %s that Foresail did not create for this PredictedMetric: rename the PredictedMetric, or delete the other", e.Kind, e.Name)
}

// Target identifies what a PredictedMetric is about. Versions of one kind are the same target.
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

// ByTarget returns the PredictedMetrics that are wanted, by their targets, the oldest first.
func ByTarget(metrics map[types.UID]*v1alpha1.PredictedMetric, wanted func(*v1alpha1.PredictedMetric) bool) map[Target][]*v1alpha1.PredictedMetric {
	all := map[Target][]*v1alpha1.PredictedMetric{}
	for _, pm := range metrics {
		if wanted(pm) {
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

// ErrTurn is the error of a PredictedMetric whose turn is at a later check.
var ErrTurn = errors.New("other PredictedMetrics of the namespace come first")

// Turns counts the requests of one check, by namespace.
type Turns map[string]int

// TurnsPerCheck is how many objects of a namespace are read or written in a check: one namespace does not hold up the others.
const TurnsPerCheck = 20

// Take returns whether an object of a namespace may be read or written in this check.
func (t Turns) Take(namespace string) bool {
	t[namespace]++
	return t[namespace] <= TurnsPerCheck
}

// Retries are when rejected writes are repeated, by the UID of the PredictedMetric.
type Retries map[types.UID]Retry

// RetryPeriod is how long a write that was rejected is not repeated, unless the spec changes.
const RetryPeriod = 30 * time.Second

// Retry is when the write for a generation is repeated.
type Retry struct {
	generation int64
	at         time.Time
}

// Hold holds back the next write for a PredictedMetric.
func (r Retries) Hold(pm *v1alpha1.PredictedMetric, now time.Time) {
	r[pm.UID] = Retry{generation: pm.Generation, at: now.Add(RetryPeriod)}
}

// Wait returns whether a write was rejected a short time ago, for the spec as it still is.
func (r Retries) Wait(pm *v1alpha1.PredictedMetric, now time.Time) bool {
	held, ok := r[pm.UID]
	return ok && held.generation == pm.Generation && now.Before(held.at)
}
