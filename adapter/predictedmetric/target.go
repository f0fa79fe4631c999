package predictedmetric

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Scales reads scale subresources, of any kind that has one.
type Scales struct {
	Client scale.ScalesGetter
	Mapper meta.RESTMapper
}

// target is the content of the scale subresource of a scale target.
type target struct {
	replicas int32 // spec.replicas
	selector labels.Selector
	mapping  *meta.RESTMapping // of its kind
}

// scaleTimeout is how long a read of a scale may take: an API server that does not answer leaves the
// replicas unknown.
const scaleTimeout = 10 * time.Second

// get reads the scale subresource that ref names. Errors name the field of ref that is wrong.
func (s *Scales) get(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef) (target, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return target{}, fmt.Errorf("spec.scaleTargetRef.apiVersion: %q: must be GROUP/VERSION, such as apps/v1",
			ref.APIVersion)
	}
	mapping, err := s.Mapper.RESTMapping(gv.WithKind(ref.Kind).GroupKind(), gv.Version)
	if err != nil {
		return target{}, fmt.Errorf("spec.scaleTargetRef: the cluster has no kind %s in %s: %w",
			ref.Kind, ref.APIVersion, err)
	}
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	found, err := s.Client.Scales(namespace).Get(ctx, mapping.Resource.GroupResource(), ref.Name, metav1.GetOptions{})
	if err != nil {
		return target{}, fmt.Errorf("spec.scaleTargetRef: the scale of %s %s/%s cannot be read: %w",
			ref.Kind, namespace, ref.Name, err)
	}
	t, err := parseScale(found, ref)
	t.mapping = mapping
	return t, err
}

// watchedTarget returns a target of a kind that is always watched, from the cache of the watch:
// thousands at a start cost no requests. It is not found while the cache lacks it, while changes
// are not seen, or where the scale has the better error.
func (r *Reconciler) watchedTarget(ctx context.Context, namespace string,
	ref v1alpha1.ScaleTargetRef) (t target, found bool) {
	kind := watchedKinds[kindOf(ref)]
	if kind == nil || !r.Watches.Lost(kindOf(ref)).IsZero() {
		return target{}, false
	}
	o := kind.DeepCopyObject().(client.Object)
	if r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, o) != nil {
		return target{}, false
	}
	replicas, of := scaleOf(o)
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil || selector.Empty() || replicas == nil {
		return target{}, false
	}
	return target{replicas: *replicas, selector: selector}, true
}

// scaleOf returns what the scale of an object of a watched kind has.
func scaleOf(o any) (replicas *int32, selector *metav1.LabelSelector) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Replicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Replicas, o.Spec.Selector
	}
	return nil, nil
}

// WatchedTargets returns what a cache keeps of targets of the kinds that are always watched: their scales.
func WatchedTargets() map[client.Object]cache.ByObject {
	out := map[client.Object]cache.ByObject{}
	for _, object := range watchedKinds {
		out[object] = cache.ByObject{Transform: stripTarget}
	}
	return out
}

func stripTarget(o any) (any, error) {
	replicas, selector := scaleOf(o)
	switch o := o.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: stripMeta(o),
			Spec: appsv1.DeploymentSpec{Replicas: replicas, Selector: selector}}, nil
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: stripMeta(o),
			Spec: appsv1.StatefulSetSpec{Replicas: replicas, Selector: selector}}, nil
	}
	return o, nil
}

func stripMeta(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		Generation: o.GetGeneration(), ResourceVersion: o.GetResourceVersion(),
	}
}

func parseScale(found *autoscalingv1.Scale, ref v1alpha1.ScaleTargetRef) (target, error) {
	if found.Status.Selector == "" {
		return target{}, fmt.Errorf("the scale of %s %s has no selector in its status: its pods cannot be found",
			ref.Kind,
			ref.Name)
	}
	selector, err := labels.Parse(found.Status.Selector)
	if err != nil {
		return target{}, fmt.Errorf("the scale of %s %s has the selector %q in its status: %w", ref.Kind,
			ref.Name, found.Status.Selector, err)
	}
	return target{replicas: found.Spec.Replicas, selector: selector}, nil
}
