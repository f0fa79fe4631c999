// Package scheduling tells how many new nodes of a pool the pods need that no node takes.
//
// It plays the scheduler: pods of one kind together, those that fit the fewest offers first, then those that keep apart,
// then the largest, each onto the first place that takes it: a node that is there and has room after all (the scheduler
// has not come to it yet, or has a reason of its own), a node on its way, a new node that others need as well, and at last
// one more. What it respects: requests of all resources, slots for pods, host ports, taints, node selectors and required
// node affinity, where volumes are or may be made, required affinity and anti-affinity between pods in both directions, and
// spread constraints that forbid (DoNotSchedule), over any topology whose label is known of the nodes.
//
// What it only comes near to, so that in doubt it asks for no node that might not help:
//   - a selector of namespaces by label is taken for all of them in an anti-affinity and for none in an affinity;
//   - pods are placed one kind after the other, never moved, never preempted;
//   - a volume that is free to be claimed is not used up by the pod that is placed where it is;
//   - pods that claim devices (dynamic resource allocation) are stuck: which nodes have some is not known;
//   - a new node has no label or taint but those of its offer and of the template, and its own name. Whether it is Spot is
//     decided later, so a pod that selects a market by label is helped only if the template has that label.
//
// A pod for which there is room gets no node, however long it waits. The scheduler tries every pod again within five
// minutes, so one that waits for longer is refused for a reason that is not known here. A node for it would be a guess: it
// helps where the reason is one of the node (its fill of volumes), and not where it is one of the pod (a volume or device
// that another pod has, a rule of another scheduler) or of the scheduler (it is down: then all pods wait). Nor is one try
// the end of it: a node that has not helped is empty, is removed as idle, and then there would be the same reason for
// another. So such pods are counted (Result.Room), for people to be told of.
//
// A node that is Ready is not always one that takes pods: an agent has yet to remove a startup taint, or a device plugin to
// register what pods request. While its time to join lasts it counts as on its way. After that it counts as it is.
//
// One reason is known: the scheduler extender refuses a pod all the nodes that there are, because of what these are
// predicted to use. Such a pod finds no room on a node that runs pods and had joined when the pod became unschedulable. It
// does on nodes that joined later or are on their way, and on an empty one, which the extender refuses to nobody for that.
// So refused pods ask for the nodes that they would ask for if all that were there then were full, and once: if they are
// refused by the nodes that came as well, these have room by all that is known here, as above, and none follows them. The
// extender lets such pods pass after some minutes.
package scheduling

import (
	"slices"

	"github.com/foresail/foresail/nodepool/fleet"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// Template is what a new node of the pool comes up with, beside what its offer says.
type Template struct {
	Labels map[string]string
	Taints []corev1.Taint
	// StartupTaints are on a node that joins until an agent on it takes them away.
	StartupTaints []corev1.Taint
}

// Input is what a packing is made from. It is not changed.
type Input struct {
	Pods    []cluster.Pending
	Nodes   []cluster.Node       // all there are; those that are not Ready or are cordoned take no pods
	Offers  []provider.Offer     // types in order of preference; those of unknown size are left out
	Cooling map[fleet.Offer]bool // offers that cannot be launched now: new nodes are of others, as far as these will do
	Refused map[fleet.Offer]bool // offers that could not be launched when they were tried last, those that are cooling included
	// Costs are what an hour of each offer costs, where prices decide: a new node is of the type that costs least for the
	// pods that it would take. One that is missing is not known, and comes after the others. Empty: types go in their order.
	Costs    map[fleet.Offer]float64
	OnTheWay []fleet.Placement // launched nodes that are not Ready yet: they take pods first
	// Joining is what the nodes were launched as, by name, that are Ready within their time to join. One that is not initialized
	// yet counts as on its way: without startup taints, and with what its offer promises.
	Joining map[string]fleet.Placement
	// Leaving are the nodes, by name, that are being emptied and will be deleted, and Displaced the pods that will
	// leave them.
	Leaving   map[string]bool
	Displaced []Displaced
	// AttachLimits are, by instance type, how many volumes of each driver can be attached to a new node.
	AttachLimits map[string]map[string]int
	// MaxNodes is how many nodes can be launched: a gang that needs more gets none. 0 = it is not known, below 0 = none.
	MaxNodes    int
	Template    Template
	DaemonSets  []*appsv1.DaemonSet
	PodsPerNode int // of those without requests of CPU and memory, on a new node; 0 = no limit
}

// Result is what pods need.
type Result struct {
	// Known is false if there are pods, but no offer whose size is known: then nothing else is. Nodes = 0 is not an answer.
	Known  bool
	Nodes  int // new ones, beyond those on their way
	Helped int // pods that a node of the pool could run, those with room elsewhere included
	// Room is the number of pods for which a node that is there has room by all that is known. They need no new one and are
	// told; those that wait for longer than minutes are refused by the scheduler for a reason that is not known here.
	Room       int
	HelpedRoom int // of them, those that are Helped
	// NoCapacity is the number of helped pods that only refused offers could run, beyond the nodes that are there and on their way;
	// NoCapacityNodes is how many of Nodes are for such pods alone. They are no part of CPU, Memory and Slots.
	NoCapacity, NoCapacityNodes int
	Waiting                     int // of the helped pods, those that wait only until nodes which are being emptied are deleted
	// New are pods of which some get a new node, by namespace/name: all of those that are alike.
	New []string
	// Beyond are pods by namespace/name that only refused offers could run, and Added those that go to each of Nodes: a pool that
	// cannot launch these leaves them to another.
	Beyond []string
	Added  [][]string
	// Filtered is the number of helped pods that are refused nodes that there are because of the load predicted of these.
	Filtered int
	// Unhelped are pods that neither a node that is there nor a new one could run, and those that are stuck with their claims.
	Unhelped []fleet.Unhelped
	// Shapes are the new nodes for which not every offer will do: pods could not run on it, or not all of those that are to be
	// on that node.
	Shapes []fleet.Shape
	// CPU, Memory and Slots are the requests of the helped pods as shares of what one node of the pool (that of the first
	// offer, or with Costs the one that they get) can allocate after its DaemonSets: the external demand of forecasts, in node
	// equivalents.
	CPU, Memory, Slots float64
}

// Takes reports whether an empty node of one of the offers could run a pod, as far as other pods do not matter.
func Takes(in Input, pod cluster.Pending) bool {
	in.Pods, in.Nodes, in.Displaced, in.OnTheWay, in.Joining = []cluster.Pending{pod}, nil, nil, nil, nil
	if !slices.ContainsFunc(in.Offers, known) {
		return false
	}
	p := newPacker(in)
	return len(p.groups) == 1 && p.groups[0].hasShape()
}

// Pack returns what pods need. Equal inputs have equal results.
func Pack(in Input) Result {
	if len(in.Pods) == 0 {
		return Result{Known: true}
	}
	if !slices.ContainsFunc(in.Offers, known) {
		return Result{}
	}
	var left []fleet.Unhelped
	for {
		p := newPacker(in)
		p.pack(in.OnTheWay)
		broken := p.brokenGang(in.MaxNodes)
		if broken == "" {
			r := p.result()
			r.Unhelped = append(r.Unhelped, left...)
			slices.SortFunc(r.Unhelped, byPod)
			return r
		}
		in.Pods, left = without(in.Pods, broken, left)
	}
}
