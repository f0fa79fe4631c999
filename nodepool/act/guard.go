package act

import (
	"cmp"
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
)

// leaseGuard lets acts through only while the lease is held, each for no longer than that.
type leaseGuard struct {
	tasks    *lockstep
	provider provider.Provider
	drainer  Drainer
	labeler  Labeler
	letGo    func(context.Context) error // nil: nothing waits for the end of the pool
	left     func() time.Duration
	volumes  *volumes
}

// act runs one act under the lease, concurrently with those of other tasks.
func (g leaseGuard) act(ctx context.Context, do func(context.Context) error) error {
	var err error
	if stopped := g.tasks.do(func() { err = g.actNow(ctx, do) }); stopped != nil {
		return stopped
	}
	return err
}

func (g leaseGuard) actNow(ctx context.Context, do func(context.Context) error) error {
	left := g.left()
	if left <= 0 {
		return journal.ErrLeaseLost
	}
	ctx, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go g.endWithLease(left, ended, cancel)
	return do(ctx)
}

// endWithLease cancels a call when the lease is over. It may be renewed during the call.
func (g leaseGuard) endWithLease(left time.Duration, ended <-chan struct{}, cancel context.CancelFunc) {
	for left > 0 {
		timer := time.NewTimer(left)
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
			left = g.left()
		}
	}
	cancel()
}

func (g leaseGuard) launch(ctx context.Context, l provider.Launch) (launched provider.Launched, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		launched, err = g.provider.Launch(ctx, l)
		return err
	})
	return launched, err
}

func (g leaseGuard) terminate(ctx context.Context, id string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.provider.Terminate(ctx, id) })
}

func (g leaseGuard) markJoinFailed(ctx context.Context, id string) error {
	return g.act(ctx, func(ctx context.Context) error { return g.provider.MarkJoinFailed(ctx, id) })
}

// endMessage needs no lease: a message that is not ended is received again.
func (g leaseGuard) endMessage(ctx context.Context, notices provider.Notices, m provider.Message) (err error) {
	stopped := g.tasks.do(func() {
		ctx, cancel := context.WithTimeout(ctx, config.CallTimeout)
		defer cancel()
		err = notices.Done(ctx, m)
	})
	return cmp.Or(stopped, err)
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

// attached returns the volumes by node. Tasks that ask at the same time share one answer, as it is about all nodes.
func (g leaseGuard) attached(ctx context.Context) (volumes map[string][]string, err error) {
	err = g.act(ctx, func(ctx context.Context) error {
		volumes, err = g.volumes.get(ctx, g.drainer.Attached)
		return err
	})
	return volumes, err
}

// volumes is the answer to the first call of a cycle for attached volumes.
type volumes struct {
	turn   chan struct{} // holds a value while a call asks or reads
	asked  bool
	byNode map[string][]string
	err    error
}

func newVolumes() *volumes { return &volumes{turn: make(chan struct{}, 1)} }

func (v *volumes) get(
	ctx context.Context, ask func(context.Context) (map[string][]string, error),
) (map[string][]string, error) {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	if !v.asked {
		v.byNode, v.err = ask(ctx)
		v.asked = true
	}
	return v.byNode, v.err
}

func (g leaseGuard) nodeOf(ctx context.Context, i fleet.Instance) (name string, err error) {
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
