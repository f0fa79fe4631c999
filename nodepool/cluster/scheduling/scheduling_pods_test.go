package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// list is a ResourceList from names and quantities in turn.
func list(of ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return out
}

type change = func(*corev1.Pod)

// pods returns n pending pods of one ReplicaSet that request a CPU and a GiB each, changed.
func pods(app string, n int, changes ...change) []cluster.Pending {
	var out []cluster.Pending
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, i),
			Labels: map[string]string{"app": app}}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: new(true)}}
		p.Spec.Containers = []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")}}}
		for _, c := range changes {
			c(p)
		}
		out = append(out, cluster.Pending{Pod: p})
	}
	return out
}

func requests(of ...string) change {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(of...) }
}

func selects(key, value string) change {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func inZone(zone string) change { return selects(corev1.LabelTopologyZone, zone) }

func hostPort(port int32) change {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	}
}

func tolerates(key string) change {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func nodeAffinity(key string, op corev1.NodeSelectorOperator, values ...string) change {
	return func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
				Operator: op, Values: values}}}},
		}}
	}
}

func term(app, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func awayFrom(app, key string) change {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, key)}}
	}
}

func with(app, key string) change {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, key)}}
	}
}

func spreadOver(key string, skew int32) change {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}},
		})
	}
}

// offer is a node of 4 CPUs, 8 GiB and 10 slots.
func offer(zone, kind string, more ...string) provider.Offer {
	o := provider.Offer{Offer: fleet.Offer{Zone: zone, InstanceType: kind},
		Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "10")}
	maps.Copy(o.Allocatable, list(more...))
	return o
}

func daemonSet(changes ...change) *appsv1.DaemonSet {
	p := pods("agent", 1, changes...)[0].Pod
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}}}
}

// node is a Ready node of 4 CPUs, 8 GiB and 10 slots in a zone that runs pods which request a CPU and a GiB each.
func node(name, zone string, runs ...*cluster.Pod) cluster.Node {
	n := cluster.Node{Ready: true, Pods: runs, Movable: len(runs), Requested: corev1.ResourceList{},
		Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone,
				corev1.LabelOSStable: "linux"}}}}
	n.Object.Status.Allocatable = list("cpu", "4", "memory", "8Gi", "pods", "10")
	for _, p := range runs {
		for name, q := range p.Requests {
			sum := n.Requested[name]
			sum.Add(q)
			n.Requested[name] = sum
		}
	}
	return n
}

// bound is a pod that a node runs.
func bound(app, cpu string) *cluster.Pod {
	return &cluster.Pod{Name: app,
		Kind: &cluster.Kind{Namespace: "default", Labels: map[string]string{"app": app},
			Requests: list("cpu", cpu, "memory", "1Gi", "pods", "1")}}
}

func labelled(n cluster.Node, key, value string) cluster.Node {
	n.Object.Labels[key] = value
	return n
}

// gang makes pods be scheduled together.
func gang(in []cluster.Pending) []cluster.Pending {
	for i := range in {
		in[i].Gang = "default/job"
	}
	return in
}

func leaving(p *cluster.Pod) *cluster.Pod { p.Leaving = true; return p }

func withPort(p *cluster.Pod, port int32) *cluster.Pod {
	p.Ports = []corev1.ContainerPort{{HostPort: port, Protocol: corev1.ProtocolTCP}}
	return p
}

func notReady(n cluster.Node) cluster.Node { n.Ready = false; return n }

func cordoned(n cluster.Node) cluster.Node { n.Object.Spec.Unschedulable = true; return n }

func tainted(n cluster.Node, key string) cluster.Node {
	n.Object.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	return n
}

func keepsAway(p *cluster.Pod, app, key string) *cluster.Pod {
	p.AntiAffinity = []corev1.PodAffinityTerm{term(app, key)}
	return p
}

// located makes pods use volumes in certain zones, by labels of nodes.
func located(in []cluster.Pending, key string, zones ...string) []cluster.Pending {
	for i := range in {
		in[i].Volumes = append(in[i].Volumes, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: zones}}}}})
	}
	return in
}

