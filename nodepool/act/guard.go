package act

import (
	"cmp"
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/provider"
)

// guard runs acts only while the lease is held, and cancels them when it is lost.
type guard struct {
	tasks *lockstep
	left  func() time.Duration
}

// act runs one act under the lease, concurrently with those of other tasks.
func (g guard) act(ctx context.Context, do func(context.Context) error) error {
	var err error
	if stopped := g.tasks.do(func() { err = g.actNow(ctx, do) }); stopped != nil {
		return stopped
	}
	return err
}

func (g guard) actNow(ctx context.Context, do func(context.Context) error) error {
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
func (g guard) endWithLease(left time.Duration, ended <-chan struct{}, cancel context.CancelFunc) {
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

// guardedCloud is the cloud under the lease.
type guardedCloud struct {
	guard    guard
	provider provider.Provider
}

func (c guardedCloud) launch(ctx context.Context, l provider.Launch) (launched provider.Launched, err error) {
	err = c.guard.act(ctx, func(ctx context.Context) error {
		launched, err = c.provider.Launch(ctx, l)
		return err
	})
	return launched, err
}

func (c guardedCloud) terminate(ctx context.Context, id string) error {
	return c.guard.act(ctx, func(ctx context.Context) error { return c.provider.Terminate(ctx, id) })
}

func (c guardedCloud) markJoinFailed(ctx context.Context, id string) error {
	return c.guard.act(ctx, func(ctx context.Context) error { return c.provider.MarkJoinFailed(ctx, id) })
}

// endMessage needs no lease: a message that is not deleted is received again.
func (c guardedCloud) endMessage(ctx context.Context, notices provider.Notices, m provider.Message) (err error) {
	stopped := c.guard.tasks.do(func() {
		ctx, cancel := context.WithTimeout(ctx, config.CallTimeout)
		defer cancel()
		err = notices.Done(ctx, m)
	})
	return cmp.Or(stopped, err)
}
