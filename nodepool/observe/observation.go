package observe

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Observation is the view of a cycle at one moment: the cloud, the journal, the cluster and the
// messages of the cloud. No phase changes it.
type Observation struct {
	At   time.Time
	Pool string
	Spec config.Spec
	// VanishGrace is the time for which an instance is assumed to exist although the cloud does not
	// list it.
	VanishGrace time.Duration
	SpecErr     error // why an earlier configuration is used

	Instances  map[string]fleet.Instance // listed by the cloud, by id
	foreign    map[string]fleet.Instance // listed, but owned by another controller
	ListErr    error
	findErr    error            // why unlisted instances could not be queried by their ids
	Cluster    *cluster.Cluster // nil while it is unknown
	clusterErr error
	nodes      nodeIndex
	Offers     []provider.Offer
	OffersErr  error

	Record    state.Record // as it was read
	Leading   bool         // this process may act
	TookOver  bool         // the record was written by another process, which may have launched instances
	DecidedAt time.Time    // when the last decision was made, as far as is known

	// number of volumes of each driver that a node can have attached, by instance type
	AttachLimits map[string]map[string]int
	Template     scheduling.Template        // of new nodes, corrected by real ones
	Known        map[string]trackedInstance // the memory about instances, at this moment
	Members      []plan.Instance            // the instances of the pool, in order of their launch
	EmptySince   time.Time                  // time since which nothing of the pool has been left
	Messages     []provider.Message         // from the cloud, about which nothing has been decided
	MessagesErr  error                      // why there may be more
}

// Errs returns what could not be read.
func (o *Observation) Errs() []error {
	return []error{
		o.SpecErr, o.ListErr, o.findErr, o.clusterErr, o.OffersErr, o.MessagesErr, o.Spec.Disruption.Budgets.Err(),
	}
}

// Err returns why the workers are unknown, nil if they are known.
func (o *Observation) Err() error { return errors.Join(o.ListErr, o.clusterErr) }

// Complete reports whether both the cloud and the cluster could be read.
func (o *Observation) Complete() bool { return o.ListErr == nil && o.Cluster != nil }

// Node returns the Node of an instance, nil if there is none or it is unknown. If several have its
// provider id, it is the one that was seen first. Callers that remove something check
// [Observation.Ambiguity] before.
func (o *Observation) Node(i fleet.Instance) *cluster.Node {
	return o.nodes.nodeOf(i, o.Known[i.ID].node)
}

// Ambiguity returns why it is unclear which Node belongs to an instance, "" if it is clear.
func (o *Observation) Ambiguity(s trackedInstance) string {
	return o.nodes.ambiguity(s, s.isGone(o.VanishGrace, o.At))
}

// NodeNamed returns a Node, nil if there is none.
func (o *Observation) NodeNamed(name string) *cluster.Node {
	if name == "" || o.Cluster == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(o.Cluster.Nodes, name,
		func(n cluster.Node, name string) int { return cmp.Compare(n.Object.Name, name) })
	if !ok {
		return nil
	}
	return &o.Cluster.Nodes[at]
}

// Gone reports whether an instance certainly no longer exists.
func (o *Observation) Gone(id string) bool {
	s, ok := o.Known[id]
	return ok && o.ListErr == nil && s.isGone(o.VanishGrace, o.At)
}

// hasTimeToJoin reports whether an instance that was launched at a time may still become a
// schedulable node.
func (o *Observation) hasTimeToJoin(launched time.Time) bool {
	return o.At.Sub(launched) <= o.Spec.Join.Timeout
}

// expects reports whether an instance was launched so recently that the cloud need not list it yet.
func (o *Observation) expects(i fleet.Instance) bool {
	a := o.Record.Action
	return i.ID != "" && (a != nil && i.Action == a.ID || o.At.Sub(i.Launched) < o.VanishGrace)
}

// Workers returns the instances that exist, or must be assumed to, in order of their launch.
func (o *Observation) Workers() iter.Seq[*plan.Instance] { return plan.Workers(o.Members) }

// Expected returns the number of workers that count.
func (o *Observation) Expected() (n int) {
	for w := range o.Workers() {
		if w.Counts() {
			n++
		}
	}
	return n
}

// OnTheWay reports whether a worker will soon take pods: as far as is known its Node has not been
// Ready yet, and its time to join is not over. A worker that was Ready and no longer is may never
// be again.
func (o *Observation) OnTheWay(w *plan.Instance) bool {
	node := o.NodeNamed(w.Node.Name)
	switch s, seen := o.Known[w.ID]; {
	case !w.Counts(), !seen || !s.readyAt.IsZero(), !o.hasTimeToJoin(w.Launched):
		return false
	case node == nil:
		return s.joined.IsZero()
	}
	return !node.Ready && !node.Object.Spec.Unschedulable
}

