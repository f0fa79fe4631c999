// Package controller runs a pool of workers for each WorkerPool: it starts, changes and stops pools
// according to their objects. Every replica of Foresail runs every pool; the lease in a pool's
// journal decides which of them acts.
package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/report"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// retryAfter is the pause before a pool is started again that could not be built or that ended by
	// itself.
	retryAfter = 15 * time.Second
	// restoreTimeout bounds the time for restoring nodes at a start.
	restoreTimeout = 30 * time.Second
)

// Parts are the parts of one pool that it does not share with others.
type Parts struct {
	Store    state.Store
	Provider provider.Provider
	Signals  forecast.Signals
	Notices  provider.Notices  // nil: interruptions are not reported
	Reporter nodepool.Reporter // nil: nothing is reported
	// Run are functions that must run with the pool until its context ends.
	Run []func(ctx context.Context) error
}

// Build makes the parts of a pool. They do nothing until they are used or run. Errors name the
// invalid field.
type Build func(ctx context.Context, pool *v1alpha1.WorkerPool) (Parts, error)

// Options configures a Controller.
type Options struct {
	Client   client.Client // reads from a cache
	Build    Build
	Observer observe.Cluster // of the cluster, that all pools share
	Drainer  act.Drainer
	Labeler  act.Labeler
	// Kubernetes is used to find nodes that a deleted pool has left tainted.
	Kubernetes kubernetes.Interface
	// Forget is called when a pool has been deleted and has ended; nil = nothing is called.
	Forget func(pool string)
	Owner  string // of leases: unique for each run of a process
	Now    func() time.Time
}

// Controller runs pools. It must be run, and set up with a manager.
type Controller struct {
	options Options
	wakes   *wakes
	claims  *forecast.Claims
	// newPool makes a pool; tests replace it.
	newPool func(nodepool.Options) (runner, error)
	retry   time.Duration // [retryAfter]; shorter in tests

	starting chan *running // from Reconcile to Run, in whose context pools run
	ended    chan struct{} // closed when Run starts no more pools
	mu       sync.Mutex
	pools    map[string]*running
}

type runner interface {
	Run(ctx context.Context) error
}

// New returns a controller that does nothing yet.
func New(o Options) *Controller {
	return &Controller{
		options: o, wakes: newWakes(), claims: forecast.NewClaims(),
		newPool: func(o nodepool.Options) (runner, error) { return nodepool.New(o) },
		retry:   retryAfter, starting: make(chan *running), ended: make(chan struct{}), pools: map[string]*running{},
	}
}

// SetupWithManager makes a manager call Reconcile when the spec of a WorkerPool changes, in each
// replica.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workerpool").
		For(&v1alpha1.WorkerPool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(c)
	return errors.Join(err, mgr.Add(runnable(c.Run)))
}

// runnable is a runnable of a manager that runs whether it leads or not.
type runnable func(context.Context) error

// Start implements manager.Runnable.
func (e runnable) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e runnable) NeedLeaderElection() bool { return false }

// Run runs pools until the context ends, and returns when all of them have ended.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("nodepool"))
	var restoring sync.WaitGroup
	restoring.Go(func() { c.restoreAtStart(ctx) })
	defer restoring.Wait()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case next := <-c.starting:
			next.start(ctx)
		case <-c.options.Observer.Wake():
			c.wakes.pass()
		}
	}
	close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range c.pools {
		r.stop()
		delete(c.pools, name)
	}
	return nil
}

// Reconcile makes one pool run according to its WorkerPool.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pool v1alpha1.WorkerPool
	err := c.options.Client.Get(ctx, request.NamespacedName, &pool)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stop(ctx, request.Name)
		return ctrl.Result{}, c.restoreAll(ctx)
	}
	pool.Spec.Default()
	if abandoned(&pool) {
		return retrySoon(c.abandon(ctx, &pool))
	}
	missing := c.ensureFinalizer(ctx, &pool)
	if missing != nil && !apierrors.IsForbidden(missing) {
		return retrySoon(missing)
	}
	result, err := c.apply(ctx, &pool)
	c.reportMissingFinalizer(ctx, &pool, missing)
	return result, err
}

// retrySoon retries after a conflict with another writer, which is no error.
func retrySoon(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: finalizerRetry}, nil
	}
	return ctrl.Result{}, err
}

// stop ends a pool whose WorkerPool is gone, or is deleted without its nodes. Each replica does
// this before it restores nodes, so that nodes are also restored after the last act of the leader.
func (c *Controller) stop(ctx context.Context, name string) {
	if r := c.pools[name]; r != nil {
		r.stop()
		delete(c.pools, name)
		klog.FromContext(ctx).Info("The WorkerPool was deleted", "workerpool", name)
	}
	c.wakes.forget(name)
	c.claims.Forget(name)
	if c.options.Forget != nil {
		c.options.Forget(name)
	}
}

// apply runs a pool with a spec. If the spec is invalid, that is reported, and the pool keeps the
// previous spec.
func (c *Controller) apply(ctx context.Context, pool *v1alpha1.WorkerPool) (ctrl.Result, error) {
	old := c.pools[pool.Name]
	key := keyOf(pool)
	err := c.ownQueue(ctx, pool)
	if err == nil && old != nil && old.alive() && old.key == key {
		old.change(pool)
		return ctrl.Result{RequeueAfter: c.retry}, nil // checks whether it has ended
	}
	var next *running
	if err == nil {
		next, err = c.build(ctx, pool, key)
	}
	if err != nil {
		return ctrl.Result{RequeueAfter: c.retry}, c.reject(ctx, pool, err)
	}
	if old != nil {
		old.stop() // it releases its lease, which the next one takes
	}
	c.passOn(ctx, pool.Name, next)
	return ctrl.Result{RequeueAfter: c.retry}, nil
}

