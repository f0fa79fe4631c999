package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/foresail/foresail/api/v1alpha1"
)

// finalizerRetry is the pause before a finalizer is written again after a conflict, usually with
// another replica.
const finalizerRetry = time.Second

// removesNodes reports whether the nodes of a pool are removed with it.
func removesNodes(pool *v1alpha1.WorkerPool) bool {
	return pool.Spec.DeletionPolicy != v1alpha1.DeletionPolicyOrphan
}

func deleting(pool *v1alpha1.WorkerPool) bool { return !pool.DeletionTimestamp.IsZero() }

// abandoned reports whether a pool is being deleted and needs no more work: its nodes stay, or none
// is left.
func abandoned(pool *v1alpha1.WorkerPool) bool {
	return deleting(pool) && (!removesNodes(pool) || !controllerutil.ContainsFinalizer(pool, v1alpha1.FinalizerDrain))
}

// abandon releases the object of an abandoned pool and uncordons its nodes.
func (c *Controller) abandon(ctx context.Context, pool *v1alpha1.WorkerPool) error {
	c.stop(ctx, pool.Name)
	if err := c.patchFinalizer(ctx, pool, controllerutil.RemoveFinalizer); err != nil {
		return err
	}
	return c.restoreAll(ctx)
}

// ensureFinalizer sets or removes the finalizer of a pool that is not being deleted. It comes before the pool
// runs, so that no instance is ever launched for an object that could be deleted without it.
func (c *Controller) ensureFinalizer(ctx context.Context, pool *v1alpha1.WorkerPool) error {
	switch {
	case deleting(pool):
		return nil
	case removesNodes(pool):
		return c.patchFinalizer(ctx, pool, controllerutil.AddFinalizer)
	}
	return c.patchFinalizer(ctx, pool, controllerutil.RemoveFinalizer)
}

// releaseFinalizer removes the finalizer of a pool that has nothing left.
func (c *Controller) releaseFinalizer(ctx context.Context, name string, uid types.UID) error {
	var pool v1alpha1.WorkerPool
	if err := c.options.Client.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return client.IgnoreNotFound(err)
	}
	if pool.UID != uid {
		return nil
	}
	if !deleting(&pool) {
		return fmt.Errorf("WorkerPool %s is not being deleted", name)
	}
	return c.patchFinalizer(ctx, &pool, controllerutil.RemoveFinalizer)
}

// patchFinalizer adds or removes the finalizer, unless that has already been done. Finalizers of
// others are kept: a merge patch replaces the list, so it is bound to this version of the object.
func (c *Controller) patchFinalizer(ctx context.Context, pool *v1alpha1.WorkerPool,
	change func(client.Object, string) bool) error {
	next := pool.DeepCopy()
	if !change(next, v1alpha1.FinalizerDrain) {
		return nil
	}
	patch := client.MergeFromWithOptions(pool, client.MergeFromWithOptimisticLock{})
	if err := c.options.Client.Patch(ctx, next, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the finalizer of WorkerPool %s: %w", pool.Name, err)
	}
	return nil
}

// reportMissingFinalizer reports that the finalizer could not be written. The pool runs anyway, because stopping
// it would help no user.
func (c *Controller) reportMissingFinalizer(ctx context.Context, pool *v1alpha1.WorkerPool, err error) {
	r := c.pools[pool.Name]
	if err == nil || r == nil {
		return
	}
	klog.FromContext(ctx).Error(err, "Deleting the WorkerPool would leave its instances running", "workerpool", pool.Name)
	r.warn(fmt.Errorf("deleting the WorkerPool would leave its instances running: %w", err))
}
