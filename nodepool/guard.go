package nodepool

import (
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
)

// callTimeout bounds each call that leaves the process, so that one that hangs does not cost the lease.
const callTimeout = 15 * time.Second

// leaseGuard lets acts through only while the lease is held, each for no longer than that.
type leaseGuard struct {
	provider provider.Provider
	drainer  Drainer
	labeler  Labeler
	letGo    func(context.Context) error // nil: nothing waits for the end of the pool
	left     func() time.Duration
}

// act runs one act under the lease.
func (g leaseGuard) act(ctx context.Context, do func(context.Context) error) error {
	left := g.left()
	if left <= 0 {
		return errLeaseLost
	}
	ctx, cancel := context.WithTimeout(ctx, min(left, callTimeout))
	defer cancel()
	return do(ctx)
}

func (g leaseGuard) launch(ctx context.Context, l provider.Launch) (instance provider.Instance, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		instance, err = g.provider.Launch(ctx, l)
		return err
	})
	return instance, err
}

func (g leaseGuard) terminate(ctx context.Context, id string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.provider.Terminate(ctx, id) })
}

func (g leaseGuard) markJoinFailed(ctx context.Context, id string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.provider.MarkJoinFailed(ctx, id) })
}

func (g leaseGuard) taint(ctx context.Context, node, action string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.drainer.Taint(ctx, node, action) })
}

func (g leaseGuard) cordon(ctx context.Context, node string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.drainer.Cordon(ctx, node) })
}

func (g leaseGuard) restore(ctx context.Context, node string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.drainer.Restore(ctx, node) })
}

func (g leaseGuard) blockers(ctx context.Context, node string) (why []string, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		why, err = g.drainer.Blockers(ctx, node)
		return err
	})
	return why, err
}

func (g leaseGuard) arriving(ctx context.Context) (arriving bool, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		arriving, err = g.drainer.Arriving(ctx)
		return err
	})
	return arriving, err
}

func (g leaseGuard) evict(ctx context.Context, node string, l drain.Limits) (progress drain.Progress, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		progress, err = g.drainer.Evict(ctx, node, l)
		return err
	})
	return progress, err
}

func (g leaseGuard) attached(ctx context.Context) (volumes map[string][]string, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		volumes, err = g.drainer.Attached(ctx)
		return err
	})
	return volumes, err
}

func (g leaseGuard) nodeOf(ctx context.Context, i provider.Instance) (name string, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		name, err = g.drainer.NodeOf(ctx, i.ProviderID, i.ID)
		return err
	})
	return name, err
}

func (g leaseGuard) deleteNode(ctx context.Context, node, providerID string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.drainer.DeleteNode(ctx, node, providerID) })
}

func (g leaseGuard) label(ctx context.Context, node string, labels map[string]string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.labeler.Label(ctx, node, labels) })
}

func (g leaseGuard) finish(ctx context.Context) error { return g.act(ctx, g.letGo) }
