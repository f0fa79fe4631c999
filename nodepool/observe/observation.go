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

// Observation is what a cycle has seen, of one moment: the cloud, the journal, the cluster and the
// messages of the cloud. No phase changes it.
type Observation struct {
	At   time.Time
	Pool string
	Spec config.Spec
	// VanishGrace is for how long an instance that the cloud does not list, though it should, is taken to be there still.
	VanishGrace time.Duration
	SpecErr     error // why the configuration is that of an earlier cycle

	Instances  map[string]fleet.Instance // that the cloud lists, by id
	foreign    map[string]fleet.Instance // that it lists, and that belong to another controller
	ListErr    error
	findErr    error            // why instances that the list lacks could not be found by their ids
	Cluster    *cluster.Cluster // nil while it is not known
	clusterErr error
	nodes      nodeIndex
	Offers     []provider.Offer
	OffersErr  error

	Record    state.Record // as it was read
	Leading   bool         // this process may act
	TookOver  bool         // the record was another's: somebody else may have launched
	DecidedAt time.Time    // when the last decision was made, as far as it is known

	AttachLimits map[string]map[string]int  // volumes of each driver that a node can have attached, by instance type
	Template     scheduling.Template        // what new nodes turn out to be
	Known        map[string]trackedInstance // of the instances, as of this moment
	Members      []plan.Instance            // what is known of each instance of the pool, in order of their launch
	EmptySince   time.Time                  // since when nothing of the pool has been left
	Messages     []provider.Message         // of the cloud, that nothing has been decided about
	MessagesErr  error                      // why there may be more
}

// Errs is what could not be seen.
func (o *Observation) Errs() []error {
	return []error{
		o.SpecErr, o.ListErr, o.findErr, o.clusterErr, o.OffersErr, o.MessagesErr, o.Spec.Disruption.Budgets.Err(),
	}
}

// Err is why the workers are not known, nil if they are.
func (o *Observation) Err() error { return errors.Join(o.ListErr, o.clusterErr) }

// Complete tells whether both the cloud and the cluster have been seen.
func (o *Observation) Complete() bool { return o.ListErr == nil && o.Cluster != nil }

// Node returns the Node of an instance, nil if there is none or it is not known. If several have its
// provider id, it is the one that was seen first. Callers that destroy something check
// [Observation.Ambiguity] before.
func (o *Observation) Node(i fleet.Instance) *cluster.Node {
	return o.nodes.nodeOf(i, o.Known[i.ID].node)
}

// Ambiguity returns why it is not certain which Node is the one of an instance, "" if it is.
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

// Gone tells whether an instance is known to have gone.
func (o *Observation) Gone(id string) bool {
	s, ok := o.Known[id]
	return ok && o.ListErr == nil && s.isGone(o.VanishGrace, o.At)
}

// hasTimeToJoin tells whether the time is not over yet in which an instance becomes a node that takes pods.
func (o *Observation) hasTimeToJoin(launched time.Time) bool {
	return o.At.Sub(launched) <= o.Spec.Join.Timeout
}

// expects tells whether an instance that the cloud does not list has been launched so lately that it need not.
func (o *Observation) expects(i fleet.Instance) bool {
	a := o.Record.Action
	return i.ID != "" && (a != nil && i.Action == a.ID || o.At.Sub(i.Launched) < o.VanishGrace)
}

// Workers returns the instances that exist, or must be taken to, in order of their launch.
func (o *Observation) Workers() iter.Seq[*plan.Instance] { return plan.Workers(o.Members) }

// Expected returns how many workers count.
func (o *Observation) Expected() (n int) {
	for w := range o.Workers() {
		if w.Counts() {
			n++
		}
	}
	return n
}

// OnTheWay tells whether a worker will take pods soon: it has had no Node that was Ready, as far as
// is known, and its time to join is not over. A worker that was Ready and is not any more may never
// be again.
func (o *Observation) OnTheWay(w *plan.Instance) bool {
	node := o.NodeNamed(w.Node.Name)
	switch s, seen := o.Known[w.ID]; {
	case !w.Counts(), !seen || !s.worked.IsZero(), !o.hasTimeToJoin(w.Launched):
		return false
	case node == nil:
		return s.joined.IsZero()
	}
	return !node.Ready && !node.Object.Spec.Unschedulable
}

// Emptied returns the nodes, by name, that are being emptied and will be deleted: those that say so
// themselves, workers that this pool removes or the cloud takes back, also by a message of this
// cycle, and cordoned nodes, which may be drained by hand, unless that makes no progress.
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

// Replaced returns the nodes, by name, that others are launched in place of before they have gone:
// those of workers that the cloud takes back, also by a message of this cycle, and of those that
// are repaired.
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

// interrupted reports whether a message of this cycle says that the cloud takes an instance back.
func (o *Observation) interrupted(instance string) bool {
	return slices.ContainsFunc(o.Messages, func(m provider.Message) bool {
		return m.InstanceID == instance && m.Kind == provider.MessageInterruption
	})
}

// Joining returns the workers that are Ready within their time to join, by the names of their nodes.
func (o *Observation) Joining() map[string]fleet.Placement {
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

// Left returns what there is of the pool: Nodes, and the instances that have none. An instance that
// is not listed any more counts until it is known to have gone, and its Node until it is deleted.
// Neither the control plane, nor what belongs to another controller, nor an instance without a Node
// that has lost its tags is a part of it.
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

// empty tells whether nothing of the pool is left, nor can come. In a dry run an open action launches nothing.
func (o *Observation) empty() bool {
	if !o.Complete() || o.Record.Action != nil && !o.Spec.DryRun {
		return false
	}
	nodes, instances := o.Left()
	return len(nodes)+len(instances) == 0
}

// ForeignInstances returns the instances that have the pool's tags and belong to another controller.
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

// Leaving reports whether a worker is being removed, or the cloud takes it away.
func Leaving(w *plan.Instance) bool { return w.Leaving }
