// Package predictedmetric reconciles PredictedMetrics: it points the sources at the pods of their
// targets, configures the forecaster, and writes status and events.
package predictedmetric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// resync is how often the scale of a watched target is read without an event, the first time
	// within half a minute more (resyncAfter).
	resync = 5 * time.Minute
	// poll is how often the scale of a target of a kind that is not watched is read, while there are few of them.
	poll = 5 * time.Second
	// knownPoll is how often a start checks whether all pods are known.
	knownPoll = 200 * time.Millisecond
	// minRetry and maxRetry bound the back-off of a target that cannot be read.
	minRetry, maxRetry = time.Second, 30 * time.Second
)

// Reconciler configures sources and forecaster from PredictedMetrics. Every replica runs it.
type Reconciler struct {
	Client     client.Client
	Scales     *Scales
	Tracker    *podtracker.Tracker
	Forecaster *forecaster.Forecaster
	Sources    source.Set
	// Known returns an *podtracker.UnlistedError until all pods of a namespace are known. Until then nothing there is
	// followed: a source with a history must know the pods that it belongs to. nil: they are known.
	Known func(namespace string) error
	// Watches are those of the cache of Client. nil: changes are always seen.
	Watches *Watches
	// Namespaces limits which PredictedMetrics are reconciled; empty for all.
	Namespaces []string
	Now        func() time.Time

	kinds    *kinds
	reads    *reads
	problems problems
	measured allMeasured
	settled  atomic.Bool
}

// problems holds the problem of each PredictedMetric, for its status.
type problems struct{ m sync.Map }

// problem is why a PredictedMetric cannot be followed, if err is not nil.
type problem struct {
	generation int64 // of the spec that was processed; 0: none yet
	target     bool  // it is of the scale target, not of the spec
	err        error
}

func (p problem) ofSpec() bool   { return p.err != nil && !p.target }
func (p problem) ofTarget() bool { return p.err != nil && p.target }

func (p *problems) get(key types.NamespacedName) problem {
	v, _ := p.m.Load(key)
	found, _ := v.(problem)
	return found
}

func (p *problems) known(key types.NamespacedName) bool {
	_, ok := p.m.Load(key)
	return ok
}

// targetField is the index of PredictedMetrics by the kind and name of their target.
const targetField = "spec.scaleTargetRef"

func targetIndex(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// SetupWithManager registers the reconciler. It runs whether this replica leads or not.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	index := func(o client.Object) []string {
		ref := o.(*v1alpha1.PredictedMetric).Spec.ScaleTargetRef
		return []string{targetIndex(kindOf(ref), ref.Name)}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.PredictedMetric{}, targetField, index); err != nil {
		return err
	}
	all := false
	b := ctrl.NewControllerManagedBy(mgr).
		Named("predictedmetric").
		For(&v1alpha1.PredictedMetric{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 8, NeedLeaderElection: &all,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		})
	for kind, object := range watchedKinds {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(r.metricsOf(kind)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	c, err := b.Build(r)
	if err != nil {
		return err
	}
	r.kinds, r.reads = newKinds(r, mgr, c), newReads()
	return nil
}

// metricsOf finds the PredictedMetrics of a target of a kind.
func (r *Reconciler) metricsOf(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list v1alpha1.PredictedMetricList
		fields := client.MatchingFields{targetField: targetIndex(kind, o.GetName())}
		if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), fields); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the PredictedMetrics of a target", "kind", kind, "name",
				o.GetName())
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	var pm v1alpha1.PredictedMetric
	if err := r.Client.Get(ctx, key, &pm); apierrors.IsNotFound(err) {
		r.forget(key)
		r.problems.m.Delete(key)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if unlisted := r.unlisted(key.Namespace); unlisted != nil {
		if !unlisted.Lasting {
			return reconcile.Result{RequeueAfter: knownPoll}, nil
		}
		r.problems.m.Store(key, problem{generation: pm.Generation, target: true, err: unlisted})
		return reconcile.Result{RequeueAfter: poll}, nil
	}
	found, next := r.apply(ctx, key, &pm)
	if found == nil {
		r.problems.m.LoadOrStore(key, problem{}) // a start does not wait for it
		return reconcile.Result{RequeueAfter: next}, nil
	}
	found.generation = pm.Generation
	r.problems.m.Store(key, *found)
	switch {
	case found.ofSpec():
		ctrl.LoggerFrom(ctx).Info("Rejected the spec", "reason", found.err.Error())
		r.reject(key, &pm, found.err)
		// a new spec is an event, but a file that it names may change too
		return reconcile.Result{RequeueAfter: resyncAfter(key, r.Now())}, nil
	case found.ofTarget():
		r.reads.forget(key) // the queue says when to try again
		return reconcile.Result{}, found.err
	default:
		return reconcile.Result{RequeueAfter: next}, nil
	}
}

func (r *Reconciler) unlisted(namespace string) *podtracker.UnlistedError {
	if r.Known == nil {
		return nil
	}
	unlisted, _ := errors.AsType[*podtracker.UnlistedError](r.Known(namespace))
	return unlisted
}

// Settled returns an error until all PredictedMetrics that existed at the start have been reconciled. Later ones do not
// count: they must not keep the others from being served.
func (r *Reconciler) Settled(ctx context.Context) error {
	if r.settled.Load() {
		return nil
	}
	var list v1alpha1.PredictedMetricList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // nothing is changed
		return err
	}
	for i := range list.Items {
		if key := client.ObjectKeyFromObject(&list.Items[i]); !r.problems.known(key) {
			return fmt.Errorf("the PredictedMetric %s has not been processed yet", key)
		}
	}
	r.settled.Store(true)
	return nil
}

