package scheduling

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// Input is the cluster and the pool of a question. It is not changed.
type Input struct {
	Pods    []cluster.Pending
	Nodes   []cluster.Node       // all that exist; those that are not Ready or are cordoned take no pods
	Offers  []provider.Offer     // types in order of preference; those of unknown size are ignored
	Cooling map[fleet.Offer]bool // offers that cannot be launched now: new nodes use others if those are suitable
	Refused map[fleet.Offer]bool // offers that could not be launched at the last try, including all of Cooling
	// Costs are the hourly prices of the offers, if prices decide: a new node has the type that costs
	// least for the pods that it would take. Offers without a price come last. Empty: types are used
	// in their order.
	Costs    map[fleet.Offer]float64
	OnTheWay []fleet.Placement // launched nodes that are not Ready yet: they take pods first
	// NewlyReady contains the placements of nodes, by name, that are Ready but still within their time to
	// join. One that is not initialized yet counts as being launched: without startup taints, and with
	// the resources of its offer.
	NewlyReady map[string]fleet.Placement
	// Leaving are the nodes, by name, that are being drained and will be deleted, and Displaced the
	// pods that will leave them. Pods wait for the end of these nodes, except for those that are
	// [cluster.Node.Stalled] at Now.
	Leaving   map[string]bool
	Displaced []Displaced
	Now       time.Time
	// AttachLimits is the number of volumes of each driver that can be attached to a new node, by
	// instance type.
	AttachLimits map[string]map[string]int
	// MaxNodes is the number of nodes that can be launched: a gang that needs more gets none. 0 =
	// unknown, negative = none.
	MaxNodes    int
	Template    Template
	DaemonSets  []*appsv1.DaemonSet
	PodsPerNode int // of those without requests of CPU and memory, on a new node; 0 = no limit

	world *world // see [Input.Shared]
}

// Shared returns the input with precomputed state that all questions about its nodes share. Copies
// may be used with any of its pods, one after the other.
func (in Input) Shared() Input {
	in.world = newWorld(&in)
	return in
}

// Template holds the properties of a new node of the pool in addition to its offer.
type Template struct {
	Labels map[string]string
	Taints []corev1.Taint
	// StartupTaints are on a joining node until an agent removes them.
	StartupTaints []corev1.Taint
}

// Displaced is a pod that will need another node, because its own is being drained.
type Displaced struct {
	cluster.Pending
	Node     string
	Replaced bool // a new node replaces Node before it is deleted
}

// DisplacedOf returns the pods that will leave the nodes of a cluster for which leaves returns
// true.
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
