package scheduling

import (
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// honor makes a spread ignore nodes whose taints a pod does not tolerate.
func honor(p *corev1.Pod) {
	policy := corev1.NodeInclusionPolicyHonor
	for i := range p.Spec.TopologySpreadConstraints {
		p.Spec.TopologySpreadConstraints[i].NodeTaintsPolicy = &policy
	}
}

// budget is a PodDisruptionBudget that allows a number of disruptions.
func budget(app string, allowed int32) runtime.Object {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// Pods have a place at once, or once the nodes that they leave are deleted, or none. "" in at and late means that
// all have one.
func TestHomesOfPodsThatWait(t *testing.T) {
	apart := spreadOver(host, 1)
	const waits = "another node could run its pod default/w0 only after this one is deleted: its topologySpreadConstraint over kubernetes.io/hostname counts that node until then, unless it sets nodeTaintsPolicy: Honor"
	const never = "no other node could run its pod default/w0"
	const stuck = "its pods such as default/w0 would wait until the node is deleted, and PodDisruptionBudget default/w allows 1 disruptions, so the drain would not end: its topologySpreadConstraint over kubernetes.io/hostname counts that node until then, unless it sets nodeTaintsPolicy: Honor"
	one := []fleet.Placement{{Zone: "a", InstanceType: "m"}}
	for name, test := range map[string]struct {
		nodes    int
		objects  []runtime.Object
		added    []fleet.Placement
		at, late string
	}{
		"one on each host": {3, []runtime.Object{running("w0", "n0", apart), running("w1", "n1", apart),
			running("w2", "n2", apart)}, nil, waits, ""},
		"one on each host, taints honoured": {3,
			[]runtime.Object{running("w0", "n0", apart, honor), running("w1", "n1", apart, honor),
				running("w2", "n2", apart, honor)},
			nil, "", ""},
		"one on each host, with a new one": {3,
			[]runtime.Object{running("w0", "n0", apart), running("w1", "n1", apart), running("w2", "n2", apart)}, one, "", ""},
		"a host without one": {4,
			[]runtime.Object{running("w0", "n0", apart), running("w1", "n1", apart), running("w2", "n2", apart)}, nil, "", ""},
		"two on each host, with a new one": {2,
			[]runtime.Object{running("w0", "n0", apart), running("w1", "n0", apart), running("w2", "n1", apart),
				running("w3", "n1", apart)}, one,
			"another node could run its pod default/w1 only after this one is deleted: its topologySpreadConstraint over kubernetes.io/hostname counts that node until then, unless it sets nodeTaintsPolicy: Honor", ""},
		"no room even then": {2, []runtime.Object{running("w0", "n0", apart), running("x0", "n1", requests("cpu", "4"))}, nil,
			never, never},
		"two wait, and one may be away": {2,
			[]runtime.Object{budget("w", 1), running("w0", "n0", apart), running("w1", "n0", apart),
				running("w2", "n1", apart), running("w3", "n1", apart)},
			nil, waits, stuck},
		"two wait, and two may be away": {2,
			[]runtime.Object{budget("w", 2), running("w0", "n0", apart), running("w1", "n0", apart),
				running("w2", "n1", apart), running("w3", "n1", apart)},
			nil, waits, ""},
		"one waits, and one may be away": {3,
			[]runtime.Object{budget("w", 1), running("w0", "n0", apart), running("w1", "n1", apart), running("w2", "n2", apart)},
			nil, waits, ""},
		"kept away by a DaemonSet of the node": {3, []runtime.Object{
			running("w0", "n0", awayFrom("d", zone)),
			running("d0", "n0", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }),
			running("x0", "n1", requests("cpu", "4")),
		}, nil, "another node could run its pod default/w0 only after this one is deleted: pods that stay on that node keep it away until then", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := simulatorOf(t, test.nodes, test.objects...)
			assert.Equal(t, test.at, h.Without([]string{"n0"}, false, test.added...), "at once")
			assert.Equal(t, test.late, h.Without([]string{"n0"}, true, test.added...), "once the node is deleted")
		})
	}
}

