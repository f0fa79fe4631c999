package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/objectcache"
)

// row is what is kept of an HPA.
type row struct {
	name   string
	target owned.Target
	owner  types.UID                                  // the PredictedMetric that it was created for
	origin string                                     // whose it is, for messages
	spec   *autoscalingv2.HorizontalPodAutoscalerSpec // nil without owner
}

func rowOf(h *autoscalingv2.HorizontalPodAutoscaler) (row, bool) {
	ref := h.Spec.ScaleTargetRef
	r := row{name: h.Name, target: owned.TargetOf(h.Namespace, ref.APIVersion, ref.Kind, ref.Name)}
	if owner := metav1.GetControllerOfNoCopy(h); owner != nil {
		r.origin = fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
	}
	if r.owner = owned.By(h); r.owner != "" {
		r.spec = h.Spec.DeepCopy()
	}
	return r, true
}

type table = objectcache.Table[types.NamespacedName, *autoscalingv2.HorizontalPodAutoscaler, row]

// rivals knows all that scales: HPAs by a watch that begins when somebody asks for an HPA, and ScaledObjects.
type rivals struct {
	client     client.WithWatch
	namespaces []string
	now        func() time.Time

	running sync.WaitGroup
	mu      sync.Mutex // of the tables
	tables  []*table   // one for each namespace

	scaledObjects map[owned.Target]scaledObject // nil: not listed yet
	listed        time.Time
}

func newRivals(c client.WithWatch, namespaces []string, now func() time.Time) *rivals {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &rivals{client: c, namespaces: namespaces, now: now}
}

// wait returns once all watches have ended, with the context that they began with.
func (r *rivals) wait() { r.running.Wait() }

// watch begins to watch HPAs.
func (r *rivals) watch(ctx context.Context) {
	for _, namespace := range r.namespaces {
		t := objectcache.New(objectcache.Options[types.NamespacedName, *autoscalingv2.HorizontalPodAutoscaler, row]{
			What: "horizontalpodautoscalers", Lock: &r.mu, Now: r.now, Keep: rowOf,
			Key: objectcache.NameOf[*autoscalingv2.HorizontalPodAutoscaler],
		})
		r.tables = append(r.tables, t)
		hpas := owned.Lists[*autoscalingv2.HorizontalPodAutoscalerList]{
			Client: r.client, Namespace: namespace,
			Empty: func() *autoscalingv2.HorizontalPodAutoscalerList { return &autoscalingv2.HorizontalPodAutoscalerList{} },
		}
		r.running.Go(func() { objectcache.Reflect(ctx, hpas, t, &autoscalingv2.HorizontalPodAutoscaler{}, hpas) })
	}
}

// observed is all that scales at one time.
type observed struct {
	hpas          map[types.NamespacedName]row
	byTarget      map[owned.Target][]row
	scaledObjects map[owned.Target]scaledObject
	metrics       map[owned.Target][]*v1alpha1.PredictedMetric // with spec.autoscaler and not in dry run, the oldest first
}

// observe returns nil if it had to begin. It fails while HPAs are out of reach. A list that is forbidden is an error of that kind.
func (r *rivals) observe(ctx context.Context, metrics map[types.UID]*v1alpha1.PredictedMetric) (*observed, error) {
	if r.tables == nil {
		r.watch(ctx)
		return nil, nil
	}
	o := &observed{hpas: map[types.NamespacedName]row{}, byTarget: map[owned.Target][]row{}}
	if err := r.copyTo(o); err != nil {
		return nil, err
	}
	o.scaledObjects = r.scaledObjects
	o.metrics = owned.ByTarget(metrics, func(pm *v1alpha1.PredictedMetric) bool { return pm.Spec.Autoscaler != nil && !pm.Spec.DryRun })
	return o, nil
}

func (r *rivals) copyTo(o *observed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if err := t.State(r.now()); err != nil {
			return err
		}
		maps.Copy(o.hpas, t.Rows())
	}
	for _, h := range o.hpas {
		o.byTarget[h.target] = append(o.byTarget[h.target], h)
	}
	return nil
}

// rivalOf returns what else scales the target of a PredictedMetric, "" if nothing does. Of two PredictedMetrics that have no HPA
// yet the older one is to have one. The HPA of one that has it is the other's rival, however old the two are.
func (o *observed) rivalOf(pm *v1alpha1.PredictedMetric, hasHPA bool) string {
	t := owned.TargetOfMetric(pm)
	names := slices.SortedFunc(slices.Values(o.byTarget[t]), func(a, b row) int { return cmp.Compare(a.name, b.name) })
	for _, h := range names {
		if h.owner != pm.UID {
			return fmt.Sprintf("HorizontalPodAutoscaler %s%s scales %s %s too", h.name, h.origin, t.Kind.Kind, t.Name)
		}
	}
	if found, ok := o.scaledObjects[t]; ok {
		return fmt.Sprintf("ScaledObject %s scales %s %s too", found.name, t.Kind.Kind, t.Name)
	}
	if first := o.metrics[t][0]; !hasHPA && first.UID != pm.UID {
		return fmt.Sprintf("PredictedMetric %s, which is older, has spec.autoscaler for %s %s too", first.Name, t.Kind.Kind, t.Name)
	}
	return ""
}