// apply configures sources and forecaster for one PredictedMetric, or returns the problem. It also
// returns when to do so again. No problem at all is returned while it is not the turn of this one
// to have the scale read: the forecaster knows of it by then, so that others of the same target do
// not scale it down without this one.
func (r *Reconciler) apply(ctx context.Context, key types.NamespacedName,
	pm *v1alpha1.PredictedMetric) (found *problem, next time.Duration) {
	pm.Spec.Default() // for defaults that an API server cannot set, and objects stored before a field had its default
	config, err := ConfigOf(pm)
	if err != nil {
		return &problem{err: err}, 0
	}
	feed, err := r.Forecaster.Set(key, config)
	if err != nil {
		return &problem{err: err}, 0
	}
	t, watched := r.watchedTarget(ctx, key.Namespace, pm.Spec.ScaleTargetRef)
	if !watched {
		if wait := r.reads.take(key, r.Now()); wait > 0 {
			return nil, wait
		}
		if t, err = r.Scales.get(ctx, key.Namespace, pm.Spec.ScaleTargetRef); err != nil {
			return r.withoutTarget(key, feed, err), 0
		}
		watched = r.kinds.follow(ctx, t.mapping, r.Now()) && r.Watches.Lost(kindOf(pm.Spec.ScaleTargetRef)).IsZero()
	}
	feed.SetReplicas(int(t.replicas))
	feed.WatchReplicas(r.lostOf(pm, watched))
	pods := r.follow(key, t.selector, feed)
	r.measured.set(key, &pm.Spec, t.selector)
	return &problem{err: r.Sources.Apply(key, &pm.Spec, pods, feed)}, r.reads.next(key, watched, r.Now())
}

// lostOf returns what returns since when changes of the replicas of a target are not seen; nil for one that is not
// watched, as it is read again soon.
func (r *Reconciler) lostOf(pm *v1alpha1.PredictedMetric, watched bool) func() time.Time {
	if !watched {
		return nil
	}
	kind := kindOf(pm.Spec.ScaleTargetRef)
	return func() time.Time { return r.Watches.Lost(kind) }
}

// withoutTarget returns the problem of a target whose scale cannot be read.
func (r *Reconciler) withoutTarget(key types.NamespacedName, feed *forecaster.Feed, err error) *problem {
	feed.LoseReplicas()
	if apierrors.IsNotFound(errors.Unwrap(err)) {
		r.follow(key, labels.Nothing(), feed)
		r.measured.forget(key)
	}
	return &problem{target: true, err: err}
}

// follow points a feed at the pods of its target. A new feed, of another target or source, has none of the past.
func (r *Reconciler) follow(key types.NamespacedName, selector labels.Selector,
	feed *forecaster.Feed) *podtracker.TargetPods {
	if !feed.HasPods() {
		r.Tracker.Forget(key)
	}
	pods := r.Tracker.Follow(key, key.Namespace, selector)
	feed.SetPods(pods)
	return pods
}

// reject stops following the target and publishes the reason.
func (r *Reconciler) reject(key types.NamespacedName, pm *v1alpha1.PredictedMetric, why error) {
	r.unfollow(key)
	r.Forecaster.Reject(key, targetOf(pm), why)
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.unfollow(key)
	r.Forecaster.Remove(key)
}

// unfollow stops all that is done for a target but its forecasts.
func (r *Reconciler) unfollow(key types.NamespacedName) {
	r.reads.forget(key)
	r.Sources.Remove(key)
	r.measured.forget(key)
	r.Tracker.Forget(key)
}

// ConfigOf converts a PredictedMetric for the forecaster.
func ConfigOf(pm *v1alpha1.PredictedMetric) (forecaster.Config, error) {
	p, err := params.FromSpec(pm.Spec)
	if err != nil {
		return forecaster.Config{}, err
	}
	schedules, err := params.Schedules(pm.Spec, &p)
	if err != nil {
		return forecaster.Config{}, err
	}
	ref := pm.Spec.ScaleTargetRef
	c := targetOf(pm)
	c.Schedules = schedules
	c.Params, c.MeasureStartup = p, true
	c.Source, c.Interval, c.Created = pm.Spec.Source.Name(), pm.Spec.Source.Interval(), pm.CreationTimestamp.Time
	c.Counter = pm.Spec.Source.Counter()
	if b := pm.Spec.CapacityBuffer; b != nil {
		c.NodeForecast = true
		if b.NodeStartupTime != nil {
			c.NodeStartupTime = b.NodeStartupTime.Duration
		}
	}
	origin, err := json.Marshal(pm.Spec.Source)
	c.Origin = fmt.Sprintf("%s %s %s", kindOf(ref), ref.Name, origin)
	return c, err
}

// targetOf returns a configuration with only the fields that are valid in a rejected spec: the target and dryRun.
func targetOf(pm *v1alpha1.PredictedMetric) forecaster.Config {
	ref := pm.Spec.ScaleTargetRef
	return forecaster.Config{TargetGroup: kindOf(ref).Group, TargetKind: ref.Kind,
		TargetName: ref.Name, DryRun: pm.Spec.DryRun}
}
