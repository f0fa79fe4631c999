package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
)

// Annotations that kwok reads.
const (
	kwokNode = "kwok.x-k8s.io/node" // "fake": kwok simulates the kubelet
	// kwokStatus is "custom" on nodes whose status kwok does not change, if it runs with
	// --disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom.
	kwokStatus = "kwok.x-k8s.io/status"
)

// region is the region of all zones.
const region = "simulated"

// nodeLabels returns the labels of a Node of a type in a zone, with those that the pool adds.
func nodeLabels(zone, instanceType string, more map[string]string) map[string]string {
	labels := map[string]string{
		corev1.LabelTopologyZone:       zone,
		corev1.LabelTopologyRegion:     region,
		corev1.LabelInstanceTypeStable: instanceType,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
	}
	maps.Copy(labels, more)
	return labels
}

// nodes creates, stops and deletes the Nodes of instances.
type nodes struct {
	client  typedcorev1.NodeInterface
	labels  map[string]string
	taints  []corev1.Taint
	kubelet bool // new Nodes are made Ready
}

// join creates the Node of an instance.
func (n *nodes) join(ctx context.Context, i *instance) error {
	_, err := n.client.Create(ctx, n.nodeFor(i), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create its node: %w", err)
	}
	if !n.kubelet {
		return nil
	}
	if err := n.makeReady(ctx, i); err != nil {
		return fmt.Errorf("make its node ready: %w", err)
	}
	return nil
}

func (n *nodes) nodeFor(i *instance) *corev1.Node {
	name := i.nodeName()
	labels := nodeLabels(i.Zone, i.InstanceType, n.labels)
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{kwokNode: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: i.providerID(), Taints: slices.Clone(n.taints)},
		Status:     corev1.NodeStatus{Capacity: i.Shape.DeepCopy(), Allocatable: i.Shape.DeepCopy()},
	}
}

// makeReady changes a new Node as kwok and the controller manager do.
func (n *nodes) makeReady(ctx context.Context, i *instance) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := n.get(ctx, i)
		if err != nil || node == nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeNotReady
		})
		_, err = n.client.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return n.setReady(ctx, i.nodeName(), corev1.NodeCondition{
		Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated kubelet is ready",
	}, i.JoinsAt)
}

// stopKubelet changes a Node as if its kubelet had stopped.
func (n *nodes) stopKubelet(ctx context.Context, i *instance, now time.Time) error {
	node, err := n.get(ctx, i)
	if err != nil || node == nil || isUnknown(node) {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"custom"}}}`, kwokStatus)
	_, err = n.client.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	return ignoreNotFound(n.setReady(ctx, node.Name, corev1.NodeCondition{
		Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "the simulated kubelet has stopped",
	}, now))
}

func isUnknown(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// setReady sets the condition Ready of a Node.
func (n *nodes) setReady(ctx context.Context, node string, condition corev1.NodeCondition, at time.Time) error {
	condition.Type = corev1.NodeReady
	condition.LastHeartbeatTime, condition.LastTransitionTime = metav1.NewTime(at), metav1.NewTime(at)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}})
	if err != nil {
		return err
	}
	_, err = n.client.PatchStatus(ctx, node, patch)
	return err
}

// delete deletes the Node of an instance, and no other Node with its name.
func (n *nodes) delete(ctx context.Context, i *instance) error {
	node, err := n.get(ctx, i)
	if err != nil || node == nil {
		return err
	}
	return ignoreNotFound(n.client.Delete(ctx, node.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &node.UID},
	}))
}

// get returns the Node of an instance, nil if it has none.
func (n *nodes) get(ctx context.Context, i *instance) (*corev1.Node, error) {
	node, err := n.client.Get(ctx, i.nodeName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && node.Spec.ProviderID != i.providerID()) {
		return nil, nil
	}
	return node, err
}
