package keep

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// view has all objects of a kind at one time.
type view struct {
	objects  map[types.NamespacedName]Found
	byTarget map[Target][]Found
	metrics  map[Target][]*v1alpha1.PredictedMetric // that request an object and are not in dry run, the oldest first
}

func newView(objects map[types.NamespacedName]Found, metrics map[Target][]*v1alpha1.PredictedMetric) *view {
	v := &view{objects: objects, byTarget: map[Target][]Found{}, metrics: metrics}
	for _, f := range objects {
		v.byTarget[f.Target] = append(v.byTarget[f.Target], f)
	}
	return v
}

// ownedBy returns the object of a PredictedMetric, nil if it has none.
func (v *view) ownedBy(pm *v1alpha1.PredictedMetric) *Found {
	if f, ok := v.objects[client.ObjectKeyFromObject(pm)]; ok && f.owner == pm.UID {
		return &f
	}
	return nil
}

// rivalOf returns what else does the same to the target of a PredictedMetric, "" if nothing does. If two
// PredictedMetrics have no object yet, the older one gets it. If one has it, it is the other's rival, however old the
// two are.
func (v *view) rivalOf(pm *v1alpha1.PredictedMetric, has bool, words *Words, another func(Target) string) string {
	t := TargetOfMetric(pm)
	effect := func(rival string) string {
		return fmt.Sprintf("%s %s %s %s too", rival, words.Effect, t.Kind.Kind, t.Name)
	}
	byName := func(a, b Found) int { return cmp.Compare(a.Name, b.Name) }
	for _, f := range slices.SortedFunc(slices.Values(v.byTarget[t]), byName) {
		ofPredecessor := f.owner != "" && f.Name == pm.Name // the garbage collector deletes it
		if f.owner != pm.UID && !ofPredecessor {
			return effect(fmt.Sprintf("%s %s%s", words.Kind, f.Name, f.origin))
		}
	}
	if another != nil {
		if rival := another(t); rival != "" {
			return effect(rival)
		}
	}
	if first := v.metrics[t][0]; !has && first.UID != pm.UID {
		return fmt.Sprintf("PredictedMetric %s, which is older, has %s for %s %s too",
			first.Name, words.Field, t.Kind.Kind, t.Name)
	}
	return ""
}