// reject reports why a spec cannot be used: by the pool that runs with the previous one, or in the status.
func (c *Controller) reject(ctx context.Context, pool *v1alpha1.WorkerPool, why error) error {
	klog.FromContext(ctx).Error(why, "The WorkerPool cannot run with its spec", "workerpool", pool.Name)
	if old := c.pools[pool.Name]; old != nil && old.alive() {
		old.keepPrevious(pool, why)
		return nil
	}
	return report.InvalidSpec(ctx, c.options.Client, pool, why)
}

// passOn passes a pool to Run, which starts it.
func (c *Controller) passOn(ctx context.Context, name string, next *running) {
	select {
	case c.starting <- next:
		c.pools[name] = next
	case <-c.ended:
		delete(c.pools, name)
	case <-ctx.Done():
		delete(c.pools, name)
	}
}

// build makes a pool that does not run yet.
func (c *Controller) build(ctx context.Context, pool *v1alpha1.WorkerPool, key string) (*running, error) {
	parts, err := c.options.Build(ctx, pool)
	if err != nil {
		return nil, err
	}
	r := &running{key: key, name: pool.Name, reporter: parts.Reporter,
		started: make(chan struct{}), ended: make(chan struct{})}
	r.change(pool)
	p, err := c.newPool(nodepool.Options{
		Name: pool.Name, Owner: c.options.Owner, Spec: r.spec,
		Store: parts.Store, Provider: parts.Provider, Signals: parts.Signals, Notices: parts.Notices, Reporter: r,
		Observer: c.wakes.observer(c.options.Observer, pool.Name), Drainer: c.options.Drainer,
		Labeler: c.options.Labeler, Claims: c.claims,
		Now: c.options.Now, Seed: seedOf(c.options.Owner, pool.Name),
		ReleaseFinalizer: func(ctx context.Context) error { return c.releaseFinalizer(ctx, pool.Name, pool.UID) },
	})
	if err != nil {
		return nil, err
	}
	r.parts = append(parts.Run, p.Run)
	return r, nil
}

// seedOf returns a seed for a pool and replica, so that retries of different ones do not coincide.
func seedOf(owner, pool string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", owner, pool) // a hash never fails
	return h.Sum64()
}

// keyOf identifies what a running pool cannot change: its object, and the configuration of its
// parts.
func keyOf(pool *v1alpha1.WorkerPool) string {
	s := pool.Spec
	data, err := json.Marshal([]any{
		pool.UID, s.Provider, s.State, s.Signals, s.Seasonal, s.Forecast, s.Interval, s.StartupTime,
		s.Template, s.CloudWatchNamespace, s.Market.MaxPrice,
	})
	if err != nil {
		panic(fmt.Sprintf("encode a WorkerPool: %v", err)) // it came from JSON
	}
	return string(data)
}

// running is one running pool.
type running struct {
	key      string
	name     string
	reporter nodepool.Reporter
	parts    []func(context.Context) error

	mu       sync.Mutex
	current  config.Spec // the last valid one
	deleting bool        // the object is being deleted, even if its spec is invalid
	dryRun   bool        // the last spec sets dryRun, even if it is invalid
	refused  error       // why the last spec was rejected
	warning  error       // another problem of the object

	started chan struct{} // closed once cancel is set
	cancel  context.CancelFunc
	ended   chan struct{}
}

// change sets the spec of the pool for its next cycles.
func (r *running) change(pool *v1alpha1.WorkerPool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.refused, r.warning = config.Of(pool.Name, pool.Spec), nil, nil
	r.current.Generation = pool.Generation
	r.deleting, r.dryRun = deleting(pool), pool.Spec.DryRun
}

// warn reports a problem of the object from the next cycle until the next change.
func (r *running) warn(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warning = why
}

// keepPrevious reports, from the next cycle on, why a spec was rejected. A deletion still takes effect:
// the pool launches nothing more, and its nodes are drained with the previous spec, unless the new
// one sets dryRun.
func (r *running) keepPrevious(pool *v1alpha1.WorkerPool, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleting, r.dryRun = deleting(pool), pool.Spec.DryRun
	r.refused = fmt.Errorf("the spec cannot be used, so the pool keeps the previous one: %w", why)
}

func (r *running) spec() (config.Spec, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current
	s.Plan.Deleting = r.deleting
	s.DryRun = s.DryRun || r.deleting && r.dryRun
	return s, nil
}

// Report passes on the report of the pool, with the problems of the spec.
func (r *running) Report(ctx context.Context, t nodepool.CycleReport) {
	if r.reporter == nil {
		return
	}
	r.mu.Lock()
	t.Health = errors.Join(t.Health, r.refused, r.warning)
	r.mu.Unlock()
	r.reporter.Report(ctx, t)
}

// start runs the pool and its parts until one of them fails, ctx ends, or the pool is stopped.
func (r *running) start(ctx context.Context) {
	log := klog.FromContext(ctx).WithValues("workerpool", r.name)
	ctx, r.cancel = context.WithCancel(klog.NewContext(ctx, log))
	close(r.started)
	parts, inner := errgroup.WithContext(ctx)
	for _, part := range r.parts {
		parts.Go(func() error {
			if err := part(inner); err != nil || inner.Err() != nil {
				return err
			}
			return errors.New("a part of the pool has ended unexpectedly")
		})
	}
	log.Info("The pool runs")
	go func() {
		defer close(r.ended)
		if err := parts.Wait(); err != nil && ctx.Err() == nil {
			log.Error(err, "The pool has ended and will be started again")
		}
	}()
}

func (r *running) alive() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// stop ends a pool that was passed to Run, and waits for its end.
func (r *running) stop() {
	<-r.started
	r.cancel()
	<-r.ended
}
