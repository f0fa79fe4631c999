package extender

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Period is how often a view is made.
const Period = 500 * time.Millisecond

// Extender answers a scheduler. See the head of the package. It is safe for concurrent use.
type Extender struct {
	rules     Rules
	now       func() time.Time
	log       *slog.Logger
	forecasts Forecasts
	pools     Pools

	door    *door
	cluster *cluster
	ledger  *ledger
	current atomic.Pointer[view]
	trouble string // why no view could be made last, as logged; of the loop alone
}

// New returns an Extender that knows nothing until it runs.
func New(o Options) (*Extender, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("options of the extender: %w", err)
	}
	e := &Extender{rules: o.Rules, now: o.Now, log: o.Log, forecasts: o.Forecasts, pools: o.Pools, ledger: newLedger(o.Rules)}
	e.cluster = newCluster(o, e.ledger)
	e.current.Store(&view{})
	if e.door, err = newDoor(e, o); err != nil {
		return nil, fmt.Errorf("extender: %w", err)
	}
	return e, nil
}

// Run keeps the view up to date until the context ends. It is called once.
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
			e.look()
		}
	}
}

// look makes a view of what is known now. While that is not to be trusted there is none, and the last one
// ages with what counted beside it.
func (e *Extender) look() {
	now := e.now()
	loads := e.forecasts.NodeLoads()
	nodes, err := e.cluster.list(now)
	e.note(err)
	if err != nil {
		return
	}
	var standing *Standing
	if e.pools != nil {
		standing = e.pools.Standing()
	}
	v := newView(now, nodes, loads, e.ledger.busy(now), standing)
	v.lowest = e.cluster.lowest()
	e.current.Store(v)
	e.ledger.settle(now, loads.Nodes) // not before answers go by these samples: pods would be neither in those nor on the ledger
}

// note logs what keeps views from being made when it begins, changes and ends, but for the first moments.
func (e *Extender) note(err error) {
	trouble := ""
	if err != nil && !e.view().at.IsZero() {
		trouble = "lost"
	}
	if trouble == e.trouble {
		return
	}
	e.trouble = trouble
	if trouble != "" {
		e.log.Warn("the cluster is not known: scheduler is answered without predictions soon", "error", err)
	} else {
		e.log.Info("the cluster is known again")
	}
}

// Ready tells what has not been listed yet. From when everything has been, nothing keeps the extender from answering: with
// less to go by, it lets pods pass.
func (e *Extender) Ready() error {
	if !e.view().at.IsZero() {
		return nil
	}
	if err := e.cluster.state(e.now()); err != nil {
		return fmt.Errorf("the extender knows no nodes yet: %w", err)
	}
	return nil
}

// view returns the newest view, never nil. One that was made of nothing, since not everything has been listed yet, is
// of the zero time.
func (e *Extender) view() *view { return e.current.Load() }

// tentative counts a pod on the node that it is likely to be bound to, until it is bound to any, is asked about again, or too much time passes. What it requests is told apart from what it is expected to use: nodes
// without a prediction are scored on the one, the others on the other. A pod that the API does not have as one that is not
// bound does not count.
func (e *Extender) tentative(pod types.UID, n *node, requests, estimate use) {
	e.ledger.score(idOf(pod), guessOf(n, requests, estimate, e.now()))
}

// forget takes back what tentative counted of a pod: it is asked about again, and must not stand in its own way.
func (e *Extender) forget(pod types.UID) { e.ledger.forget(idOf(pod)) }
