package predictedmetric

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/foresail/foresail/api/v1alpha1"
)

// watchedKinds are the kinds of targets that are always watched. Their generation changes with their replicas and selector.
var watchedKinds = map[schema.GroupKind]client.Object{
	{Group: appsv1.GroupName, Kind: "Deployment"}:  &appsv1.Deployment{},
	{Group: appsv1.GroupName, Kind: "StatefulSet"}: &appsv1.StatefulSet{},
}

func kindOf(ref v1alpha1.ScaleTargetRef) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// kinds watches the other kinds that PredictedMetrics name, where Foresail may list and watch them.
type kinds struct {
	allowed func(context.Context, schema.GroupVersionResource) (bool, error)
	watch   func(schema.GroupVersionKind) error

	mu    sync.Mutex
	state map[schema.GroupKind]kindState
}

// kindState is what is known of a kind: that it is watched, or when to see whether it may be.
type kindState struct {
	watched bool
	retry   time.Time
}

// follow returns whether targets of a kind are watched. It begins to watch them where that is allowed.
func (k *kinds) follow(ctx context.Context, mapping *meta.RESTMapping, now time.Time) bool {
	kind := mapping.GroupVersionKind.GroupKind()
	if watchedKinds[kind] != nil {
		return true
	}
	known, due := k.due(kind, now)
	if !due {
		return known
	}
	allowed, err := k.allowed(ctx, mapping.Resource)
	if err == nil && allowed {
		err = k.watch(mapping.GroupVersionKind)
	}
	log := ctrl.LoggerFrom(ctx).WithValues("kind", kind)
	switch {
	case err != nil:
		log.Error(err, "Cannot watch the targets of a kind, and reads each of them regularly instead")
	case allowed:
		log.Info("Watches the targets of a kind")
		k.set(kind, kindState{watched: true})
	default:
		log.Info("May not list and watch the targets of a kind, and reads each of them regularly instead")
	}
	return err == nil && allowed
}

// due returns whether a kind is watched, or that now is the time to see whether it may be: to one caller at a time.
func (k *kinds) due(kind schema.GroupKind, now time.Time) (watched, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.state[kind]
	if known.watched || now.Before(known.retry) {
		return known.watched, false
	}
	k.state[kind] = kindState{retry: now.Add(resync)}
	return false, true
}

func (k *kinds) set(kind schema.GroupKind, s kindState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state[kind] = s
}

func newKinds(r *Reconciler, mgr manager.Manager, c controller.Controller) *kinds {
	return &kinds{
		state: map[schema.GroupKind]kindState{},
		allowed: func(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
			return mayWatch(ctx, r.Client, resource, r.Namespaces)
		},
		watch: func(kind schema.GroupVersionKind) error {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(kind)
			// The selector of a scale may be in its status, which has no generation.
			return c.Watch(source.Kind[client.Object](mgr.GetCache(), object, handler.EnqueueRequestsFromMapFunc(r.metricsOf(kind.GroupKind())),
				predicate.ResourceVersionChangedPredicate{}))
		},
	}
}

// mayWatch asks the API server whether Foresail may list and watch a resource in all namespaces, or in those given.
func mayWatch(ctx context.Context, c client.Client, resource schema.GroupVersionResource, namespaces []string) (bool, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		for _, verb := range []string{"list", "watch"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
				},
			}}
			if err := c.Create(ctx, review); err != nil || !review.Status.Allowed {
				return false, err
			}
		}
	}
	return true, nil
}
