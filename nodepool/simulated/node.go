package simulated

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Annotations that kwok looks for.
const (
	kwokNode = "kwok.x-k8s.io/node" // "fake": it plays the kubelet
	// kwokStatus is "custom" on nodes whose status kwok leaves alone, where it is run with
	// --disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom.
	kwokStatus = "kwok.x-k8s.io/status"
)

// region is what all zones are in.
const region = "simulated"

// nodeName is the name of an instance's Node. It may have 63 characters, as it is the value of a label.
func (i *instance) nodeName() string {
	pool := strings.Trim(i.pool()[:min(len(i.pool()), 52)], ".-")
	return pool + "-" + strings.TrimPrefix(i.id(), "i-")[:10]
}

// nodeLabels are the labels of every Node in a zone.
func (c *Cloud) nodeLabels(zone, instanceType string) map[string]string {
	labels := map[string]string{
		corev1.LabelTopologyZone:       zone,
		corev1.LabelTopologyRegion:     region,
		corev1.LabelInstanceTypeStable: instanceType,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
	}
	maps.Copy(labels, c.options.Labels)
	return labels
}

func (c *Cloud) newNode(i *instance) *corev1.Node {
	name := i.nodeName()
	labels := c.nodeLabels(i.Zone, i.InstanceType)
	labels[corev1.LabelHostname] = name
	shape := i.Shape
	if len(shape) == 0 {
		shape = c.shape
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{kwokNode: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: i.providerID(), Taints: slices.Clone(c.options.Taints)},
		Status:     corev1.NodeStatus{Capacity: shape.DeepCopy(), Allocatable: shape.DeepCopy()},
	}
}

// makeReady does for a new Node what kwok and the controller manager do elsewhere.
func (c *Cloud) makeReady(ctx context.Context, i *instance) error {
	nodes := c.options.Client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := c.node(ctx, i)
		if err != nil || node == nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return c.setReady(ctx, i.nodeName(), corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated kubelet is ready"}, i.JoinsAt)
}

// makeUnknown does to a Node what happens to one whose kubelet has stopped, unless it has happened.
func (c *Cloud) makeUnknown(ctx context.Context, i *instance, now time.Time) error {
	node, err := c.node(ctx, i)
	if err != nil || node == nil || isUnknown(node) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{kwokStatus: "custom"}}})
	if err != nil {
		return err
	}
	if _, err := c.options.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return ignoreNotFound(err)
	}
	stopped := corev1.NodeCondition{Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "the simulated kubelet has stopped"}
	return ignoreNotFound(c.setReady(ctx, node.Name, stopped, now))
}

func isUnknown(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// setReady sets the condition Ready of a Node.
func (c *Cloud) setReady(ctx context.Context, node string, condition corev1.NodeCondition, at time.Time) error {
	condition.Type = corev1.NodeReady
	condition.LastHeartbeatTime, condition.LastTransitionTime = metav1.NewTime(at), metav1.NewTime(at)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}})
	if err != nil {
		return err
	}
	_, err = c.options.Client.CoreV1().Nodes().PatchStatus(ctx, node, patch)
	return err
}

// deleteNode deletes the Node of an instance, and no other of its name.
func (c *Cloud) deleteNode(ctx context.Context, i *instance) error {
	node, err := c.node(ctx, i)
	if err != nil || node == nil {
		return err
	}
	return ignoreNotFound(c.options.Client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}}))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
