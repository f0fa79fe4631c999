package controlplane

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reservedPodCIDR is what nodes call their pod network: a range for documentation. kwok gives the
// address of a deleted pod to the next one if it lies in the node's own range. It never lies in
// this one, so every address is given once.
const reservedPodCIDR = "192.0.2.0/24"

// resourceMetricsPathAnnotation is where metrics-server reads the usage of a node's pods.
const resourceMetricsPathAnnotation = "metrics.k8s.io/resource-metrics-path"

// ResourceMetricsPath is the path at which a kubelet would say what the pods of a node use. As all
// nodes have the address of this machine, it names the node; metrics-server reads it from an
// annotation of the node. Nothing serves it here.
func ResourceMetricsPath(node string) string { return "/nodes/" + node + "/metrics/resource" }

// AddNodes adds n nodes, each with room for thousands of pods, and returns their names once they
// are Ready and free to schedule on.
func (c *Cluster) AddNodes(ctx context.Context, n int) ([]string, error) {
	return c.AddNodesLike(ctx, n, func(*corev1.Node) {})
}

// AddNodesLike adds n nodes as AddNodes does, each after change has changed it: its size, labels or
// taints. Nodes that have taints of their own are waited for until those alone are left.
func (c *Cluster) AddNodesLike(ctx context.Context, n int, change func(*corev1.Node)) ([]string, error) {
	names := make([]string, 0, n)
	taints := 0
	for range n {
		node := newNode(fmt.Sprintf("node-%d", c.lastNode.Add(1)))
		change(node)
		taints = len(node.Spec.Taints)
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return names, fmt.Errorf("add node %s: %w", node.Name, err)
		}
		names = append(names, node.Name)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error { return c.waitNode(ctx, name, taints) })
	}
	return names, group.Wait()
}

func newNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
			Annotations: map[string]string{resourceMetricsPathAnnotation: ResourceMetricsPath(name)},
		},
		Spec:   corev1.NodeSpec{PodCIDR: reservedPodCIDR, PodCIDRs: []string{reservedPodCIDR}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// waitNode waits until a node is Ready and the controllers have lifted the taint that keeps pods
// from new nodes, so that only its own ones are left.
func (c *Cluster) waitNode(ctx context.Context, name string, taints int) error {
	return c.poll(ctx, "node "+name+" to be ready", func(ctx context.Context) error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) != taints {
			return fmt.Errorf("tainted %v", node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("condition Ready is not True")
	})
}