// stuck makes pods wait for their claims.
func stuck(in []cluster.Pending) []cluster.Pending {
	for i := range in {
		in[i].Stuck = "its claim data does not exist"
	}
	return in
}

func all(lists ...[]cluster.Pending) []cluster.Pending {
	var out []cluster.Pending
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

const (
	host = corev1.LabelHostname
	zone = corev1.LabelTopologyZone
)

// short is a shape that names its zone and its type where not every one will do.
type short struct {
	Zone, InstanceType string
	Nodes              int
}

func abbreviated(shapes []fleet.Shape, offers []provider.Offer) []short {
	var out []short
	for _, s := range shapes {
		zones, types := map[string]bool{}, map[string]bool{}
		for _, k := range s.Kinds {
			zones[k.Zone], types[k.InstanceType] = true, true
		}
		one := short{Nodes: s.Nodes}
		for _, o := range offers {
			if !zones[o.Zone] {
				one.Zone = strings.Join(slices.Sorted(maps.Keys(zones)), ",")
			}
			if !types[o.InstanceType] {
				one.InstanceType = strings.Join(slices.Sorted(maps.Keys(types)), ",")
			}
		}
		out = append(out, one)
	}
	return out
}

func TestPack(t *testing.T) {
	for name, test := range map[string]struct {
		in       Input
		nodes    int
		helped   int
		room     int
		shapes   []short
		unhelped map[string]string
	}{
		"nothing":          {in: Input{Offers: []provider.Offer{offer("a", "m")}}},
		"nothing, unknown": {in: Input{}},
		"one pod":          {in: Input{Pods: pods("web", 1)}, nodes: 1, helped: 1},
		"a node full":      {in: Input{Pods: pods("web", 4)}, nodes: 1, helped: 4},
		"one too many":     {in: Input{Pods: pods("web", 5)}, nodes: 2, helped: 5},

		// Requests.
		"memory decides": {in: Input{Pods: pods("web", 3, requests("cpu", "1m", "memory", "4Gi"))}, nodes: 2, helped: 3},
		"slots decide":   {in: Input{Pods: pods("web", 11, requests("cpu", "1m", "memory", "1Mi"))}, nodes: 2, helped: 11},
		"largest first": {in: Input{Pods: all(pods("small", 2, requests("cpu", "1")),
			pods("big", 2, requests("cpu", "3")))}, nodes: 2, helped: 4},
		"too large": {in: Input{Pods: pods("web", 1, requests("cpu", "5"))},
			unhelped: map[string]string{"default/web-0": "it requests more cpu than a new node of the pool has"}},
		"no such resource": {in: Input{Pods: pods("web", 1, requests("nvidia.com/gpu", "1"))},
			unhelped: map[string]string{"default/web-0": "it requests more nvidia.com/gpu than a new node of the pool has"}},
		"resource of one type": {in: Input{Pods: all(pods("gpu", 3, requests("cpu", "1", "nvidia.com/gpu", "1")),
			pods("web", 6)),
			Offers: []provider.Offer{offer("a", "m"), offer("b", "m"), offer("a", "g", "nvidia.com/gpu", "2"),
				offer("b", "g", "nvidia.com/gpu", "2")}},
			nodes: 3, helped: 9, shapes: []short{{InstanceType: "g", Nodes: 2}}},
		"resource of one type in one zone": {in: Input{Pods: pods("gpu", 1, requests("nvidia.com/gpu", "1")),
			Offers: []provider.Offer{offer("a", "m"), offer("b", "m"), offer("b", "g", "nvidia.com/gpu", "2")}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", InstanceType: "g", Nodes: 1}}},
		"init containers": {in: Input{Pods: pods("web", 2, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init",
				Resources: corev1.ResourceRequirements{Requests: list("cpu", "4")}}}
		})}, nodes: 2, helped: 2},
		"sidecars": {in: Input{Pods: pods("web", 2, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Resources: corev1.ResourceRequirements{Requests: list("cpu", "2")}}}
		})}, nodes: 2, helped: 2},
		"overhead": {in: Input{Pods: pods("web", 2, func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "2") })},
			nodes: 2, helped: 2},
		"requests of the pod": {in: Input{Pods: pods("web", 2, func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "3")}
		})}, nodes: 2, helped: 2},
		"without requests": {in: Input{Pods: pods("web", 7, requests()), PodsPerNode: 3}, nodes: 3, helped: 7},
		"without requests, with others": {in: Input{Pods: all(pods("web", 3, requests()), pods("db", 4)), PodsPerNode: 3},
			nodes: 1, helped: 7},
		"without requests, no limit": {in: Input{Pods: pods("web", 11, requests())}, nodes: 2, helped: 11},
		"with one of memory alone": {in: Input{Pods: pods("web", 7, requests("memory", "1Mi")), PodsPerNode: 3}, nodes: 1,
			helped: 7},

		// DaemonSets.
		"after DaemonSets": {in: Input{Pods: pods("web", 4),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(requests("cpu", "100m"))}}, nodes: 2, helped: 4},
		"after slots of DaemonSets": {in: Input{Pods: pods("web", 10, requests("cpu", "1m")),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(requests())}}, nodes: 2, helped: 10},
		"DaemonSet elsewhere": {in: Input{Pods: pods("web", 4),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(selects("disk", "ssd"))}}, nodes: 1, helped: 4},
		"DaemonSet that does not tolerate": {in: Input{Pods: pods("web", 4, tolerates("dedicated")),
			DaemonSets: []*appsv1.DaemonSet{daemonSet()},
			Template:   Template{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}}}, nodes: 1,
			helped: 4},
		"DaemonSet by limits": {in: Input{Pods: pods("web", 4),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(requests(), func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = list("cpu", "100m")
			})}}, nodes: 2, helped: 4},
		"DaemonSets take a whole node": {in: Input{Pods: pods("web", 1),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(requests("cpu", "9"))}},
			unhelped: map[string]string{"default/web-0": "it requests more cpu than a new node of the pool has"}},
		"pod of a DaemonSet": {in: Input{Pods: pods("web", 1,
			func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })},
			unhelped: map[string]string{"default/web-0": "it belongs to a DaemonSet, whose pods are for nodes that exist"}},

		// Host ports.
		"a host port": {in: Input{Pods: pods("web", 3, hostPort(80))}, nodes: 3, helped: 3},
		"two host ports": {in: Input{Pods: all(pods("web", 2, hostPort(80)), pods("dns", 2, hostPort(53)))}, nodes: 2,
			helped: 4},
		"host port of DaemonSet": {in: Input{Pods: pods("web", 1, hostPort(80)),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(hostPort(80))}},
			unhelped: map[string]string{"default/web-0": "a DaemonSet takes its host port on every new node of the pool"}},
		"host port of another protocol": {in: Input{Pods: all(pods("tcp", 1, hostPort(53)),
			pods("udp", 1, hostPort(53), func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP
			}))}, nodes: 1, helped: 2},

		// Labels and taints.
		"zone": {in: Input{Pods: pods("web", 5, inZone("b"))}, nodes: 2, helped: 5,
			shapes: []short{{Zone: "b", Nodes: 2}}},
		"zone, filled by others": {in: Input{Pods: all(pods("any", 4), pods("pinned", 2, inZone("b")))}, nodes: 2, helped: 6,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"both zones": {in: Input{Pods: all(pods("a", 1, inZone("a")), pods("b", 1, inZone("b")), pods("any", 6))}, nodes: 2,
			helped: 8,
			shapes: []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}}},
		"zone that is not offered": {in: Input{Pods: pods("web", 1, inZone("c"))},
			unhelped: map[string]string{
				"default/web-0": "its node selector or node affinity requires labels that no new node of the pool has"}},
		"one zone is all zones": {in: Input{Pods: pods("web", 1, inZone("a")), Offers: []provider.Offer{offer("a", "m")}},
			nodes: 1, helped: 1},
		"type": {in: Input{Pods: pods("web", 1, selects(corev1.LabelInstanceTypeStable, "c")),
			Offers: []provider.Offer{offer("a", "m"), offer("a", "c")}}, nodes: 1, helped: 1,
			shapes: []short{{InstanceType: "c", Nodes: 1}}},
		"operating system": {in: Input{Pods: pods("web", 1, selects(corev1.LabelOSStable, "linux"))}, nodes: 1,
			helped: 1},
		"label of the template": {in: Input{Pods: pods("web", 1, selects("team", "x")),
			Template: Template{Labels: map[string]string{"team": "x"}}}, nodes: 1, helped: 1},
		"affinity to a zone": {in: Input{Pods: pods("web", 1, nodeAffinity(zone, corev1.NodeSelectorOpNotIn, "a"))},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"one host by name": {in: Input{Pods: pods("web", 1, selects(host, "n1"))},
			unhelped: map[string]string{
				"default/web-0": "its node selector or node affinity requires labels that no new node of the pool has"}},
		"taint": {in: Input{Pods: pods("web", 1),
			Template: Template{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}}},
			unhelped: map[string]string{"default/web-0": "it does not tolerate the taint dedicated of the pool's nodes"}},
		"taint, tolerated": {in: Input{Pods: pods("web", 1, tolerates("dedicated")),
			Template: Template{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}}}, nodes: 1,
			helped: 1},
		"taint that only advises": {in: Input{Pods: pods("web", 1),
			Template: Template{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule}}}},
			nodes: 1, helped: 1},
		"some are helped": {in: Input{Pods: all(pods("web", 1), pods("far", 1, inZone("c")))}, nodes: 1, helped: 1,
			unhelped: map[string]string{
				"default/far-0": "its node selector or node affinity requires labels that no new node of the pool has"}},

		// Volumes.
		"volume in a zone": {in: Input{Pods: located(pods("db", 1), zone, "b")}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"volume in another zone than room": {in: Input{Pods: located(pods("db", 1), zone, "b"),
			Nodes: []cluster.Node{node("n1", "a")}}, nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"volume in the zone of room": {in: Input{Pods: located(pods("db", 1), zone, "b"),
			Nodes: []cluster.Node{node("n1", "a"), node("n2", "b")}}, helped: 1, room: 1},
		"volume outside the pool, with room": {in: Input{Pods: located(pods("db", 1), zone, "z"),
			Nodes: []cluster.Node{node("n1", "z")}},
			room: 1},
		"volume outside the pool": {in: Input{Pods: located(pods("db", 1), zone, "z"),
			Nodes: []cluster.Node{node("n1", "a")}},
			unhelped: map[string]string{"default/db-0": "its volumes are where no new node of the pool can be"}},
		"volume on one host": {in: Input{Pods: located(pods("db", 1), host, "n1"),
			Nodes: []cluster.Node{node("n1", "a", bound("web", "4"))}},
			unhelped: map[string]string{"default/db-0": "its volumes are where no new node of the pool can be"}},
		"volume in any of the zones": {in: Input{Pods: located(pods("db", 1), zone, "a", "b")}, nodes: 1, helped: 1},
		"volume with a node on its way": {in: Input{Pods: located(pods("db", 1), zone, "b"),
			OnTheWay: []fleet.Placement{{Zone: "b", InstanceType: "m"}}}, helped: 1},
		"volume with a node on its way elsewhere": {in: Input{Pods: located(pods("db", 1), zone, "b"),
			OnTheWay: []fleet.Placement{{Zone: "a", InstanceType: "m"}}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"two volumes in two zones": {in: Input{Pods: located(located(pods("db", 1), zone, "b"), zone, "a")},
			unhelped: map[string]string{"default/db-0": "its volumes are where no new node of the pool can be"}},
		"volume where the pod must not be": {in: Input{Pods: located(pods("db", 1, inZone("a")), zone, "b")},
			unhelped: map[string]string{"default/db-0": "its volumes are where no new node of the pool can be"}},
		"alike but for their volumes": {in: Input{Pods: all(located(pods("x", 1), zone, "a"),
			located(pods("y", 2), zone, "b"), pods("z", 5))}, nodes: 2, helped: 8,
			shapes: []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}}},
		"volumes in zones, and spread over them": {in: Input{Pods: all(located(pods("web", 2, spreadOver(zone, 1)), zone,
			"b")), Nodes: []cluster.Node{node("n1", "a", bound("db", "4"))}}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}, unhelped: map[string]string{"default/web-1": whyTopology}},
		"stuck with a claim": {in: Input{Pods: all(stuck(pods("db", 2)), pods("web", 1)),
			Nodes: []cluster.Node{node("n1", "a")}}, helped: 1, room: 1,
			unhelped: map[string]string{"default/db-0": "its claim data does not exist",
				"default/db-1": "its claim data does not exist"}},
		"all are stuck": {in: Input{Pods: stuck(pods("db", 1))},
			unhelped: map[string]string{"default/db-0": "its claim data does not exist"}},

		// Pods that are scheduled together or not at all.
		"a gang": {in: Input{Pods: gang(pods("web", 5))}, nodes: 2, helped: 5},
		"a gang with a pod that is stuck": {in: Input{Pods: gang(all(pods("web", 1), stuck(pods("db", 1))))},
			unhelped: map[string]string{"default/web-0": whyGang, "default/db-0": "its claim data does not exist"}},
		"a gang with a pod that is too large, with others": {in: Input{Pods: all(pods("x", 1),
			gang(all(pods("web", 1), pods("db", 1, requests("cpu", "5")))))}, nodes: 1, helped: 1,
			unhelped: map[string]string{"default/web-0": whyGang, "default/db-0": whyGang}},
		"a gang that needs more nodes than there may be": {in: Input{Pods: all(pods("x", 4), gang(pods("web", 5))),
			MaxNodes: 2}, nodes: 1, helped: 4,
			unhelped: map[string]string{"default/web-0": whyGang, "default/web-1": whyGang, "default/web-2": whyGang,
				"default/web-3": whyGang, "default/web-4": whyGang}},
		"a gang with room for all but one": {in: Input{Pods: gang(all(pods("web", 1), pods("db", 1, inZone("c")))),
			Nodes: []cluster.Node{node("n1", "a")}}, room: 1, helped: 1,
			unhelped: map[string]string{
				"default/db-0": "its node selector or node affinity requires labels that no new node of the pool has"}},

		// Nodes that are there or on their way.
		"on its way": {in: Input{Pods: pods("web", 5),
			OnTheWay: []fleet.Placement{{Zone: "a", InstanceType: "m"}}}, nodes: 1, helped: 5},
		"on its way elsewhere": {in: Input{Pods: pods("web", 1, inZone("b")),
			OnTheWay: []fleet.Placement{{Zone: "a", InstanceType: "m"}}}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"on its way, of no offer": {in: Input{Pods: pods("web", 4),
			OnTheWay: []fleet.Placement{{Zone: "z", InstanceType: "old"}}}, helped: 4},
		"room": {in: Input{Pods: pods("web", 5), Nodes: []cluster.Node{node("n1", "a", bound("db", "1"))}},
			nodes: 1, helped: 5, room: 3},
		"room on no Ready node": {in: Input{Pods: pods("web", 1), Nodes: []cluster.Node{notReady(node("n1", "a"))}},
			nodes: 1, helped: 1},
		"room on a cordoned node": {in: Input{Pods: pods("web", 1), Nodes: []cluster.Node{cordoned(node("n1", "a"))}},
			nodes: 1, helped: 1},
		"room on a tainted node": {in: Input{Pods: pods("web", 1),
			Nodes: []cluster.Node{tainted(node("n1", "a"), "foresail.dev/removing")}}, nodes: 1, helped: 1},
		"room in the wrong zone": {in: Input{Pods: pods("web", 1, inZone("b")), Nodes: []cluster.Node{node("n1", "a")}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"room but for the port": {in: Input{Pods: pods("web", 1, hostPort(80)),
			Nodes: []cluster.Node{node("n1", "a", withPort(bound("db", "1"), 80))}}, nodes: 1, helped: 1},
		"room outside the pool": {in: Input{Pods: pods("web", 1, inZone("z")), Nodes: []cluster.Node{node("n1", "z")}},
			room: 1},

		// Pods that keep apart.
		"each on its own host": {in: Input{Pods: pods("web", 3, awayFrom("web", host))}, nodes: 3, helped: 3},
		"hosts shared with others": {in: Input{Pods: all(pods("web", 2, awayFrom("web", host)), pods("db", 6))},
			nodes: 2, helped: 8},
		"away from a pod that is there": {in: Input{Pods: pods("web", 1, awayFrom("db", host)),
			Nodes: []cluster.Node{node("n1", "a", bound("db", "1"))}}, nodes: 1, helped: 1},
		"kept away by a pod that is there": {in: Input{Pods: pods("web", 1),
			Nodes: []cluster.Node{node("n1", "a", keepsAway(bound("db", "1"), "web", host))}},
			nodes: 1, helped: 1},
		"kept away by a pending pod": {in: Input{Pods: all(pods("db", 1, requests("cpu", "2"), awayFrom("web", host)),
			pods("web", 1))}, nodes: 2, helped: 2},
		"each in its own zone": {in: Input{Pods: pods("web", 2, awayFrom("web", zone))}, nodes: 2, helped: 2,
			shapes: []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}}},
		"more than there are zones": {in: Input{Pods: pods("web", 3, awayFrom("web", zone))}, nodes: 2, helped: 2,
			shapes:   []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}},
			unhelped: map[string]string{"default/web-2": whyTopology}},
		"away from a zone": {in: Input{Pods: pods("web", 1, awayFrom("db", zone)),
			Nodes: []cluster.Node{node("n1", "a", bound("db", "1"))}}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"kept away from a zone by a pod that is there": {in: Input{Pods: pods("web", 1),
			Nodes: []cluster.Node{node("n1", "a", keepsAway(bound("db", "1"), "web", zone))}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"away from another namespace's": {in: Input{Pods: pods("web", 1,
			func(p *corev1.Pod) { p.Namespace = "other" }, awayFrom("db", host)),
			Nodes: []cluster.Node{node("n1", "a", bound("db", "1"))}}, helped: 1, room: 1},
		"away from namespaces by label": {in: Input{Pods: pods("web", 1, func(p *corev1.Pod) { p.Namespace = "other" },
			awayFrom("db", host), func(p *corev1.Pod) {
				term := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
				term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}
			}), Nodes: []cluster.Node{node("n1", "a", bound("db", "1"))}}, nodes: 1, helped: 1},

		// Pods that keep together.
		"with each other in a zone": {in: Input{Pods: pods("web", 8, with("web", zone))}, nodes: 2, helped: 8,
			shapes: []short{{Zone: "a", Nodes: 2}}},
		"with a zone that is there": {in: Input{Pods: pods("web", 1, with("db", zone)),
			Nodes: []cluster.Node{node("n1", "b", bound("db", "4"))}}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"with a full host": {in: Input{Pods: pods("web", 1, with("db", host)),
			Nodes: []cluster.Node{node("n1", "b", bound("db", "4"))}},
			unhelped: map[string]string{"default/web-0": whyTopology}},
		"without pods there": {in: Input{Pods: pods("web", 1, with("db", zone))},
			unhelped: map[string]string{"default/web-0": whyTopology}},
		"with one placed later": {in: Input{Pods: all(pods("web", 1, requests("cpu", "2"), with("db", host)), pods("db", 1))},
			nodes: 1, helped: 2, shapes: nil},
		"with one placed later, of a chain": {in: Input{Pods: all(pods("web", 1, requests("cpu", "2"), with("app", host)),
			pods("app", 1, requests("cpu", "1500m"), with("db", host)), pods("db", 1, requests("cpu", "500m")))},
			nodes: 1, helped: 3},

		// Spread.
		"spread over hosts": {in: Input{Pods: pods("web", 4, spreadOver(host, 1))}, nodes: 1,
			helped: 4},
		"spread over hosts, with one that is full": {in: Input{Pods: pods("web", 4, spreadOver(host, 1)),
			Nodes: []cluster.Node{node("n1", "a", bound("db", "4"))}}, nodes: 4, helped: 4},
		"spread over hosts, by two": {in: Input{Pods: pods("web", 4, spreadOver(host, 2)),
			Nodes: []cluster.Node{node("n1", "a", bound("db", "4"))}}, nodes: 2, helped: 4},
		"spread over zones": {in: Input{Pods: pods("web", 4, spreadOver(zone, 1)),
			Nodes: []cluster.Node{node("n1", "a", bound("web", "4")), node("n2", "b", bound("db", "4"))}},
			nodes: 2, helped: 4, shapes: []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}}},
		"spread over zones, one behind": {in: Input{Pods: pods("web", 1, spreadOver(zone, 1)),
			Nodes: []cluster.Node{node("n1", "a", bound("web", "4")), node("n2", "b", bound("db", "4"))}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"spread over zones, one unreachable": {in: Input{Pods: pods("web", 3, spreadOver(zone, 1)),
			Nodes: []cluster.Node{node("n1", "c", bound("db", "4"))}}, nodes: 2, helped: 2,
			shapes:   []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}},
			unhelped: map[string]string{"default/web-2": whyTopology}},
		"spread counts none that leave": {in: Input{Pods: pods("web", 1, spreadOver(host, 1)),
			Nodes: []cluster.Node{node("n1", "a", leaving(bound("web", "1"))), node("n2", "a", bound("db", "4"))}},
			helped: 1, room: 1},
		"spread that only advises": {in: Input{Pods: pods("web", 4, spreadOver(host, 1), func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
		}), Nodes: []cluster.Node{node("n1", "a", bound("db", "4"))}}, nodes: 1, helped: 4},
		"spread over a label that no node has": {in: Input{Pods: pods("web", 1, spreadOver("rack", 1))},
			unhelped: map[string]string{"default/web-0": whyTopology}},
		"spread by the labels of a revision": {in: Input{Pods: pods("web", 1, spreadOver(host, 1), func(p *corev1.Pod) {
			p.Labels["rev"] = "2"
			p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"rev"}
		}), Nodes: []cluster.Node{node("n1", "a", bound("web", "1")), node("n2", "a", bound("db", "4"))}}, helped: 1,
			room: 1},
		"spread counts only the nodes that the pod selects": {in: Input{Pods: pods("web", 1, spreadOver(zone, 1),
			nodeAffinity("pool", corev1.NodeSelectorOpNotIn, "old")),
			Nodes: []cluster.Node{labelled(node("n1", "a", bound("web", "1"), bound("web", "1")), "pool", "old"),
				node("n2", "a"), node("n3", "b", bound("db", "4"))}}, helped: 1, room: 1},
		"spread counts all nodes, if it says so": {in: Input{Pods: pods("web", 1, spreadOver(zone, 1),
			nodeAffinity("pool", corev1.NodeSelectorOpNotIn, "old"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
			}), Nodes: []cluster.Node{labelled(node("n1", "a", bound("web", "1"), bound("web", "1")), "pool", "old"),
			node("n2", "a"), node("n3", "b", bound("db", "4"))}},
			nodes: 1, helped: 1, shapes: []short{{Zone: "b", Nodes: 1}}},
		"spread over at least so many": {in: Input{Pods: pods("web", 3, spreadOver(zone, 1), func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints[0].MinDomains = new(int32(3))
		})}, nodes: 2, helped: 2, shapes: []short{{Zone: "a", Nodes: 1}, {Zone: "b", Nodes: 1}},
			unhelped: map[string]string{"default/web-2": whyTopology}},
		"spread counts no pods on nodes that the pod does not select": {in: Input{Pods: pods("web", 1, spreadOver(zone, 1),
			selects("disk", "ssd")), Nodes: []cluster.Node{
			labelled(node("n1", "a"), "disk", "ssd"), node("n2", "a", bound("web", "1")),
			labelled(node("n3", "b", bound("db", "4")), "disk", "ssd"),
		}, Template: Template{Labels: map[string]string{"disk": "ssd"}}}, helped: 1, room: 1},
		"spread counts them, but none on tainted nodes": {in: Input{Pods: pods("web", 1, spreadOver(zone, 1),
			selects("disk", "ssd"), func(p *corev1.Pod) {
				rule := &p.Spec.TopologySpreadConstraints[0]
				rule.NodeAffinityPolicy, rule.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyIgnore),
					new(corev1.NodeInclusionPolicyHonor)
			}), Nodes: []cluster.Node{
			labelled(node("n1", "a", bound("web", "1")), "disk", "ssd"), node("n2", "b"), tainted(node("n3", "c"), "dedicated"),
		}, Template: Template{Labels: map[string]string{"disk": "ssd"}}}, nodes: 1, helped: 1,
			shapes: []short{{Zone: "b", Nodes: 1}}},
		"spread of a rule that selects all counts none": {in: Input{Pods: pods("web", 3,
			spreadOver(host, 1), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
			}), Nodes: []cluster.Node{node("n1", "a", bound("db", "1")), node("n2", "a", bound("db", "4"))}}, helped: 3,
			room: 3},
		"away from the pods of a DaemonSet": {in: Input{Pods: pods("web", 1, awayFrom("agent", host), func(p *corev1.Pod) {
			term := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			term.Namespaces = []string{"kube-system"}
		}), DaemonSets: []*appsv1.DaemonSet{daemonSet()}}, unhelped: map[string]string{"default/web-0": whyTopology}},
		"a DaemonSet whose pods keep others away": {in: Input{Pods: pods("web", 1),
			DaemonSets: []*appsv1.DaemonSet{daemonSet(awayFrom("web", host), func(p *corev1.Pod) {
				term := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
				term.Namespaces = []string{"default"}
			})}}, unhelped: map[string]string{"default/web-0": whyTopology}},
		"away from all pods, next to a rule about none": {in: Input{Pods: all(pods("web", 1,
			awayFrom("", host), func(p *corev1.Pod) {
				term := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
				term.LabelSelector = &metav1.LabelSelector{}
			}), pods("db", 1, awayFrom("", host), func(p *corev1.Pod) {
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = nil
		})), Nodes: []cluster.Node{node("n1", "a", bound("x", "1"))}}, nodes: 1, helped: 2, room: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if test.in.Offers == nil && len(test.in.Pods) > 0 {
				test.in.Offers = []provider.Offer{offer("a", "m"), offer("b", "m")}
			}
			r := Pack(test.in)
			assert.True(t, r.Known)
			assert.Equal(t, test.nodes, r.Nodes, "nodes")
			assert.Equal(t, test.helped, r.Helped, "helped")
			assert.Equal(t, test.room, r.Room, "room")
			assert.Equal(t, test.shapes, abbreviated(r.Shapes, test.in.Offers))
			unhelped := map[string]string{}
			for _, u := range r.Unhelped {
				unhelped[u.Pod] = u.Reason
			}
			if len(test.unhelped)+len(unhelped) > 0 {
				assert.Equal(t, test.unhelped, unhelped)
			}
		})
	}
}
