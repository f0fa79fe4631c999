package keep

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Metrics returns all PredictedMetrics, which must not be changed.
type Metrics func() ([]*v1alpha1.PredictedMetric, error)

// errNotListed is the error of Metrics before all are known.
var errNotListed = errors.New("the PredictedMetrics have not been listed yet")

// Cached returns the PredictedMetrics of an informer, in order of their keys, and whether all are known yet. A list of
// its cache would copy each of them: of thousands some ten megabytes, every two seconds for each caller.
func Cached(informer cache.Informer) (metrics Metrics, synced func() bool, err error) {
	k := &present{objects: map[types.NamespacedName]*v1alpha1.PredictedMetric{}}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: k.set, UpdateFunc: func(_, after any) { k.set(after) }, DeleteFunc: k.remove,
	})
	if err != nil {
		return nil, nil, err
	}
	return func() ([]*v1alpha1.PredictedMetric, error) {
		if !registration.HasSynced() {
			return nil, errNotListed
		}
		return k.all(), nil
	}, registration.HasSynced, nil
}

// present has the PredictedMetrics that an informer has delivered.
type present struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*v1alpha1.PredictedMetric
	keys    []types.NamespacedName // of these, in order; nil: not put in order yet
}

func (k *present) set(o any) {
	pm, ok := o.(*v1alpha1.PredictedMetric)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := client.ObjectKeyFromObject(pm)
	if k.objects[key] == nil {
		k.keys = nil
	}
	k.objects[key] = pm
}

func (k *present) remove(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pm, ok := o.(*v1alpha1.PredictedMetric)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.objects, client.ObjectKeyFromObject(pm))
	k.keys = nil
}

func (k *present) all() []*v1alpha1.PredictedMetric {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		for key := range k.objects {
			k.keys = append(k.keys, key)
		}
		slices.SortFunc(k.keys, func(a, b types.NamespacedName) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	out := make([]*v1alpha1.PredictedMetric, len(k.keys))
	for i, key := range k.keys {
		out[i] = k.objects[key]
	}
	return out
}
