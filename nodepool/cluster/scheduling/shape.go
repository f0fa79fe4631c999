package scheduling

import (
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// newNode is the name of a node that does not exist yet. It is no valid name of a Node.
const newNode = "(a new node)"

// defaultSlots is the number of pods of a node whose offer does not contain it.
const defaultSlots = 110

// shape is a node that the pool can launch.
type shape struct {
	offer   provider.Offer
	index   int
	cooling bool    // it cannot be launched now
	refused bool    // it could not be launched at the last try
	cost    float64 // hourly, the lowest of its type in any zone; +Inf = unknown
	node    *corev1.Node
	free    vector // without its DaemonSets
	ports   []corev1.ContainerPort
	daemons vector        // requests of its DaemonSets
	pods    []*corev1.Pod // of its DaemonSets
}

// sizeKnown reports whether the size of an offer is known.
func sizeKnown(o provider.Offer) bool {
	c, m := o.Allocatable[corev1.ResourceCPU], o.Allocatable[corev1.ResourceMemory]
	return c.Sign() > 0 && m.Sign() > 0
}

func newShape(o provider.Offer, in *Input, d dimensions) *shape {
	s := &shape{
		offer: o, cooling: in.Cooling[o.Offer], refused: in.Refused[o.Offer],
		node: nodeOf(o, in.Template), free: d.vector(o.Allocatable), daemons: d.vector(nil),
	}
	if _, ok := o.Allocatable[corev1.ResourcePods]; !ok {
		s.free[slots] = defaultSlots
	}
	s.free[plain] = math.MaxInt32
	if in.PodsPerNode > 0 {
		s.free[plain] = int64(in.PodsPerNode)
	}
	for _, ds := range in.DaemonSets {
		if pod := podOf(ds); podObstacleOn(s.node, pod, nodeaffinity.GetRequiredNodeAffinity(pod)) == nil {
			requests := d.vector(cluster.Requests(pod))
			requests[plain] = 0
			s.free.take(requests, 1)
			s.daemons.take(requests, -1)
			s.pods = append(s.pods, pod)
			s.ports = append(s.ports, cluster.HostPorts(&pod.Spec)...)
		}
	}
	for i := range s.free {
		s.free[i] = max(s.free[i], 0)
	}
	limitVolumes(d, s.free, func(driver string) (int, bool) {
		limit, known := in.AttachLimits[o.InstanceType][driver]
		return limit, known
	})
	return s
}

// nodeOf returns the node of an offer.
func nodeOf(o provider.Offer, t Template) *corev1.Node {
	labels := map[string]string{corev1.LabelOSStable: "linux"}
	if o.Zone != "" {
		labels[corev1.LabelTopologyZone] = o.Zone
	}
	if o.InstanceType != "" {
		labels[corev1.LabelInstanceTypeStable] = o.InstanceType
	}
	maps.Copy(labels, o.Labels)
	maps.Copy(labels, t.Labels)
	labels[corev1.LabelHostname] = newNode
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: newNode, Labels: labels}, Spec: corev1.NodeSpec{Taints: t.Taints},
	}
}

// podOf returns the pod that a DaemonSet would create on a node, with the tolerations that all its
// pods get.
func podOf(ds *appsv1.DaemonSet) *corev1.Pod {
	template := &ds.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Labels: template.Labels}, Spec: template.Spec,
	}
	pod.Spec.Containers, pod.Spec.InitContainers = defaulted(pod.Spec.Containers), defaulted(pod.Spec.InitContainers)
	tolerations := slices.Clone(pod.Spec.Tolerations)
	keys := []string{
		corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable,
	}
	if pod.Spec.HostNetwork {
		keys = append(keys, corev1.TaintNodeNetworkUnavailable)
	}
	for _, key := range keys {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	pod.Spec.Tolerations = tolerations
	return pod
}

// defaulted adds the requests that a pod gets from its limits, which a template does not have yet.
func defaulted(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		if len(r.Limits) == 0 {
			continue
		}
		requests := maps.Clone(r.Limits)
		maps.Copy(requests, r.Requests)
		r.Requests = requests
	}
	return out
}