// A pod that only waits for the end of a node gets no new one.
func TestPodsThatWaitForTheEndOfANodeNeedNone(t *testing.T) {
	nodes := func(leaving bool) []cluster.Node {
		n1 := node("n1", "a")
		n1.Leaving = leaving
		return []cluster.Node{n1, node("n2", "a", bound("web", "1"))}
	}
	in := Input{Pods: pods("web", 1, spreadOver(host, 1)), Nodes: nodes(true), Offers: []provider.Offer{offer("a", "m")}}
	r := Pack(in)
	require.Equal(t, []int{0, 1, 1, 0}, []int{r.Nodes, r.Helped, r.Waiting, r.Room})
	require.InDelta(t, 0.25, r.CPU, 1e-9, "it is load all the same")

	in.Nodes[1] = node("n2", "a", bound("web", "1"), bound("db", "3"))
	r = Pack(in)
	require.Equal(t, []int{1, 1, 0, 0}, []int{r.Nodes, r.Helped, r.Waiting, r.Room}, "there is no room even then")

	in.Nodes[1] = node("n2", "a", bound("web", "1"), bound("db", "2"))
	in.Displaced = []Displaced{{Pending: pods("db", 1)[0], Node: "n1"}}
	r = Pack(in)
	require.Equal(t, []int{1, 1, 0, 0}, []int{r.Nodes, r.Helped, r.Waiting, r.Room},
		"the room is for a pod of the node that leaves")

	in.Nodes, in.Displaced = nodes(false), nil
	in.Nodes[0].Object.Spec.Unschedulable = true
	r = Pack(in)
	require.Equal(t, 1, r.Nodes, "a node that is only cordoned may stay so")
	in.Leaving = map[string]bool{"n1": true}
	require.Zero(t, Pack(in).Nodes)
}

// A pod does not wait for a node that makes no progress. The pods on that node keep the room
// that they will need, and get no new node.
func TestPodsDoNotWaitForStalledNodes(t *testing.T) {
	leaves := node("n1", "a", bound("db", "1"))
	leaves.Leaving, leaves.EmptierAt = true, noon
	in := Input{
		Pods: pods("web", 1, spreadOver(host, 1)), Nodes: []cluster.Node{leaves, node("n2", "a", bound("web", "1"))},
		Offers: []provider.Offer{offer("a", "m")}, Now: noon.Add(14 * time.Minute),
		Displaced: []Displaced{{Pending: pods("db", 1)[0], Node: "n1"}},
	}
	r := Pack(in)
	require.Equal(t, []int{0, 1, 1}, []int{r.Nodes, r.Helped, r.Waiting})
	in.Now = noon.Add(15 * time.Minute)
	r = Pack(in)
	require.Equal(t, []int{1, 1, 0}, []int{r.Nodes, r.Helped, r.Waiting})

	in.Nodes[1] = node("n2", "a", bound("web", "4"))
	in.Pods = nil
	require.Zero(t, Pack(in).Nodes)
	in.Pods = pods("web", 1)
	require.Equal(t, 1, Pack(in).Nodes, "not two: the pod of the leaving node may stay where it is")
}

// The nodes that pods of replaced nodes will need are no demand, and their shapes are known.
func TestNodesInPlaceOfOthers(t *testing.T) {
	displaced := func(all []cluster.Pending) []Displaced {
		var out []Displaced
		for _, p := range all {
			out = append(out, Displaced{Pending: p, Node: "n1", Replaced: true})
		}
		return out
	}
	in := Input{
		Nodes:     []cluster.Node{node("n1", "b"), node("n2", "a", bound("db", "3"))},
		Offers:    []provider.Offer{offer("a", "m"), offer("b", "m"), offer("b", "g", "gpu", "1")},
		Leaving:   map[string]bool{"n1": true},
		Displaced: displaced(all(located(pods("data", 1), zone, "b"), pods("gpu", 1, requests("gpu", "1")), pods("web", 5))),
	}
	r := Pack(in)
	assert.True(t, r.Known)
	assert.Zero(t, r.Nodes+r.Helped)
	assert.Equal(t, []short{{Zone: "b", InstanceType: "g", Nodes: 1}}, abbreviated(r.Replacing, in.Offers), "for both")

	in.Displaced = displaced(pods("web", 5))
	assert.Empty(t, Pack(in).Replacing, "any node will do")
	in.Displaced = displaced(located(pods("data", 1), zone, "a"))
	assert.Empty(t, Pack(in).Replacing, "it has another node")
	in.Displaced = displaced(located(pods("data", 1), zone, "b"))
	in.Pods = located(pods("pending", 1), zone, "b")
	r = Pack(in)
	assert.Equal(t, 1, r.Nodes)
	assert.Equal(t, []short{{Zone: "b", Nodes: 1}}, abbreviated(r.Replacing, in.Offers),
		"in addition to that of the pending pod")

	for i := range in.Displaced {
		in.Displaced[i].Replaced = false
	}
	assert.Empty(t, Pack(in).Replacing, "nothing is launched in place of its node")
	in.Offers, in.Pods = nil, nil
	assert.Equal(t, Result{Known: true}, Pack(in))
}