// Emptied returns the nodes, by name, that are being drained and will be deleted: those with a sign
// of it, workers that this pool removes or the cloud reclaims, including by a message of this
// cycle, and cordoned nodes, which may be drained by hand, unless the drain makes no progress.
func (o *Observation) Emptied() map[string]bool {
	out := map[string]bool{}
	for i := range o.Cluster.Nodes {
		n := &o.Cluster.Nodes[i]
		if n.Leaving || n.Object.Spec.Unschedulable && !n.Stalled(o.At) {
			out[n.Object.Name] = true
		}
	}
	for w := range o.Workers() {
		r := o.Record.Target(w.ID)
		leaves := w.Leaving && (r == nil || r.State != state.RemovalPlanned)
		if w.Node.Name != "" && (leaves || o.interrupted(w.ID)) {
			out[w.Node.Name] = true
		}
	}
	return out
}

// Replaced returns the nodes, by name, whose replacements are launched before they are deleted:
// those of workers that the cloud reclaims, including by a message of this cycle, and of workers
// under repair.
func (o *Observation) Replaced() map[string]bool {
	out := map[string]bool{}
	for w := range o.Workers() {
		noticed := o.interrupted(w.ID) || o.Record.Interruption(w.ID) != nil || o.Record.Repair(w.ID) != nil
		if noticed && w.Node.Name != "" {
			out[w.Node.Name] = true
		}
	}
	return out
}

// interrupted reports whether the cloud reclaims an instance according to a message of this cycle.
func (o *Observation) interrupted(instance string) bool {
	return slices.ContainsFunc(o.Messages, func(m provider.Message) bool {
		return m.InstanceID == instance && m.Kind == provider.MessageInterruption
	})
}

// NewlyReady returns the workers that are Ready but still within their time to join, by the names of
// their nodes.
func (o *Observation) NewlyReady() map[string]fleet.Placement {
	out := map[string]fleet.Placement{}
	for w := range o.Workers() {
		if w.Counts() && w.Ready() && o.hasTimeToJoin(w.Launched) {
			out[w.Node.Name] = w.Placement
		}
	}
	return out
}

// Joined returns the nodes of some of the workers, as far as they have joined.
func (o *Observation) Joined(which func(*plan.Instance) bool) []cluster.Node {
	var out []cluster.Node
	for w := range o.Workers() {
		if n := o.NodeNamed(w.Node.Name); n != nil && which(w) {
			out = append(out, *n)
		}
	}
	return out
}

// Left returns what is left of the pool: Nodes, and instances without one. An unlisted instance
// counts until it is certainly gone, and its Node until it is deleted. Not counted are the control
// plane, instances of other controllers, and instances without a Node that have lost their tags.
func (o *Observation) Left() (nodes, instances []string) {
	for key, s := range inOrder(o.Known) {
		switch node := o.Node(s.Instance.Instance); {
		case node != nil && node.ControlPlane(), s.OwnedBy != "", node == nil && s.Disowned != "":
		case node != nil:
			nodes = append(nodes, node.Object.Name)
		case !o.Gone(key):
			instances = append(instances, key)
		}
	}
	return nodes, instances
}

// empty reports whether nothing of the pool is left and nothing more can appear. In a dry run an
// open action launches nothing.
func (o *Observation) empty() bool {
	if !o.Complete() || o.Record.Action != nil && !o.Spec.DryRun {
		return false
	}
	nodes, instances := o.Left()
	return len(nodes)+len(instances) == 0
}

// ForeignInstances returns the instances that have the pool's tags but belong to another
// controller.
func (o *Observation) ForeignInstances() []plan.Foreign {
	owners := map[string]string{}
	for id, i := range o.foreign {
		owners[id] = i.OwnedBy
	}
	for _, s := range o.Known {
		if s.OwnedBy != "" {
			owners[s.ID] = s.OwnedBy
		}
	}
	out := make([]plan.Foreign, 0, len(owners))
	for id, owner := range inOrder(owners) {
		out = append(out, plan.Foreign{InstanceID: id, Owner: owner})
	}
	return out
}

// Leaving reports whether a worker is being removed, or the cloud reclaims it.
func Leaving(w *plan.Instance) bool { return w.Leaving }
