package simulated

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	stepEvery = time.Second
	// keepTerminated is how long the token of a terminated instance is kept.
	keepTerminated = time.Hour
)

// stepper advances the instances of a pool in time, with their Nodes.
type stepper struct {
	store *store
	nodes *nodes
}

func (s *stepper) run(ctx context.Context, now func() time.Time) error {
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	for {
		if err := s.step(ctx, now()); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A step of the simulated cloud failed", "pool", s.store.pool)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (s *stepper) step(ctx context.Context, now time.Time) error {
	all, err := s.store.list(ctx)
	if err != nil {
		return fmt.Errorf("list the instances of pool %s: %w", s.store.pool, err)
	}
	var errs []error
	for _, i := range all {
		err := s.advance(ctx, i, now)
		if err != nil && !apierrors.IsConflict(err) { // another process has changed the instance
			errs = append(errs, fmt.Errorf("%s: %w", i.id(), err))
		}
	}
	return errors.Join(errs...)
}

// advance advances one instance. Changes of its Node can be repeated, in case the instance is not stored afterwards.
func (s *stepper) advance(ctx context.Context, i *instance, now time.Time) error {
	stored := i.encoded()
	if err := i.obey(now); err != nil {
		return err
	}
	switch {
	case i.State == terminated && now.After(i.EndsAt.Add(keepTerminated)):
		return s.store.remove(ctx, i)
	case i.ending():
		if err := s.stop(ctx, i, now); err != nil {
			return err
		}
	default:
		if err := s.start(ctx, i, now); err != nil {
			return err
		}
	}
	if i.encoded() == stored {
		return nil
	}
	return s.store.update(ctx, i)
}

// start makes an instance run, and its Node join when the time has come.
func (s *stepper) start(ctx context.Context, i *instance, now time.Time) error {
	i.State = fleet.Running
	if i.Joined || i.JoinsAt.IsZero() || now.Before(i.JoinsAt) {
		return nil
	}
	if err := s.nodes.join(ctx, i); err != nil {
		return err
	}
	i.Joined = true
	return nil
}

// stop ends an instance. Its Node stays without a kubelet until it is deleted; the Node of an instance that vanished is
// deleted here, one step after its kubelet stopped. The kubelet is stopped in every step: another process may have been
// about to make the Node join.
func (s *stepper) stop(ctx context.Context, i *instance, now time.Time) error {
	if !now.Before(i.EndsAt) {
		i.State = terminated
	}
	if i.Stopped && i.Vanished {
		if err := s.nodes.delete(ctx, i); err != nil {
			return fmt.Errorf("delete its node: %w", err)
		}
		i.Vanished = false
		return nil
	}
	if err := s.nodes.stopKubelet(ctx, i, now); err != nil {
		return fmt.Errorf("stop its kubelet: %w", err)
	}
	i.Stopped = true
	return nil
}
