package scheduling

import (
	"maps"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

const gpu = "nvidia.com/gpu"

// having adds to what pods can use of a node.
func having(n cluster.Node, more ...string) cluster.Node {
	maps.Copy(n.Object.Status.Allocatable, list(more...))
	return n
}

func unlabelled(n cluster.Node) cluster.Node {
	delete(n.Object.Labels, zone)
	return n
}

// A node that is Ready within its time to join takes the pods that it will take once it is initialized, and no others.
func TestNodesThatJoin(t *testing.T) {
	agent, dedicated := corev1.Taint{Key: "ebs.csi.aws.com/agent-not-ready", Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	startup := Template{StartupTaints: []corev1.Taint{agent}}
	taints := func(n cluster.Node, all ...corev1.Taint) cluster.Node {
		n.Object.Spec.Taints = all
		return n
	}
	gpus := []provider.Offer{offer("a", "g", gpu, "2"), offer("b", "g", gpu, "2")}
	aGPU := requests("cpu", "1", gpu, "1")
	for name, test := range map[string]struct {
		in     Input
		joined fleet.Placement // of the node n1; none = its time is over
		nodes  int
		room   int
		helped int
	}{
		"startup taint": {in: Input{Pods: pods("web", 5), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), agent)}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 5},
		"startup taint, time over": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), agent)}}, nodes: 1, helped: 4},
		"of another value": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), corev1.Taint{Key: agent.Key, Value: "true", Effect: agent.Effect})}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, helped: 4},
		"of another effect": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), corev1.Taint{Key: agent.Key, Effect: corev1.TaintEffectNoSchedule})}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},
		"with another taint": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), agent, dedicated)}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},
		"taints of Kubernetes": {in: Input{Pods: pods("web", 4), Nodes: []cluster.Node{taints(node("n1", "a"),
			corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true",
				Effect: corev1.TaintEffectNoSchedule})}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, helped: 4},
		"readiness taint": {in: Input{Pods: pods("web", 4), Nodes: []cluster.Node{taints(node("n1", "a"),
			corev1.Taint{Key: "readiness.k8s.io/network", Value: "pending", Effect: corev1.TaintEffectNoSchedule})}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, helped: 4},
		"disk pressure is no such": {in: Input{Pods: pods("web", 4),
			Nodes: []cluster.Node{taints(node("n1", "a"),
				corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule})}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},
		"no zone yet": {in: Input{Pods: pods("web", 4, inZone("b")), Nodes: []cluster.Node{taints(unlabelled(node("n1", "b")),
			corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule})}},
			joined: fleet.Placement{Zone: "b", InstanceType: "m"}, helped: 4},
		"permanently without a zone": {in: Input{Pods: pods("web", 4, inZone("b")),
			Nodes: []cluster.Node{unlabelled(node("n1", "b"))}},
			joined: fleet.Placement{Zone: "b", InstanceType: "m"}, nodes: 1, helped: 4},
		"cordoned": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{cordoned(taints(node("n1", "a"), agent))}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},
		"initialized": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{node("n1", "a")}}, joined: fleet.Placement{Zone: "a", InstanceType: "m"}, room: 4, helped: 4},
		"its pods count": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a", bound("early", "2")), agent)}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},
		"nodes that are there first": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), agent), node("n2", "a")}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, room: 4, helped: 4},
		"DaemonSets that have yet to come": {in: Input{Pods: pods("web", 4), Template: startup,
			Nodes: []cluster.Node{taints(node("n1", "a"), agent)}, DaemonSets: []*appsv1.DaemonSet{daemonSet()}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 4},

		"no device plugin yet": {in: Input{Pods: pods("ml", 2, aGPU), Offers: gpus,
			Nodes: []cluster.Node{node("n1", "a")}}, joined: fleet.Placement{Zone: "a", InstanceType: "g"}, helped: 2},
		"more than it promises": {in: Input{Pods: pods("ml", 3, aGPU), Offers: gpus,
			Nodes: []cluster.Node{node("n1", "a")}}, joined: fleet.Placement{Zone: "a", InstanceType: "g"}, nodes: 1, helped: 3},
		"no device plugin, time over": {in: Input{Pods: pods("ml", 2, aGPU), Offers: gpus,
			Nodes: []cluster.Node{node("n1", "a")}}, nodes: 1, helped: 2},
		"devices that are not healthy yet": {in: Input{Pods: pods("ml", 2, aGPU), Offers: gpus,
			Nodes: []cluster.Node{having(node("n1", "a"), gpu, "0")}},
			joined: fleet.Placement{Zone: "a", InstanceType: "g"}, helped: 2},
		"fewer than promised": {in: Input{Pods: pods("ml", 2, aGPU), Offers: gpus,
			Nodes: []cluster.Node{having(node("n1", "a"), gpu, "1")}}, joined: fleet.Placement{Zone: "a", InstanceType: "g"},
			nodes: 1, room: 1, helped: 2},
		"a type that promises none": {in: Input{Pods: pods("ml", 2, aGPU),
			Offers: append([]provider.Offer{offer("a", "m")}, gpus...), Nodes: []cluster.Node{node("n1", "a")}},
			joined: fleet.Placement{Zone: "a", InstanceType: "m"}, nodes: 1, helped: 2},
		"a type that is not offered any more": {in: Input{Pods: pods("ml", 2, aGPU), Offers: gpus,
			Nodes: []cluster.Node{node("n1", "a")}},
			joined: fleet.Placement{Zone: "a", InstanceType: "old"}, nodes: 1, helped: 2},
		"pods that need no device": {in: Input{Pods: pods("web", 2), Offers: gpus,
			Nodes: []cluster.Node{node("n1", "a")}}, joined: fleet.Placement{Zone: "a", InstanceType: "g"}, room: 2, helped: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if test.in.Offers == nil {
				test.in.Offers = []provider.Offer{offer("a", "m"), offer("b", "m")}
			}
			if test.joined != (fleet.Placement{}) {
				test.in.NewlyReady = map[string]fleet.Placement{"n1": test.joined}
			}
			before := test.in.Nodes[0].Object.DeepCopy()
			r := Pack(test.in)
			assert.Equal(t, test.nodes, r.Nodes, "nodes")
			assert.Equal(t, test.room, r.Room, "room")
			assert.Equal(t, test.helped, r.Helped, "helped")
			assert.Equal(t, before, test.in.Nodes[0].Object, "the input is not changed")
		})
	}
}

// A node that joins may never take pods, so none is drained for it.
func TestNodesThatJoinAreNoPlaces(t *testing.T) {
	agent := []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoSchedule}}
	for name, added := range map[string][]fleet.Placement{"alone": nil,
		"with a new one": {{Zone: "b", InstanceType: "m"}}} {
		h := simulatorOf(t, 2, running("p", "n0", inZone("a")), running("q", "n1"))
		h.world.Template.StartupTaints, h.world.NewlyReady = agent, map[string]fleet.Placement{}
		for i := range h.cluster.Nodes {
			if n := &h.cluster.Nodes[i]; n.Object.Name == "n1" {
				n.Object.Labels[zone], n.Object.Spec.Taints = "a", agent
				h.world.NewlyReady["n1"] = fleet.Placement{Zone: "a", InstanceType: "m"}
			}
		}
		assert.NotEmpty(t, h.Without([]string{"n0"}, false, added...), name)
	}
}
