package predictedmetric

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// usesPeriod is how often the predicted uses of pods are updated from forecasts.
const usesPeriod = 2 * time.Second

// PodUses returns what one pod of a target is predicted to use, from the PredictedMetrics with the source resource that
// read whole pods and are not in dry run. It is at most a few seconds behind the forecasts.
type PodUses struct {
	measured  *allMeasured
	forecast  func(types.NamespacedName) (snapshot.Snapshot, bool)
	now       func() time.Time
	horizon   time.Duration
	published atomic.Pointer[map[string]*usesOfNamespace]
}

// NewPodUses returns the predicted uses of the PredictedMetrics of a Reconciler, no further ahead
// than a horizon: that of the nodes that the pods are for, whatever the PredictedMetrics say. They
// are empty until Run.
func NewPodUses(r *Reconciler, horizon time.Duration, now func() time.Time) *PodUses {
	u := &PodUses{measured: &r.measured, forecast: r.Forecaster.Get, now: now, horizon: horizon}
	u.published.Store(&map[string]*usesOfNamespace{})
	return u
}

// Run updates the predicted uses until the context ends.
func (u *PodUses) Run(ctx context.Context) error {
	ticks := time.NewTicker(usesPeriod)
	defer ticks.Stop()
	for {
		u.publish()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// PodUse returns the cores and bytes that one pod with these labels is predicted to use at the
// horizon, each 0 without a forecast. If several PredictedMetrics select the pod, the largest
// counts. It does not block.
func (u *PodUses) PodUse(namespace string, pod labels.Set) (cores, bytes float64) {
	uses := (*u.published.Load())[namespace]
	if uses == nil {
		return 0, 0
	}
	for name, value := range pod {
		cores, bytes = largest(uses.byLabel[requiredLabel{name, value}], pod, cores, bytes)
	}
	return largest(uses.others, pod, cores, bytes)
}

// largest returns the largest of cores and bytes and of the uses that select the pod.
func largest(uses []podUse, pod labels.Set, cores, bytes float64) (maxCores, maxBytes float64) {
	for i := range uses {
		switch use := &uses[i]; {
		case !use.selector.Matches(pod):
		case use.resource == v1alpha1.ResourceCPU:
			cores = max(cores, use.predicted)
		default:
			bytes = max(bytes, use.predicted)
		}
	}
	return cores, bytes
}

// podUse is the predicted use of each pod that one PredictedMetric selects.
type podUse struct {
	measured
	predicted float64 // cores or bytes
}

// usesOfNamespace indexes the uses by the labels of pods.
type usesOfNamespace struct {
	byLabel map[requiredLabel][]podUse
	others  []podUse // whose selectors require no label to have one value
}

type requiredLabel struct{ name, value string }

func (u *PodUses) publish() {
	now, found := u.now(), map[string]*usesOfNamespace{}
	u.measured.each(func(key types.NamespacedName, m measured) {
		s, ok := u.forecast(key)
		if !ok || s.DryRun || !s.Usable(now) {
			return
		}
		if found[key.Namespace] == nil {
			found[key.Namespace] = &usesOfNamespace{byLabel: map[requiredLabel][]podUse{}}
		}
		found[key.Namespace].add(podUse{m, u.predicted(&s.Forecast)})
	})
	u.published.Store(&found)
}

// predicted returns the load of a pod at the horizon, on the line from now to where the forecast ends.
func (u *PodUses) predicted(f *pipeline.Forecast) float64 {
	if f.Horizon <= u.horizon {
		return f.LoadPredicted
	}
	return f.LoadNow + (f.LoadPredicted-f.LoadNow)*u.horizon.Seconds()/f.Horizon.Seconds()
}

func (u *usesOfNamespace) add(use podUse) {
	requirements, _ := use.selector.Requirements()
	for _, r := range requirements {
		exact := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals ||
			r.Operator() == selection.In
		if values := r.Values(); exact && len(values) == 1 {
			l := requiredLabel{r.Key(), values.UnsortedList()[0]}
			u.byLabel[l] = append(u.byLabel[l], use)
			return
		}
	}
	u.others = append(u.others, use)
}

// measured is which resource of which pods a PredictedMetric reads.
type measured struct {
	resource v1alpha1.ResourceName
	selector labels.Selector
}

// allMeasured holds the PredictedMetrics whose samples are of whole pods.
type allMeasured struct{ m sync.Map }

// set takes a spec with its defaults, and the selector of its target. A forecast of one container
// is not one of the pod.
func (a *allMeasured) set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec, selector labels.Selector) {
	if r := spec.Source.Resource; r != nil && r.Container == "" {
		a.m.Store(key, measured{r.Name, selector})
		return
	}
	a.forget(key)
}

func (a *allMeasured) forget(key types.NamespacedName) { a.m.Delete(key) }

func (a *allMeasured) each(f func(types.NamespacedName, measured)) {
	a.m.Range(func(k, v any) bool {
		key, isKey := k.(types.NamespacedName)
		m, isMeasured := v.(measured)
		if isKey && isMeasured {
			f(key, m)
		}
		return true
	})
}
