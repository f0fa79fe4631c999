package scheduling

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

// refused makes pods unschedulable since some time after noon, because all nodes are predicted to use too much.
func refused(in []cluster.Pending, since time.Duration) []cluster.Pending {
	for i := range in {
		in[i].Filtered, in[i].Since = true, after(since)
	}
	return in
}

// waits does the same for pods that are unschedulable for another reason.
func waits(in []cluster.Pending, since time.Duration) []cluster.Pending {
	in = refused(in, since)
	for i := range in {
		in[i].Filtered = false
	}
	return in
}

// joinedAt makes a node have joined some time after noon.
func joinedAt(at time.Duration, n cluster.Node) cluster.Node {
	n.Joined = after(at)
	return n
}

func TestRefusedForLoad(t *testing.T) {
	old := func() cluster.Node { return joinedAt(0, node("old", "a", bound("db", "1"))) }
	for name, test := range map[string]struct {
		in                   Input
		nodes, room, refused int
		unhelped             int
	}{
		"a node that was there has no room": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old()}}, nodes: 1, refused: 1},
		"for others it has": {in: Input{Pods: waits(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old()}}, room: 1},
		"one node for as many as it holds": {in: Input{Pods: refused(pods("web", 4), time.Minute),
			Nodes: []cluster.Node{old()}}, nodes: 1, refused: 4},
		"one that joined later has room": {in: Input{Pods: refused(pods("web", 3), time.Minute),
			Nodes: []cluster.Node{old(), joinedAt(2*time.Minute, node("new", "a", bound("db", "1")))}}, room: 3, refused: 3},
		"one of the same second has": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{joinedAt(time.Minute, node("new", "a", bound("db", "1")))}}, room: 1},
		"one that joined later and is full": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old(), joinedAt(2*time.Minute, node("new", "a", bound("db", "4")))}}, nodes: 1, refused: 1},
		"one on its way has room": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old()}, OnTheWay: []fleet.Placement{{Zone: "a", InstanceType: "m"}}}, refused: 1},
		"an empty one has": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old(), joinedAt(0, node("empty", "a"))}}, room: 1, refused: 1},
		"one with a pod of a DaemonSet has": {in: Input{Pods: refused(pods("web", 1), time.Minute),
			Nodes: []cluster.Node{old(), joinedAt(0, ofDaemonSets(node("empty", "a", bound("agent", "1"))))}}, room: 1,
			refused: 1},
		"an empty one that is too small has not": {in: Input{Pods: refused(pods("web", 1, requests("cpu", "4")), time.Minute),
			Nodes: []cluster.Node{old(), joinedAt(0, ofDaemonSets(node("empty", "a", bound("agent", "1"))))}}, nodes: 1,
			refused: 1},
		"some since before and some since after": {in: Input{Pods: all(refused(pods("early", 1), time.Minute),
			refused(pods("late", 1), 3*time.Minute)),
			Nodes: []cluster.Node{old(), joinedAt(2*time.Minute, node("new", "a", bound("db", "1")))}},
			nodes: 1, room: 1, refused: 2},
		"alike, but refused since different times": {in: Input{Pods: all(refused(pods("web", 1), time.Minute),
			refused(pods("web", 2)[1:], 3*time.Minute), waits(pods("web", 3)[2:], 3*time.Minute)),
			Nodes: []cluster.Node{old(), joinedAt(2*time.Minute, node("new", "a", bound("db", "1")))}},
			nodes: 1, room: 2, refused: 2},
		"no new one could run it": {in: Input{Pods: refused(pods("web", 1, requests("cpu", "9")), time.Minute),
			Nodes: []cluster.Node{old()}}, unhelped: 1},
		"of a DaemonSet": {in: Input{Pods: refused(pods("web", 1, func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind = "DaemonSet"
		}), time.Minute), Nodes: []cluster.Node{old()}}, unhelped: 1},
		"each on its own host": {in: Input{Pods: refused(pods("web", 2, awayFrom("web", host)), time.Minute),
			Nodes: []cluster.Node{old()}}, nodes: 2, refused: 2},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Offers = []provider.Offer{offer("a", "m"), offer("b", "m")}
			r := Pack(test.in)
			assert.Equal(t, test.nodes, r.Nodes, "nodes")
			assert.Equal(t, test.room, r.Room, "room")
			assert.Equal(t, test.refused, r.Filtered, "refused")
			assert.Len(t, r.Unhelped, test.unhelped)
		})
	}
}

