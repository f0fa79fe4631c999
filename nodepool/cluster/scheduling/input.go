package scheduling

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// Input is the cluster and the pool that a question is about. It is not changed.
type Input struct {
	Pods    []cluster.Pending
	Nodes   []cluster.Node       // all that exist; those that are not Ready or are cordoned take no pods
	Offers  []provider.Offer     // types in order of preference; those of unknown size are left out
	Cooling map[fleet.Offer]bool // offers that cannot be launched now: new nodes are of others, as far as these will do
	Refused map[fleet.Offer]bool // offers that could not be launched when they were tried last, all of Cooling included
	// Costs are the prices of an hour of each offer, where prices decide: a new node is of the type
	// that costs least for the pods that it would take. An offer without a price comes after the
	// others. Empty: types go in their order.
	Costs    map[fleet.Offer]float64
	OnTheWay []fleet.Placement // launched nodes that are not Ready yet: they take pods first
	// Joining says, by name, as what the nodes were launched that are Ready within their time to join. One that is not
	// initialized yet counts as on its way: without startup taints, and with what its offer promises.
	Joining map[string]fleet.Placement
	// Leaving are the nodes, by name, that are being emptied and will be deleted, and Displaced the pods that will
	// leave them. Pods wait for the end of these nodes, except for those that are [cluster.Node.Stalled] at Now.
	Leaving   map[string]bool
	Displaced []Displaced
	Now       time.Time
	// AttachLimits are, by instance type, how many volumes of each driver can be attached to a new node.
	AttachLimits map[string]map[string]int
	// MaxNodes is how many nodes can be launched: a gang that needs more gets none. 0 = unknown, below 0 = none.
	MaxNodes    int
	Template    Template
	DaemonSets  []*appsv1.DaemonSet
	PodsPerNode int // of those without requests of CPU and memory, on a new node; 0 = no limit

	world *world // see [Input.Shared]
}

// Shared returns the input with what questions about its nodes have in common, so that it is found out once. Copies may
// ask about any of its pods, one question after the other.
func (in Input) Shared() Input {
	in.world = newWorld(&in)
	return in
}

// Template is what a new node of the pool has in addition to what its offer says.
type Template struct {
	Labels map[string]string
	Taints []corev1.Taint
	// StartupTaints are on a node that joins until an agent on it removes them.
	StartupTaints []corev1.Taint
}

// Displaced is a pod that will need another node, as its own is being emptied.
type Displaced struct {
	cluster.Pending
	Node     string
	Replaced bool // a new node takes the place of Node before that has gone
}

// DisplacedOf returns the pods that will leave some nodes of a cluster.
func DisplacedOf(c *cluster.Cluster, leaves func(*cluster.Node) bool) []Displaced {
	var out []Displaced
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if !leaves(n) {
			continue
		}
		for _, p := range c.Replacements(n) {
			out = append(out, Displaced{Pending: p, Node: n.Object.Name})
		}
	}
	return out
}
