package scheduling

import (
	"fmt"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	storagevolume "k8s.io/component-helpers/storage/volume"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// simulatorOf returns the simulator of a cluster of n nodes of 4 CPUs, n0 to nN, half of them in each of
// two zones, with further objects.
func simulatorOf(t *testing.T, n int, objects ...runtime.Object) *Simulator {
	t.Helper()
	for i := range n {
		object := node(fmt.Sprint("n", i), string(rune('a'+i%2))).Object
		object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		objects = append(objects, object)
	}
	c, err := cluster.List(t.Context(), fake.NewClientset(objects...), noon)
	require.NoError(t, err)
	return NewSimulator(c, Input{Offers: []provider.Offer{offer("a", "m"), offer("b", "m")}})
}

// running is a pod of one CPU on a node, changed.
func running(name, node string, changes ...change) runtime.Object {
	p := pods(name[:1], 1, changes...)[0].Pod
	p.Name, p.Spec.NodeName, p.Status.Phase = name, node, corev1.PodRunning
	return p
}

// TestPlacesOnNewNodes: with a new node, pods have places that they would not have without, but
// only if they fit on it.
func TestPlacesOnNewNodes(t *testing.T) {
	added := fleet.Placement{Zone: "a", InstanceType: "m"}
	full := func(c ...change) []runtime.Object {
		var out []runtime.Object
		for i := range 8 {
			out = append(out, running(fmt.Sprint("p", i), fmt.Sprint("n", i%2), c...))
		}
		return out
	}
	h := simulatorOf(t, 2, full()...)
	require.NotEmpty(t, h.Without([]string{"n0"}, false), "the other is full")
	require.Empty(t, h.Without([]string{"n0"}, false, added))
	require.NotEmpty(t, h.Without([]string{"n0", "n1"}, false, added), "one has no room for both")
	require.Empty(t, h.Without([]string{"n0", "n1"}, false, added, added))
	require.NotEmpty(t, h.Without([]string{"n0"}, false), "what was asked before is not mixed up")

	h = simulatorOf(t, 2, full(inZone("b"))...)
	require.NotEmpty(t, h.Without([]string{"n1"}, false, added), "they must be in another zone")
	require.Empty(t, h.Without([]string{"n1"}, false, fleet.Placement{Zone: "b", InstanceType: "m"}))
	require.NotEmpty(t, NewSimulator(h.cluster, Input{}).Without([]string{"n1"}, false, added),
		"it is not known what new nodes are")
}

// devices makes a pod claim a device.
func devices(p *corev1.Pod) {
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
}

// TestPodsWithDevicesKeepTheirNode: whether another node has devices is unknown, for existing nodes and for
// new ones.
func TestPodsWithDevicesKeepTheirNode(t *testing.T) {
	h := simulatorOf(t, 3, running("a", "n0", devices), running("b", "n1"))
	const want = "its pod default/a could run nowhere: it claims devices (spec.resourceClaims), and Foresail does not know which nodes have any"
	require.Equal(t, want, h.Without([]string{"n0"}, false))
	require.Equal(t, want, h.Without([]string{"n0"}, false, fleet.Placement{Zone: "a", InstanceType: "m"}))
	require.Empty(t, h.Without([]string{"n1"}, false))
	waiting := pods("w", 1)
	waiting[0].Stuck = "it claims devices"
	h = NewSimulator(h.cluster, Input{Pods: waiting})
	require.Empty(t, h.Without([]string{"n1"}, false), "what waits for devices keeps no node")
}

// TestPodsWithDevicesAskForNoNode: a node of the pool might have no devices, and then another would follow it.
func TestPodsWithDevicesAskForNoNode(t *testing.T) {
	waiting := func(changes ...change) runtime.Object {
		p := pods("w", 1, changes...)[0].Pod
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
		return p
	}
	pack := func(p runtime.Object) Result {
		c, err := cluster.List(t.Context(), fake.NewClientset(p), noon)
		require.NoError(t, err)
		require.Len(t, c.Pending, 1)
		return Pack(Input{Pods: c.Pending, Nodes: c.Nodes, Offers: []provider.Offer{offer("a", "m")}})
	}
	require.Equal(t, 1, pack(waiting()).Nodes)
	r := pack(waiting(devices))
	require.Zero(t, r.Nodes)
	require.Zero(t, r.CPU, "it is not forecast as load either")
	require.Equal(t, []fleet.Unhelped{{Pod: "default/w-0",
		Reason: "it claims devices (spec.resourceClaims), and Foresail does not know which nodes have any"}}, r.Unhelped)
}

// claims makes a pod use the volume of the claim that volume returns.
func claims(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
}

// volume returns a claim and the volume that it is bound to, which is on nodes with a label.
func volume(key, value string) []runtime.Object {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data",
		Annotations: map[string]string{storagevolume.AnnBindCompleted: "yes"}}}
	claim.Spec.VolumeName = "v"
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn,
				Values: []string{value}}}}}}}
	return []runtime.Object{claim, v}
}

