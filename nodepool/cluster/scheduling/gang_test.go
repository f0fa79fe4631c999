package scheduling

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// A gang whose leader needs a type without capacity gets no nodes for its workers, until the leader has a node.
func TestGangsWaitForCapacity(t *testing.T) {
	small, large := offer("a", "m"), offer("a", "g", "gpu", "2")
	short := map[fleet.Offer]bool{large.Offer: true}
	leader := func() []cluster.Pending { return pods("leader", 1, requests("cpu", "500m", "gpu", "1")) }
	workers := func() []cluster.Pending { return pods("worker", 8) }
	job := func() []cluster.Pending { return gang(all(leader(), workers())) }
	names := []string{
		"default/worker-0", "default/worker-1", "default/worker-2", "default/worker-3",
		"default/worker-4", "default/worker-5", "default/worker-6", "default/worker-7",
	}
	for name, test := range map[string]struct {
		in                                                    Input
		nodes, helped, room, noCapacity, noCapacityNodes, new int
		beyond                                                []string
	}{
		"with capacity": {in: Input{Pods: job()}, nodes: 3, helped: 9, new: 9},
		"the leader's type has none": {
			in: Input{Pods: job(), Cooling: short, Refused: short}, nodes: 1, helped: 9,
			noCapacity: 9, noCapacityNodes: 1, new: 1,
			beyond: append([]string{"default/leader-0"}, names...),
		},
		"the leader's type is tried again": {
			in: Input{Pods: job(), Refused: short}, nodes: 1, helped: 9, noCapacity: 9, noCapacityNodes: 1, new: 1,
			beyond: append([]string{"default/leader-0"}, names...),
		},
		"the leader's node is on its way": {
			in:    Input{Pods: job(), Refused: short, OnTheWay: []fleet.Placement{{Zone: "a", InstanceType: "g"}}},
			nodes: 2, helped: 9, new: 8,
		},
		"the others have room": {
			in:    Input{Pods: job(), Refused: short, Nodes: []cluster.Node{node("n1", "a"), node("n2", "a")}},
			nodes: 1, helped: 9, room: 8, noCapacity: 1, noCapacityNodes: 1, new: 1, beyond: []string{"default/leader-0"},
		},
		"other pods are no part of it": {
			in: Input{Pods: all(job(), pods("web", 4)), Refused: short}, nodes: 2, helped: 13, noCapacity: 9, new: 5,
			beyond: append([]string{"default/leader-0"}, names...),
		},
		"pods without a gang get what there is": {
			in: Input{Pods: all(leader(), workers()), Refused: short}, nodes: 3, helped: 9, noCapacity: 1, new: 9,
			beyond: []string{"default/leader-0"},
		},
		"it would need more nodes than there may be": {in: Input{Pods: job(), Refused: short, MaxNodes: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Offers = []provider.Offer{small, large}
			r := Pack(test.in)
			assert.Equal(t, test.nodes, r.Nodes, "nodes")
			assert.Equal(t, test.helped, r.Helped, "helped")
			assert.Equal(t, test.room, r.Room, "room")
			assert.Equal(t, test.noCapacity, r.NoCapacity, "without capacity")
			assert.Equal(t, test.noCapacityNodes, r.NoCapacityNodes, "their nodes")
			assert.Len(t, r.New, test.new, "with a new node")
			assert.Equal(t, test.beyond, r.Beyond)
			assert.Len(t, test.in.Pods, r.Helped+len(r.Unhelped))
		})
	}
}
