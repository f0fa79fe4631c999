package hpa

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// scaledObjectPeriod is the time between two lists of ScaledObjects. KEDA creates an HPA for each, which the watch
	// of HPAs reports at once: the list adds paused and new ScaledObjects, and their bounds.
	scaledObjectPeriod = time.Minute
	// scaledObjectPage is how many are listed by one request.
	scaledObjectPage = 500
	// defaultMaxReplicaCount is KEDA's, for a ScaledObject without one.
	defaultMaxReplicaCount = 100
)

// Reasons of the condition MaxReplicasMatch.
const (
	reasonSameMaximum  = "SameMaximum"
	reasonOtherMaximum = "ScaledObjectDiffers"
)

var scaledObjectKind = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}

// scaledObject has the fields of a ScaledObject that are compared.
type scaledObject struct {
	name        string
	maxReplicas int64
}

// scaledObjects knows the ScaledObjects of KEDA, read from time to time, and compares their bounds with
// PredictedMetrics.
type scaledObjects struct {
	client     client.Reader
	namespaces []string
	now        func() time.Time

	byTarget map[keep.Target]scaledObject // nil: not listed yet
	listed   time.Time

	mu     sync.Mutex
	maxima map[types.UID]*metav1.Condition // nil: not known yet
}

func newScaledObjects(o keep.Options) *scaledObjects {
	return &scaledObjects{client: o.Client, namespaces: o.Scopes(), now: o.Now}
}

// forget drops what was known during an earlier lease.
func (s *scaledObjects) forget() {
	s.byTarget, s.listed = nil, time.Time{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxima = nil
}

// of names the ScaledObject of a target, "" if there is none.
func (s *scaledObjects) of(t keep.Target) string {
	if o, ok := s.byTarget[t]; ok {
		return "ScaledObject " + o.name
	}
	return ""
}

// list reads the ScaledObjects, if it is time to. A cluster without KEDA, or where they may not be listed, has none.
// What else goes wrong must not hold up HPAs: KEDA's own are watched anyway.
func (s *scaledObjects) list(ctx context.Context) {
	if !s.listed.IsZero() && s.now().Sub(s.listed) < scaledObjectPeriod {
		return
	}
	s.listed = s.now()
	found := map[keep.Target]scaledObject{}
	for _, namespace := range s.namespaces {
		if err := s.listNamespace(ctx, namespace, found); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list ScaledObjects; assuming the previous ones")
			return
		}
	}
	s.byTarget = found
}

func (s *scaledObjects) listNamespace(ctx context.Context, namespace string, found map[keep.Target]scaledObject) error {
	var page unstructured.UnstructuredList
	page.SetGroupVersionKind(scaledObjectKind)
	for {
		err := s.client.List(ctx, &page, client.InNamespace(namespace), client.Limit(scaledObjectPage),
			client.Continue(page.GetContinue()))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			o := &page.Items[i]
			found[targetOfScaledObject(o)] = scaledObjectOf(o)
		}
		if page.GetContinue() == "" {
			return nil
		}
	}
}

func scaledObjectOf(o *unstructured.Unstructured) scaledObject {
	maximum, set, err := unstructured.NestedInt64(o.Object, "spec", "maxReplicaCount")
	if !set || err != nil { // absent, or no number
		maximum = defaultMaxReplicaCount
	}
	return scaledObject{o.GetName(), maximum}
}

// targetOfScaledObject returns the target of a ScaledObject with KEDA's defaults, which also hold
// for a field that is no string.
func targetOfScaledObject(o *unstructured.Unstructured) keep.Target {
	field := func(name, otherwise string) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", name)
		return cmp.Or(value, otherwise)
	}
	return keep.TargetOf(o.GetNamespace(), field("apiVersion", "apps/v1"), field("kind", "Deployment"),
		field("name", ""))
}

// maxReplicas returns the condition MaxReplicasMatch of a PredictedMetric, nil if it has none; false while
// ScaledObjects are not known.
func (s *scaledObjects) maxReplicas(uid types.UID) (*metav1.Condition, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxima[uid], s.maxima != nil
}

// compareMaxima compares maxReplicas of PredictedMetrics with the ScaledObjects of their targets.
func (s *scaledObjects) compareMaxima(metrics []*v1alpha1.PredictedMetric) {
	if s.byTarget == nil {
		return
	}
	maxima := map[types.UID]*metav1.Condition{}
	for _, pm := range metrics {
		if o, ok := s.byTarget[keep.TargetOfMetric(pm)]; ok && pm.Spec.MaxReplicas != nil {
			_, most := pm.Spec.WidestBounds()
			maxima[pm.UID] = o.compare(int64(*most), len(pm.Spec.Schedules) > 0)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxima = maxima
}

// compare takes the largest maxReplicas of the spec and its schedules, if there are any.
func (o scaledObject) compare(maxReplicas int64, scheduled bool) *metav1.Condition {
	same := &metav1.Condition{
		Type: v1alpha1.ConditionMaxReplicasMatch, Status: metav1.ConditionTrue, Reason: reasonSameMaximum,
		Message: fmt.Sprintf("ScaledObject %s has the same maximum", o.name),
	}
	if o.maxReplicas == maxReplicas {
		return same
	}
	same.Status, same.Reason = metav1.ConditionFalse, reasonOtherMaximum
	of := ""
	if scheduled {
		of = ", with its schedules"
	}
	same.Message = fmt.Sprintf("ScaledObject %s has maxReplicaCount %d, this PredictedMetric maxReplicas %d%s: predicted_replicas and the status end at the latter; set both alike",
		o.name, o.maxReplicas, maxReplicas, of)
	return same
}
