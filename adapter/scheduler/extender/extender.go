package extender

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Period is the time between two snapshots.
const Period = 500 * time.Millisecond

// Extender answers a scheduler. It is safe for concurrent use.
type Extender struct {
	rules     Rules
	now       func() time.Time
	forecasts Forecasts
	pools     Pools

	handler   *handler
	cluster   *cluster
	assumed   *assumedPods
	*arrivals // seek and wait

	current atomic.Pointer[clusterSnapshot]
	trouble string // why no snapshot could be made last, as logged; of the loop alone
}

// New returns an Extender without data. Run fills it.
func New(o Options) (*Extender, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("options of the extender: %w", err)
	}
	e := &Extender{
		rules: o.Rules, now: o.Now, forecasts: o.Forecasts, pools: o.Pools, assumed: newAssumedPods(o.Rules),
	}
	e.arrivals = newArrivals(&o, e.snapshot, e.assumed)
	e.cluster = newCluster(o, e.assumed)
	e.current.Store(&clusterSnapshot{})
	t, err := newTelemetry(o.Registry, o.Now, e.snapshot, e.assumed)
	if err != nil {
		return nil, fmt.Errorf("extender: %w", err)
	}
	e.handler = newHandler(&o, e.snapshot, e, t)
	return e, nil
}

// Run keeps the snapshot up to date until the context ends. It is called once.
func (e *Extender) Run(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() { e.cluster.watch(ctx) })
	tick := time.NewTicker(Period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			e.refresh(ctx)
		}
	}
}

// refresh makes a snapshot. If the cache cannot be trusted it keeps the last one, which then ages.
func (e *Extender) refresh(ctx context.Context) {
	now := e.now()
	loads := e.forecasts.NodeLoads()
	nodes, err := e.cluster.list(now)
	e.note(ctx, err)
	if err != nil {
		return
	}
	var intent *PoolIntent
	if e.pools != nil {
		intent = e.pools.PoolIntent()
	}
	v := newSnapshot(now, nodes, loads, e.assumed.busy(now), intent)
	v.lowest = e.cluster.lowest()
	e.current.Store(v)
	e.assumed.recount(now, loads.Nodes) // after the snapshot has these samples: otherwise pods would count in neither
}

// note logs when snapshots can no longer be made, and when they can again. It is silent before the first.
func (e *Extender) note(ctx context.Context, err error) {
	trouble := ""
	if err != nil && !e.snapshot().at.IsZero() {
		trouble = "lost"
	}
	if trouble == e.trouble {
		return
	}
	e.trouble = trouble
	if trouble != "" {
		klog.FromContext(ctx).Error(err,
			"Nodes and pods cannot be watched: requests will soon be answered without predictions")
	} else {
		klog.FromContext(ctx).Info("Nodes and pods are watched again")
	}
}

// Ready returns an error until nodes and pods have been listed once. After that the extender always answers:
// nodes without data pass.
func (e *Extender) Ready() error {
	if !e.snapshot().at.IsZero() {
		return nil
	}
	if err := e.cluster.state(e.now()); err != nil {
		return fmt.Errorf("the extender has no nodes yet: %w", err)
	}
	return nil
}

// snapshot returns the newest snapshot, never nil. Its time is zero until everything has been listed.
func (e *Extender) snapshot() *clusterSnapshot { return e.current.Load() }

// assume counts a pending pod on the node that it is likely to be bound to, until it is bound, asked about again, or
// Rules.AssumeTimeout has passed. Nodes without a prediction are scored by requests, the others by the estimate.
func (e *Extender) assume(pod types.UID, n *node, requests, estimate use) {
	e.assumed.assume(idOf(pod), newAssumedPod(n, requests, estimate, e.now()))
}

// forget removes what assume counted: the scheduler asks about the pod again.
func (e *Extender) forget(pod types.UID) { e.assumed.forget(idOf(pod)) }

// Handler answers POST requests at Prefix/filter and Prefix/prioritize. Errors are 405 for other methods, 400
// for bodies that are not ExtenderArgs with names, 413 for large ones, 503 under overload, and 500 for bugs. As
// a scheduler does not log these, filter answers ExtenderArgs without names with 200 and an Error in the
// result.
func (e *Extender) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Prefix+"/"+verbFilter, e.handler.answer(verbFilter))
	mux.Handle("POST "+Prefix+"/"+verbPrioritize, e.handler.answer(verbPrioritize))
	return mux
}

// ExplainHandler answers GET ExplainPath{namespace}/{name} with the Explanation of a pod, and 404 without a
// recent request for it.
func (e *Extender) ExplainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ExplainPath+"{namespace}/{name}", explainer{e.rules, e.handler.decisions}.serve)
	return mux
}
