package poolbench

import (
	"context"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	podsOnNode = 30
	apps       = 300
	teams      = 40
)

// crowd is a large cluster whose nodes are all one pool's: 30 pods on each, of 300 applications with a
// PodDisruptionBudget each.
type crowd struct {
	nodes, pending int
	light          bool // the pods that run request little
	born           time.Time
}

var zones = []string{"eu-central-1a", "eu-central-1b", "eu-central-1c"}

func (c crowd) placement(i int) fleet.Placement {
	market := fleet.Spot
	if i%3 == 0 {
		market = fleet.OnDemand
	}
	zone := zones[i%len(zones)]
	return fleet.Placement{Zone: zone, Subnet: "subnet-" + zone, InstanceType: instanceType, Market: market}
}

func (c crowd) instance(i int) fleet.Instance {
	p := c.placement(i)
	id := fmt.Sprintf("i-%017x", i)
	return fleet.Instance{
		ID: id, ProviderID: "aws:///" + p.Zone + "/" + id, Action: fmt.Sprintf("up-%d",
			i/4), Slot: i % 4, Token: fmt.Sprintf("token-%d", i),
		Placement: p, State: fleet.Running, Launched: c.born,
	}
}

func (c crowd) node(i int) *corev1.Node {
	name, zone := fmt.Sprintf("ip-10-0-%d-%d", i/250, i%250), c.placement(i).Zone
	conditions := []corev1.NodeCondition{}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		conditions = append(conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse,
			LastTransitionTime: metav1.NewTime(c.born)})
	}
	conditions = append(conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(c.born)})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name),
			CreationTimestamp: metav1.NewTime(c.born), Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-central-1",
				corev1.LabelInstanceTypeStable: instanceType, corev1.LabelOSStable: "linux",
				corev1.LabelArchStable: "amd64",
				"foresail.dev/pool":    poolName,
			}},
		Spec: corev1.NodeSpec{ProviderID: c.instance(i).ProviderID},
		Status: corev1.NodeStatus{
			Allocatable: largeShape, Capacity: largeShape, Conditions: conditions,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
				Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, {Type: corev1.NodeHostName, Address: name}},
		},
	}
}

// largeShape leaves no room beside the pods of a node.
var largeShape = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("15890m"), corev1.ResourceMemory: resource.MustParse("60Gi"),
	corev1.ResourcePods: resource.MustParse("110"),
}

// lightRequests are those of pods of which thirty take a fifth of a node.
var lightRequests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
	corev1.ResourceMemory: resource.MustParse("256Mi")}

// bound is pod i of those that run, the k-th time that it is told.
func (c crowd) bound(i, k int) *corev1.Pod {
	p := c.pod(fmt.Sprintf("app-%d-6d4cf56db6-%06d", i%apps, i), i%apps)
	if c.light {
		p.Spec.Containers[0].Resources.Requests = lightRequests
	}
	p.ResourceVersion = fmt.Sprint(k + 2)
	p.Spec.NodeName = fmt.Sprintf("ip-10-0-%d-%d", i%c.nodes/250, i%c.nodes%250)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(c.born)},
	}}
	return p
}

func (c crowd) pod(name string, app int) *corev1.Pod {
	label := fmt.Sprintf("app-%d", app)
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d",
				app%teams), Name: name, UID: types.UID("pod-" + name), CreationTimestamp: metav1.NewTime(c.born),
			Labels: map[string]string{"app.kubernetes.io/name": label, "pod-template-hash": "6d4cf56db6",
				"tier": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
				Name: label + "-6d4cf56db6", UID: types.UID("owner-" + label), Controller: &controller}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/shop/app:1.27.4",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}}}}},
	}
}

// waiting is pod i of those that no node takes: of five applications, of which one spreads over
// zones and one over nodes.
func (c crowd) waiting(i int) *corev1.Pod {
	app := i % 5
	p := c.pod(fmt.Sprintf("app-%d-6d4cf56db6-waits-%04d", app, i), app)
	alike := &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", app)}}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(500*(app+1)),
		resource.DecimalSI)
	switch app {
	case 1:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: alike,
		}}
	case 2:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: alike,
		}}}}
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.NewTime(c.born),
	}}}
	return p
}

func (c crowd) budget(app int) policyv1.PodDisruptionBudget {
	most := intstr.FromInt32(1)
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", app%teams), Name: fmt.Sprintf("app-%d", app)},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", app)},
		}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(app % 2)},
	}
}

// client tells of the crowd what is listed, made while it is told so that nothing of it is held
// here. Changes of pods are told by the watch that it returns.
func (c crowd) client() (*fake.Clientset, *watch.RaceFreeFakeWatcher) {
	client := fake.NewClientset()
	lists := map[string]func() runtime.Object{
		"nodes": func() runtime.Object {
			list := &corev1.NodeList{Items: make([]corev1.Node, 0, c.nodes)}
			for i := range c.nodes {
				list.Items = append(list.Items, *c.node(i))
			}
			return list
		},
		"pods": c.podList,
		"poddisruptionbudgets": func() runtime.Object {
			list := &policyv1.PodDisruptionBudgetList{}
			for i := range apps {
				list.Items = append(list.Items, c.budget(i))
			}
			return list
		},
	}
	changes := watch.NewRaceFreeFake()
	for what, list := range lists {
		client.PrependReactor("list", what, func(clienttesting.Action) (bool, runtime.Object,
			error) {
			return true, list(), nil
		})
	}
	client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface,
		error) {
		return true, changes, nil
	})
	return client, changes
}

func (c crowd) podList() runtime.Object {
	list := &corev1.PodList{Items: make([]corev1.Pod, 0, c.nodes*podsOnNode+c.pending)}
	list.ResourceVersion = "1"
	for i := range c.nodes * podsOnNode {
		list.Items = append(list.Items, *c.bound(i, 0))
	}
	for i := range c.pending {
		list.Items = append(list.Items, *c.waiting(i))
	}
	return list
}

// cloud is the one that the crowd's instances are in. Nothing is launched or terminated there.
type cloud struct {
	provider.Provider
	instances []fleet.Instance
	offers    []provider.Offer
}

func (c crowd) cloud() *cloud {
	out := &cloud{}
	for i := range c.nodes {
		out.instances = append(out.instances, c.instance(i))
	}
	for _, kind := range []string{instanceType, "m5a.xlarge", "m6i.xlarge"} {
		for _, zone := range zones {
			out.offers = append(out.offers, provider.Offer{
				Offer: fleet.Offer{Zone: zone, Subnet: "subnet-" + zone, InstanceType: kind}, Allocatable: largeShape,
				Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: kind,
					corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
			})
		}
	}
	return out
}

func (c *cloud) List(context.Context) ([]fleet.Instance, error) {
	return append([]fleet.Instance(nil), c.instances...), nil
}

func (c *cloud) Offers(context.Context) ([]provider.Offer, error) { return c.offers, nil }
