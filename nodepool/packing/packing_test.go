package packing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/world"
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
func pods(app string, n int, changes ...change) []world.Pending {
	var out []world.Pending
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: new(true)}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")}}}
		for _, c := range changes {
			c(p)
		}
		out = append(out, world.Pending{Pod: p})
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
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}},
		}}
	}
}

func term(app, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func awayFrom(app, key string) change {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, key)}}
	}
}

func with(app, key string) change {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, key)}}
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
	o := provider.Offer{Offer: plan.Offer{Zone: zone, InstanceType: kind}, Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "10")}
	for name, quantity := range list(more...) {
		o.Allocatable[name] = quantity
	}
	return o
}

func daemonSet(changes ...change) *appsv1.DaemonSet {
	p := pods("agent", 1, changes...)[0].Pod
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}}}
}

// node is a Ready node of 4 CPUs, 8 GiB and 10 slots in a zone that runs pods which request a CPU and a GiB each.
func node(name, zone string, runs ...*world.Pod) world.Node {
	n := world.Node{Ready: true, Pods: runs, Requested: corev1.ResourceList{}, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux"}}}}
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
func bound(app, cpu string) *world.Pod {
	return &world.Pod{Name: app, Kind: &world.Kind{Namespace: "default", Labels: map[string]string{"app": app}, Requests: list("cpu", cpu, "memory", "1Gi", "pods", "1")}}
}

func keepsAway(p *world.Pod, app, key string) *world.Pod {
	p.AntiAffinity = []corev1.PodAffinityTerm{term(app, key)}
	return p
}

func all(lists ...[]world.Pending) []world.Pending {
	var out []world.Pending
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

const (
	host = corev1.LabelHostname
	zone = corev1.LabelTopologyZone
)

var _ = intstr.FromInt32

func TestPack(t *testing.T) {
	for name, test := range map[string]struct {
		in       Input
		nodes    int
		helped   int
		room     int
		zones    map[string]int
		shapes   []Shape
		unhelped map[string]string
	}{
		"nothing":          {in: Input{Offers: []provider.Offer{offer("a", "m")}}},
		"nothing, unknown": {in: Input{}},
		"one pod":          {in: Input{Pods: pods("web", 1)}, nodes: 1, helped: 1},
		"a node full":      {in: Input{Pods: pods("web", 4)}, nodes: 1, helped: 4},
		"one too many":     {in: Input{Pods: pods("web", 5)}, nodes: 2, helped: 5},
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
			assert.Equal(t, test.zones, r.Zones)
			assert.Equal(t, test.shapes, r.Shapes)
			unhelped := map[string]string{}
			for _, u := range r.Unhelped {
				unhelped[u.Pod] = u.Why
			}
			if len(test.unhelped)+len(unhelped) > 0 {
				assert.Equal(t, test.unhelped, unhelped)
			}
		})
	}
}
