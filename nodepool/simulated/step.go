package simulated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	stepEvery = time.Second
	// shutdown is how long an instance is seen to leave before it is no longer listed.
	shutdown = 5 * time.Second
	// keepTerminated is for how long the token of a terminated instance is remembered.
	keepTerminated = time.Hour
)

// Run lets time pass in the cloud until the context ends. Steps that fail are logged, and made up for by later ones.
func (c *Cloud) Run(ctx context.Context) error {
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	for {
		if err := c.Step(ctx, c.options.Now()); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A step of the simulated cloud failed", "pool", c.options.Pool)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Step brings every instance of the pool to where it is at a time.
func (c *Cloud) Step(ctx context.Context, now time.Time) error {
	all, err := c.list(ctx)
	if err != nil {
		return fmt.Errorf("list the instances of pool %s: %w", c.options.Pool, err)
	}
	var errs []error
	for _, i := range all {
		err := c.advance(ctx, i, now)
		if err != nil && !apierrors.IsConflict(err) { // another process takes steps too, or somebody has terminated it
			errs = append(errs, fmt.Errorf("%s: %w", i.id(), err))
		}
	}
	return errors.Join(errs...)
}

// advance brings one instance to where it is at a time. What is done to its Node can be done again, should the instance
// not be stored afterwards.
func (c *Cloud) advance(ctx context.Context, i *instance, now time.Time) error {
	before := i.encoded()
	if err := i.obey(now); err != nil {
		return err
	}
	switch {
	case i.State == terminated && now.After(i.EndsAt.Add(keepTerminated)):
		return c.forget(ctx, i)
	case i.gone():
		if err := c.stop(ctx, i, now); err != nil {
			return err
		}
	default:
		if err := c.start(ctx, i, now); err != nil {
			return err
		}
	}
	if i.encoded() == before {
		return nil
	}
	return c.update(ctx, i)
}

// obey does what annotations ask for, and what the cloud has announced.
func (i *instance) obey(now time.Time) error {
	asked := i.meta.Annotations
	if i.gone() {
		return nil
	}
	if text := asked[AnnotationInterrupt]; text != "" && i.TakenAt.IsZero() {
		after, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("annotation %s: %q: must be a duration, such as 2m", AnnotationInterrupt, text)
		}
		i.TakenAt = now.Add(after)
	}
	i.Advised = i.Advised || asked[AnnotationRebalance] == "true"
	if asked[AnnotationNeverJoin] == "true" && !i.Joined {
		i.JoinsAt = time.Time{}
	}
	taken := !i.TakenAt.IsZero() && !now.Before(i.TakenAt)
	switch {
	case asked[AnnotationVanish] == "true":
		i.Vanished = true
		i.leave(now, 0)
	case taken, asked[AnnotationTerminate] == "true":
		i.leave(now, shutdown)
	}
	return nil
}

// start lets an instance run, and its Node join when it is time.
func (c *Cloud) start(ctx context.Context, i *instance, now time.Time) error {
	i.State = fleet.Running
	if i.Joined || i.JoinsAt.IsZero() || now.Before(i.JoinsAt) {
		return nil
	}
	_, err := c.options.Client.CoreV1().Nodes().Create(ctx, c.newNode(i), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make its node: %w", err)
	}
	if c.options.Kubelet {
		if err := c.makeReady(ctx, i); err != nil {
			return fmt.Errorf("make its node ready: %w", err)
		}
	}
	i.Joined = true
	return nil
}

// stop ends an instance. Its Node stays, without a kubelet, until somebody deletes it; that of one which vanished is
// deleted here, a step after it has lost its kubelet. The kubelet is stopped at every step: another process may have been
// about to let the Node join.
func (c *Cloud) stop(ctx context.Context, i *instance, now time.Time) error {
	if !now.Before(i.EndsAt) {
		i.State = terminated
	}
	if i.Stopped && i.Vanished {
		if err := c.deleteNode(ctx, i); err != nil {
			return fmt.Errorf("delete its node: %w", err)
		}
		i.Vanished = false
		return nil
	}
	if err := c.makeUnknown(ctx, i, now); err != nil {
		return fmt.Errorf("stop its kubelet: %w", err)
	}
	i.Stopped = true
	return nil
}

// forget removes what is known of an instance that has been terminated long ago.
func (c *Cloud) forget(ctx context.Context, i *instance) error {
	err := c.options.Client.CoreV1().ConfigMaps(c.namespace).Delete(ctx, i.id(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &i.meta.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// node returns the Node of an instance, nil if it has none.
func (c *Cloud) node(ctx context.Context, i *instance) (*corev1.Node, error) {
	node, err := c.options.Client.CoreV1().Nodes().Get(ctx, i.nodeName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && node.Spec.ProviderID != i.providerID()) {
		return nil, nil
	}
	return node, err
}
