package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
)

// restoreAll uncordons the nodes of pools that are gone, or deleted without their nodes, whatever
// action was open: no other component would. The cycles of an existing pool restore its own nodes.
func (c *Controller) restoreAll(ctx context.Context) error {
	nodes, err := c.options.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: cluster.LabelPool})
	if err != nil {
		return fmt.Errorf("list the nodes of pools: %w", err)
	}
	var errs []error
	for i := range nodes.Items {
		if node := &nodes.Items[i]; leftOver(node) {
			errs = append(errs, c.restore(ctx, node))
		}
	}
	return errors.Join(errs...)
}

// restoreAtStart restores the nodes of pools that were deleted while no process ran.
func (c *Controller) restoreAtStart(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	if err := c.restoreAll(call); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Nodes of WorkerPools that were deleted meanwhile may still be cordoned")
	}
}

// leftOver reports whether Foresail has made a node unschedulable.
func leftOver(node *corev1.Node) bool {
	_, marked := drain.MarkOf(node)
	return marked || node.Annotations[drain.CordonedBy] != ""
}

// restore restores a node if its pool is gone.
func (c *Controller) restore(ctx context.Context, node *corev1.Node) error {
	name := node.Labels[cluster.LabelPool]
	var pool v1alpha1.WorkerPool
	err := c.options.Client.Get(ctx, client.ObjectKey{Name: name}, &pool)
	if client.IgnoreNotFound(err) != nil || err == nil && !abandoned(&pool) {
		return err
	}
	if err := c.options.Drainer.Restore(ctx, node.Name); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Uncordoned a node because its WorkerPool was deleted",
		"workerpool", name, "node", node.Name)
	return nil
}