func TestSimulator(t *testing.T) {
	apart, over := awayFrom("w", corev1.LabelHostname), spreadOver(corev1.LabelTopologyZone, 1)
	with := func(more []runtime.Object, objects ...runtime.Object) []runtime.Object {
		return append(more, objects...)
	}
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
	for name, test := range map[string]struct {
		nodes   int
		objects []runtime.Object
		without []string
		want    string
	}{
		"nothing runs":  {2, nil, []string{"n0"}, ""},
		"there is room": {2, []runtime.Object{running("w0", "n0"), running("w1", "n1")}, []string{"n0"}, ""},
		"there is none": {2, []runtime.Object{running("w0", "n0", requests("cpu", "3")),
			running("w1", "n1", requests("cpu", "2"))}, []string{"n0"},
			"no other node could run its pod default/w0"},
		"room for one of two nodes": {3,
			[]runtime.Object{running("w0", "n0", requests("cpu", "3")), running("w1", "n1", requests("cpu", "3"))},
			[]string{"n0"}, ""},
		"not for both": {3, []runtime.Object{running("w0", "n0", requests("cpu", "3")),
			running("w1", "n1", requests("cpu", "3"))}, []string{"n0", "n1"},
			"no other node could run its pod default/w1"},
		"replicas keep apart, and each node has one": {3,
			[]runtime.Object{running("w0", "n0", apart), running("w1", "n1", apart), running("w2", "n2", apart)}, []string{"n1"},
			"no other node could run its pod default/w1"},
		"replicas keep apart, and a node has none": {4,
			[]runtime.Object{running("w0", "n0", apart), running("w1", "n1", apart), running("w2", "n2", apart)},
			[]string{"n1"}, ""},
		"a node is selected that leaves": {3,
			[]runtime.Object{running("w0", "n0", selects(corev1.LabelHostname, "n0"))}, []string{"n0"},
			"no other node could run its pod default/w0"},
		"its zone is selected": {3,
			[]runtime.Object{running("w0", "n0", inZone("a"))}, []string{"n0"}, ""},
		"its zone is selected, and has no other": {2, []runtime.Object{running("w0", "n0", inZone("a"))}, []string{"n0"},
			"no other node could run its pod default/w0"},
		"its volume is on the node": {3, with(volume(corev1.LabelHostname, "n0"), running("w0", "n0", claims)),
			[]string{"n0"}, "no other node could run its pod default/w0"},
		"its volume is in the zone": {3,
			with(volume(corev1.LabelTopologyZone, "a"), running("w0", "n0", claims)), []string{"n0"}, ""},
		"one that may run anywhere leaves room for one that may not": {3, with(volume(corev1.LabelHostname, "n1"),
			running("a0", "n0", requests("cpu", "4")), running("w0", "n0", claims), running("x0", "n1", requests("cpu", "0"))),
			[]string{"n0"}, ""},
		"a host port": {2,
			[]runtime.Object{running("w0", "n0", hostPort(80)), running("w1", "n1", hostPort(80))}, []string{"n0"},
			"no other node could run its pod default/w0"},
		"a spread over zones": {3,
			[]runtime.Object{running("w0", "n0", over), running("w1", "n1", over)}, []string{"n0"}, ""},
		"a spread over zones, full": {3,
			[]runtime.Object{running("w0", "n0", over), running("w1", "n1", over), running("x0", "n2", requests("cpu", "4"))},
			[]string{"n0"}, "no other node could run its pod default/w0"},
		"an ephemeral volume": {2, []runtime.Object{running("w0", "n0", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch",
				VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		})}, []string{"n0"}, ""},
		"its claim is gone": {3, []runtime.Object{running("w0", "n0", claims)}, []string{"n0"},
			"its pod default/w0 could run nowhere: its claim data does not exist"},
		"a pod of a DaemonSet": {1, []runtime.Object{running("w0", "n0", daemon)}, []string{"n0"}, ""},
		"a pod that leaves": {1,
			[]runtime.Object{running("w0", "n0", func(p *corev1.Pod) {
				p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{"x"}
			})}, []string{"n0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, simulatorOf(t, test.nodes, test.objects...).Without(test.without, false))
		})
	}
}

// Nodes that take no pods are no places for pods.
func TestHomesAreNodesThatTakePods(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"not Ready": func(n *corev1.Node) { n.Status.Conditions = nil },
		"cordoned":  func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"tainted": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := simulatorOf(t, 2, running("w0", "n0"))
			require.Empty(t, h.Without([]string{"n0"}, false))
			h = simulatorOf(t, 2, running("w0", "n0"))
			other := h.cluster.Nodes[1].Object
			change(other)
			h.cluster.Nodes[1].Ready = len(other.Status.Conditions) > 0
			assert.NotEmpty(t, h.Without([]string{"n0"}, false))
		})
	}
}

// A pod that waits for its claim keeps no room, and no node: that none could run it says nothing of the pods of a node.
func TestPodsThatAreStuckReserveNothing(t *testing.T) {
	stuck := pods("s", 1)[0]
	stuck.Stuck = "its claim data does not exist"
	waits := pods("x", 1, requests("cpu", "2"))[0]
	h := simulatorOf(t, 2, running("w0", "n0", requests("cpu", "3")))
	h = NewSimulator(h.cluster, Input{Pods: []cluster.Pending{stuck}})
	require.Empty(t, h.Without([]string{"n0"}, false))
	h = NewSimulator(h.cluster, Input{Pods: []cluster.Pending{stuck, waits}})
	require.Equal(t, "no other node has room for pod default/x-0, which waits for one",
		h.Without([]string{"n0"}, false), "others keep theirs")
}
