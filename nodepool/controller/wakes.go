package controller

import (
	"context"
	"sync"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/observe"
)

// wakes distributes each wake-up of the shared watch to every pool.
type wakes struct {
	mu    sync.Mutex
	pools map[string]chan struct{}
}

func newWakes() *wakes { return &wakes{pools: map[string]chan struct{}{}} }

// pass wakes every pool.
func (w *wakes) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pool := range w.pools {
		select {
		case pool <- struct{}{}:
		default: // its last one is still pending
		}
	}
}

// observer returns one pool's view of the cluster.
func (w *wakes) observer(shared observe.Cluster, pool string) observe.Cluster {
	wake := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pools[pool] = wake // replaces that of an earlier pool with the name
	return observer{shared: shared, wake: wake}
}

// forget drops a pool that is gone.
func (w *wakes) forget(pool string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pools, pool)
}

type observer struct {
	shared observe.Cluster
	wake   chan struct{}
}

// Observe implements [observe.Cluster].
func (o observer) Observe(ctx context.Context) (*cluster.Cluster, error) {
	return o.shared.Observe(ctx)
}

func (o observer) Wake() <-chan struct{} { return o.wake }