func ofDaemonSets(n cluster.Node) cluster.Node { n.Movable = 0; return n }

// TestARefusedPodGetsOneNode follows one pod from its refusal: it gets one node, and no other one if
// it is refused that as well, whatever runs there.
func TestARefusedPodGetsOneNode(t *testing.T) {
	in := Input{Pods: refused(pods("web", 1), time.Minute), Offers: []provider.Offer{offer("a", "m")}}
	for i := range 3 {
		in.Nodes = append(in.Nodes, joinedAt(0, node("old-"+strconv.Itoa(i), "a", bound("db", "1"))))
	}
	assert.Equal(t, 1, Pack(in).Nodes)
	in.OnTheWay = []fleet.Placement{{Zone: "a", InstanceType: "m"}}
	assert.Equal(t, 0, Pack(in).Nodes)
	in.OnTheWay = nil
	for _, runs := range [][]*cluster.Pod{nil, {bound("db", "1")}, {bound("db", "3")}} {
		in.Nodes = append(in.Nodes[:3:3], joinedAt(3*time.Minute, node("new", "a", runs...)))
		r := Pack(in)
		assert.Equal(t, []int{0, 1}, []int{r.Nodes, r.Room})
	}
}

// refusedInput is a random cluster whose nodes have joined at different times and whose pods are refused since others.
func refusedInput(seed uint64, rules bool) Input {
	r := rand.New(rand.NewPCG(seed, 4))
	in := randomInput(r, rules)
	for i := range in.Nodes {
		in.Nodes[i].Joined = after(time.Duration(r.IntN(5)) * time.Minute)
	}
	for i := range in.Pods {
		refused(in.Pods[i:i+1], time.Duration(1+r.IntN(5))*time.Minute+time.Second)
	}
	return in
}

// filled returns a cluster without room on existing nodes.
func filled(in Input) Input {
	nodes := make([]cluster.Node, len(in.Nodes))
	for i, n := range in.Nodes {
		n.Requested = n.Requested.DeepCopy()
		n.Requested[corev1.ResourcePods] = n.Object.Status.Allocatable[corev1.ResourcePods]
		nodes[i] = n
	}
	in.Nodes = nodes
	return in
}

// Refused pods need at most the nodes that they would need if all existing ones were full. With rules
// between pods one cluster in a thousand is an exception: the places of some pods decide where
// others can run, and how many are helped at all.
func TestRefusedPodsNeedNoMoreThanFullNodesLeave(t *testing.T) {
	fewer, none := 0, 0
	for seed := range uint64(500) {
		in := refusedInput(seed, false)
		got, bound := Pack(in), Pack(filled(in))
		require.LessOrEqual(t, got.Nodes, bound.Nodes, "seed %d", seed)
		require.LessOrEqual(t, got.Filtered, len(in.Pods))
		if got.Nodes < bound.Nodes {
			fewer++
		}
		if bound.Nodes == 0 {
			none++
		}
	}
	assert.Positive(t, fewer, "nodes that joined later are never used")
	assert.Less(t, none, 250)
}

// Refused pods get the nodes that they request once: when these have joined, no more follow.
func TestRefusedPodsAskOnce(t *testing.T) {
	examined := 0
	for seed := range uint64(500) {
		in := refusedInput(seed, seed%2 == 0)
		p := packed(in)
		for i, at := range p.nodes.open {
			if at.kind == existing {
				continue
			}
			n := joinedAt(time.Hour, node("new-"+strconv.Itoa(i), at.node.Labels[zone]))
			n.Object.Labels[corev1.LabelInstanceTypeStable] = p.nodes.catalog.shapes[at.shape].offer.InstanceType
			n.Object.Status.Allocatable = p.nodes.catalog.shapes[at.shape].offer.Allocatable
			in.Nodes = append(in.Nodes, n)
			examined++
		}
		in.OnTheWay = nil
		require.Zero(t, Pack(in).Nodes, "seed %d", seed)
	}
	assert.Positive(t, examined)
}
