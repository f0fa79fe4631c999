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

// watchedKinds are the kinds of targets that are always watched. Their generation changes with
// their replicas and selector.
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
	unwatch func(context.Context, schema.GroupVersionKind) error
	served  func(schema.GroupVersionKind) bool // whether the API server serves a version

	mu    sync.Mutex
	state map[schema.GroupKind]kindState
}

// kindState is the known state of a kind.
type kindState struct {
	version string    // the one that is watched, empty if none is
	review  time.Time // when to see again whether it may be, zero: never seen
}

// follow returns whether targets of a kind are watched. It begins to watch them where that is
// allowed, and ends where it no longer is. PredictedMetrics may name several versions of a kind, of
// which one is watched as long as it is served.
func (k *kinds) follow(ctx context.Context, mapping *meta.RESTMapping, now time.Time) bool {
	kind := mapping.GroupVersionKind
	if watchedKinds[kind.GroupKind()] != nil {
		return true
	}
	before, due := k.due(kind.GroupKind(), now)
	if !due {
		return before.version != ""
	}
	log := ctrl.LoggerFrom(ctx).WithValues("kind", kind)
	allowed, err := k.allowed(ctx, mapping.Resource)
	if err != nil {
		log.Error(err, "Cannot see whether the targets of a kind may be watched")
		return before.version != ""
	}
	version := ""
	switch {
	case !allowed:
	case before.version != "" && k.served(kind.GroupKind().WithVersion(before.version)):
		version = before.version
	default:
		version = kind.Version
	}
	if version != before.version {
		version, err = k.change(ctx, kind, before.version, version)
	}
	switch {
	case err != nil:
		log.Error(err, "Cannot watch the targets of a kind, and reads each of them regularly instead")
	case version == "" && (before.version != "" || before.review.IsZero()):
		log.Info("May not list and watch the targets of a kind, and reads each of them regularly instead")
	case version != before.version:
		log.Info("Watches the targets of a kind")
	}
	return version != ""
}

// due returns what is known of a kind, and whether now is the time to see whether it may be
// watched: to one caller at a time.
func (k *kinds) due(kind schema.GroupKind, now time.Time) (known kindState, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known = k.state[kind]
	if now.Before(known.review) {
		return known, false
	}
	k.state[kind] = kindState{version: known.version, review: now.Add(resync)}
	return known, true
}

// change watches another version of a kind, or none, and returns which it is then.
func (k *kinds) change(ctx context.Context, kind schema.GroupVersionKind, from, to string) (now string, err error) {
	if from != "" {
		if err := k.unwatch(ctx, kind.GroupKind().WithVersion(from)); err != nil {
			return from, err
		}
	}
	if to != "" {
		if err = k.watch(kind); err != nil {
			to = ""
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state[kind.GroupKind()] = kindState{version: to, review: k.state[kind.GroupKind()].review}
	return to, err
}

func newKinds(r *Reconciler, mgr manager.Manager, c controller.Controller) *kinds {
	return &kinds{
		state: map[schema.GroupKind]kindState{},
		allowed: func(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
			return mayWatch(ctx, r.Client, resource, r.Namespaces)
		},
		watch: func(kind schema.GroupVersionKind) error {
			// The selector of a scale may be in its status, which has no generation.
			return c.Watch(source.Kind[client.Object](mgr.GetCache(), metadataOf(kind),
				handler.EnqueueRequestsFromMapFunc(r.metricsOf(kind.GroupKind())),
				predicate.ResourceVersionChangedPredicate{}))
		},
		unwatch: func(ctx context.Context, kind schema.GroupVersionKind) error {
			return mgr.GetCache().RemoveInformer(ctx, metadataOf(kind))
		},
		served: func(kind schema.GroupVersionKind) bool {
			_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
			return !meta.IsNoMatchError(err)
		},
	}
}

func metadataOf(kind schema.GroupVersionKind) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// mayWatch asks the API server whether Foresail may list and watch a resource in all namespaces, or in those given.
func mayWatch(ctx context.Context, c client.Client, resource schema.GroupVersionResource,
	namespaces []string) (bool, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		for _, verb := range []string{"list", "watch"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version,
					Resource: resource.Resource,
				},
			}}
			if err := c.Create(ctx, review); err != nil || !review.Status.Allowed {
				return false, err
			}
		}
	}
	return true, nil
}
