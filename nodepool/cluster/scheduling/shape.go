package scheduling

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// newNode is the name of a node that is not there yet; no node can have it.
const newNode = "(a new node)"

// defaultSlots is how many pods a node takes whose offer does not say.
const defaultSlots = 110

// shape is a node that the pool can launch.
type shape struct {
	offer   provider.Offer
	index   int
	cooling bool    // it cannot be launched now
	refused bool    // it could not be when it was tried last
	cost    float64 // of an hour, the least of its type in any zone; +Inf = not known
	node    *corev1.Node
	free    vector // after its DaemonSets
	ports   []corev1.ContainerPort
	daemons vector        // what its DaemonSets request
	pods    []*corev1.Pod // of its DaemonSets
}

// known tells whether the size of an offer is known.
func known(o provider.Offer) bool {
	c, m := o.Allocatable[corev1.ResourceCPU], o.Allocatable[corev1.ResourceMemory]
	return c.Sign() > 0 && m.Sign() > 0
}

func newShape(o provider.Offer, in *Input, d dimensions) *shape {
	s := &shape{offer: o, cooling: in.Cooling[o.Offer], refused: in.Refused[o.Offer], node: nodeOf(o, in.Template), daemons: d.vector(nil)}
	s.free = d.vector(o.Allocatable)
	if _, ok := o.Allocatable[corev1.ResourcePods]; !ok {
		s.free[slots] = defaultSlots
	}
	s.free[plain] = math.MaxInt32
	if in.PodsPerNode > 0 {
		s.free[plain] = int64(in.PodsPerNode)
	}
	for _, ds := range in.DaemonSets {
		if pod := podOf(ds); runsOn(pod, nodeaffinity.GetRequiredNodeAffinity(pod), s.node) == nil {
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
	return s
}

// nodeOf returns the node that an offer becomes.
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
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: newNode, Labels: labels}, Spec: corev1.NodeSpec{Taints: t.Taints}}
}

// podOf returns the pod that a DaemonSet would put on a node, with the tolerations that each of them gets.
func podOf(ds *appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Labels: ds.Spec.Template.Labels}, Spec: ds.Spec.Template.Spec}
	pod.Spec.Containers, pod.Spec.InitContainers = defaulted(pod.Spec.Containers), defaulted(pod.Spec.InitContainers)
	tolerations := slices.Clone(pod.Spec.Tolerations)
	for _, key := range []string{
		corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable,
	} {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	if pod.Spec.HostNetwork {
		tolerations = append(tolerations, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists})
	}
	pod.Spec.Tolerations = tolerations
	return pod
}

// defaulted fills in the requests that a pod gets from its limits; a template does not have them yet.
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

const whyVolumes = "it uses more volumes than can be attached to a new node of the pool"

// obstacle is why a pod cannot run on a node. The higher its rank the less is missing.
type obstacle struct {
	rank int
	why  string
}

// runsOn tells whether the labels and taints of a node let a pod run there.
func runsOn(pod *corev1.Pod, affinity nodeaffinity.RequiredNodeAffinity, node *corev1.Node) *obstacle {
	if ok, err := affinity.Match(node); !ok || err != nil {
		return &obstacle{1, "its node selector or node affinity wants labels that no new node of the pool has"}
	}
	if taint := untolerated(pod, node); taint != nil {
		return &obstacle{2, "it does not tolerate the taint " + taint.Key + " of the pool's nodes"}
	}
	return nil
}

// untolerated returns a taint of a node that keeps a pod away, nil for none.
func untolerated(pod *corev1.Pod, node *corev1.Node) *corev1.Taint {
	taint, found := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, repels, false)
	if !found {
		return nil
	}
	return &taint
}

// runsOn tells whether the labels and taints of a node let the pods of a group run there with their volumes.
func (g *group) runsOn(node *corev1.Node) *obstacle {
	if o := runsOn(g.pod, g.affinity, node); o != nil {
		return o
	}
	for _, v := range g.volumes {
		if ok, err := v.Match(node); !ok || err != nil {
			return &obstacle{3, "its volumes are where no new node of the pool can be"}
		}
	}
	return nil
}

func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// takes tells whether an empty node of the shape could run a pod of a group, as far as other pods do not matter.
func (s *shape) takes(g *group, d dimensions) *obstacle {
	if o := g.runsOn(s.node); o != nil {
		return o
	}
	if conflict(g.ports, s.ports) {
		return &obstacle{4, "a DaemonSet takes its host port on every new node of the pool"}
	}
	for i, r := range g.request {
		if r > s.free[i] && strings.HasPrefix(string(d.name(i)), attachable) {
			return &obstacle{5, whyVolumes}
		}
		if r > s.free[i] {
			return &obstacle{5, "it requests more " + string(d.name(i)) + " than a new node of the pool has"}
		}
	}
	return nil
}

// conflict tells whether two sets of host ports cannot be on one node.
func conflict(a, b []corev1.ContainerPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.HostPort == y.HostPort && protocol(x) == protocol(y) && (anyIP(x) || anyIP(y) || x.HostIP == y.HostIP) {
				return true
			}
		}
	}
	return false
}

func protocol(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

func anyIP(p corev1.ContainerPort) bool { return p.HostIP == "" || p.HostIP == "0.0.0.0" }
