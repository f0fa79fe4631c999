package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/provider"
)

// model is what Foresail makes of a world.
type model struct {
	cluster *cluster.Cluster
	pool    pool
}

func newModel(ctx context.Context, w *world) (*model, error) {
	c, err := cluster.List(ctx, fake.NewClientset(w.copy().objects()...), noon)
	if err != nil {
		return nil, err
	}
	return &model{c, w.Pool}, nil
}

func (m *model) input(pods []cluster.Pending) scheduling.Input {
	return scheduling.Input{
		Pods: pods, Nodes: m.cluster.Nodes, Offers: m.pool.Offers, OnTheWay: m.pool.OnTheWay, NewlyReady: m.pool.Joining,
		DaemonSets: m.cluster.DaemonSets,
		Template: scheduling.Template{Labels: m.pool.Labels, Taints: m.pool.Taints,
			StartupTaints: m.pool.StartupTaints},
	}
}

func (m *model) pack(pods ...cluster.Pending) scheduling.Result {
	return scheduling.Pack(m.input(pods))
}

// without returns why the pods of a node could not all run on others, or on one that is added.
func (m *model) without(node string, mayWait bool, added ...fleet.Placement) string {
	return scheduling.NewSimulator(m.cluster, m.input(nil)).Without([]string{node}, mayWait, added...)
}

// kinds returns the offers that will do for a new node, of which there is one for each.
func (m *model) kinds(r scheduling.Result) [][]provider.Offer {
	var out [][]provider.Offer
	for _, s := range r.Shapes {
		will := slices.DeleteFunc(slices.Clone(m.pool.Offers), func(o provider.Offer) bool {
			return !slices.Contains(s.Kinds, fleet.Kind{Zone: o.Zone, InstanceType: o.InstanceType})
		})
		for range s.Nodes {
			out = append(out, will)
		}
	}
	for len(out) < r.Nodes {
		out = append(out, m.pool.Offers)
	}
	return out
}

// launched returns the Node that an offer becomes, and the pods of DaemonSets on it.
func launched(w *world, o provider.Offer, placement fleet.Placement, name string) (*corev1.Node, []*corev1.Pod) {
	n := &corev1.Node{}
	n.Name, n.UID = name, "uid-"+"new"
	n.Labels = map[string]string{corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: o.InstanceType,
		zone: placement.Zone, ebsZone: placement.Zone}
	maps.Copy(n.Labels, o.Labels)
	maps.Copy(n.Labels, w.Pool.Labels)
	n.Labels[host] = name
	n.Spec.Taints = w.Pool.Taints
	n.Status.Allocatable = maps.Clone(o.Allocatable)
	if _, ok := n.Status.Allocatable[corev1.ResourcePods]; !ok {
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	}
	return n, daemonPods(w, n)
}

// offerOf returns what a node was launched as.
func offerOf(w *world, p fleet.Placement) provider.Offer {
	for _, o := range w.Pool.Offers {
		if o.Zone == p.Zone && o.InstanceType == p.InstanceType {
			return o
		}
	}
	panic(fmt.Sprintf("no offer for %v", p))
}

// joined returns a node that joins as it will be, nil if it waits for nothing, and the pods of
// DaemonSets that it lacks.
func joined(w *world, n *corev1.Node) (*corev1.Node, []*corev1.Pod) {
	placement, ok := w.Pool.Joining[n.Name]
	if !ok || n.Spec.Unschedulable {
		return nil, nil
	}
	out := n.DeepCopy()
	out.Spec.Taints = slices.DeleteFunc(out.Spec.Taints, func(t corev1.Taint) bool {
		return slices.ContainsFunc(w.Pool.StartupTaints, func(s corev1.Taint) bool { return s.MatchTaint(&t) })
	})
	promised := offerOf(w, placement).Allocatable[gpu]
	if has := out.Status.Allocatable[gpu]; has.IsZero() && !promised.IsZero() {
		out.Status.Allocatable[gpu] = promised
	} else if len(out.Spec.Taints) == len(n.Spec.Taints) {
		return nil, nil
	}
	var lacks []*corev1.Pod
	for _, p := range daemonPods(w, out) {
		if !slices.ContainsFunc(w.Pods, func(other *corev1.Pod) bool {
			return other.Name == p.Name &&
				other.Spec.NodeName == p.Spec.NodeName
		}) {
			lacks = append(lacks, p)
		}
	}
	return out, lacks
}
