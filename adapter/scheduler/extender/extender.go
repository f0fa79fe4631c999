package extender

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
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

	handler *handler
	cluster *cluster
	assumed *assumedPods

	awaiting   chan struct{}           // requests that wait for their pods
	reads      flowcontrol.RateLimiter // of pods
	readFailed minutely

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
		awaiting: make(chan struct{}, maxAwaiting), reads: flowcontrol.NewTokenBucketRateLimiter(readsPerSecond, 2*readsPerSecond),
	}
	e.cluster = newCluster(o, e.assumed)
	e.current.Store(&clusterSnapshot{})
	if e.handler, err = newHandler(e, o); err != nil {
		return nil, fmt.Errorf("extender: %w", err)
	}
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
		klog.FromContext(ctx).Error(err, "Nodes and pods cannot be watched: requests will soon be answered without predictions")
	} else {
		klog.FromContext(ctx).Info("Nodes and pods are watched again")
	}
}

// Ready returns an error until nodes and pods have been listed once. After that the extender always answers: nodes without data
// pass.
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