// catalog is the list of nodes that the pool can launch, in order of preference.
type catalog struct {
	shapes []*shape
	priced bool // costs decide which one is launched
}

func newCatalog(in *Input, d dimensions) catalog {
	c := catalog{priced: len(in.Costs) > 0}
	for _, o := range in.Offers {
		if sizeKnown(o) {
			s := newShape(o, in, d)
			s.index = len(c.shapes)
			c.shapes = append(c.shapes, s)
		}
	}
	c.price(in.Costs)
	return c
}

// price gives each shape the lowest cost of its type, because a node's zone is chosen by other
// criteria.
func (c catalog) price(costs map[fleet.Offer]float64) {
	least := map[string]float64{}
	for _, s := range c.shapes {
		usd, ok := costs[s.offer.Offer]
		if before, seen := least[s.offer.InstanceType]; ok && (!seen || usd < before) {
			least[s.offer.InstanceType] = usd
		}
	}
	for _, s := range c.shapes {
		s.cost = math.Inf(1)
		if usd, ok := least[s.offer.InstanceType]; ok {
			s.cost = usd
		}
	}
}

// whole returns the size by which pods are measured: a new node, or the first existing one if none
// can be launched.
func (c catalog) whole(nodes []cluster.Node, d dimensions) vector {
	if len(c.shapes) > 0 {
		return c.shapes[0].free
	}
	var of corev1.ResourceList
	if len(nodes) > 0 {
		of = nodes[0].Object.Status.Allocatable
	}
	whole := d.vector(of)
	limitVolumes(d, whole, func(string) (int, bool) { return 0, false })
	return whole
}

// nearest returns the shape that is most similar to a launched node: the first of its type and
// zone, of its type, or of its zone; -1 if there is none.
func (c catalog) nearest(launched fleet.Placement) int {
	best, points := -1, 0
	for i, s := range c.shapes {
		score := 0
		if s.offer.InstanceType == launched.InstanceType {
			score += 2
		}
		if s.offer.Zone == launched.Zone {
			score++
		}
		if score > points {
			best, points = i, score
		}
	}
	return best
}

// launchedAs returns the shape of a launched node, in its zone if that is offered, nil if its type
// is not offered.
func (c catalog) launchedAs(launched fleet.Placement) *shape {
	if i := c.nearest(launched); i >= 0 && c.shapes[i].offer.InstanceType == launched.InstanceType {
		return c.shapes[i]
	}
	return nil
}

// options are the shapes that could run the pods of a group, ignoring rules about other pods.
type options struct {
	takes    []bool // by shape
	shapes   int    // number of those that could
	cools    bool   // all of these are cooling
	refused  bool   // all of these were refused
	obstacle *obstacle
}

// optionsOf finds the shapes that could run the pods of a group.
func (c catalog) optionsOf(g *group, d dimensions, attach drivers) options {
	out := options{takes: make([]bool, len(c.shapes))}
	if g.role == pending && cluster.IsDaemonSets(g.pod) {
		out.obstacle = &obstacle{why: "it belongs to a DaemonSet, whose pods are for nodes that exist"}
		return out
	}
	out.cools, out.refused = true, true
	for i, s := range c.shapes {
		o := s.obstacle(g, d)
		if o == nil && !attach.fit(g.shared, nil, s.free) {
			o = &obstacle{5, whyVolumes}
		}
		if o == nil {
			out.takes[i] = true
			out.shapes++
			out.cools, out.refused = out.cools && s.cooling, out.refused && s.refused
		} else if out.obstacle == nil || o.rank > out.obstacle.rank {
			out.obstacle = o
		}
	}
	return out
}

// obstacle returns why an empty node of the shape could not run a pod of a group, ignoring rules
// about other pods.
func (s *shape) obstacle(g *group, d dimensions) *obstacle {
	if o := obstacleOn(s.node, g); o != nil {
		return o
	}
	if conflict(g.ports, s.ports) {
		return &obstacle{4, "a DaemonSet takes its host port on every new node of the pool"}
	}
	return obstacleIn(s.free, g.request, d)
}
