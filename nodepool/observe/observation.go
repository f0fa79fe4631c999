package observe

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Observation is what a cycle has seen, of one moment: the cloud, the journal, the cluster and the messages of the cloud. No
// phase changes it.
type Observation struct {
	At   time.Time
	Pool string
	Spec config.Spec
	// VanishGrace is [Options.VanishGrace].
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
// [observation.ambiguity] before.
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
	at, ok := slices.BinarySearchFunc(o.Cluster.Nodes, name, func(n cluster.Node, name string) int { return cmp.Compare(n.Object.Name, name) })
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

// seeMembers returns what is known of the instances of the pool, in order of their launch.
func (o *Observation) seeMembers(homeless homelessNodes) []plan.Instance {
	out := make([]plan.Instance, 0, len(o.Known))
	for key, s := range o.Known {
		if s.OwnedBy == "" {
			out = append(out, o.member(key, s, homeless))
		}
	}
	slices.SortFunc(out, func(a, b plan.Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return out
}

// member completes what is remembered of an instance with what follows at this moment.
func (o *Observation) member(key string, s trackedInstance, homeless homelessNodes) plan.Instance {
	i, node := s.Instance, o.Node(s.Instance.Instance)
	leaves, ending := o.Record.Leaves(i.ID), o.Record.Ending(i.ID)
	i.Worker = o.isWorker(s, node)
	i.Listed, i.Joined, i.Gone, i.Nodeless = s.Missing.IsZero() && i.ID != "", !s.joined.IsZero(), o.Gone(key), s.without()
	i.Ambiguous = o.Ambiguity(s)
	if s.unlisted && !s.ended {
		i.Unlisted, i.UnlistedWhy = o.At.Sub(s.Missing), s.whyUnlisted()
	}
	if ending != nil && !i.Gone {
		i.Ending = o.At.Sub(ending.Since)
	}
	i.Leaving = i.State == fleet.Leaving || s.ended || leaves
	i.Ended = ending != nil || (i.State == fleet.Leaving || s.ended) && !leaves
	i.Outdated = o.Spec.Disruption.Outdated(i.Instance, o.At)
	if node == nil {
		o.addNodeless(&i, s)
	} else {
		o.addNode(&i, s, node, homeless)
	}
	return i
}

// isWorker reports whether an instance exists, or must be taken to, and is none of the control plane.
func (o *Observation) isWorker(s trackedInstance, node *cluster.Node) bool {
	switch {
	case s.isGone(o.VanishGrace, o.At), node != nil && node.ControlPlane():
		return false
	}
	return s.Missing.IsZero() || node != nil && (node.Ready || s.Runs() || s.unlisted) || o.expects(s.Instance.Instance)
}

// addNodeless adds what follows for an instance without a Node.
func (o *Observation) addNodeless(i *plan.Instance, s trackedInstance) {
	pending := o.Record.PendingTermination(i.ID)
	if pending != nil {
		i.Stranger = o.nodes.stranger(i.Instance)
	}
	i.Failed = o.Cluster != nil && (i.JoinFailed && s.worked.IsZero() || pending != nil || o.overdue(s))
	i.Kept = i.Failed && pending != nil && pending.Reason == state.TerminateJoinFailed && !o.Spec.Join.KeepFailed
}

// addNode adds the Node of an instance, and what it means for it.
func (o *Observation) addNode(i *plan.Instance, s trackedInstance, node *cluster.Node, homeless homelessNodes) {
	mark, marked := drain.MarkOf(node.Object)
	n := &i.Node // with what is remembered of it
	n.Name, n.ProviderID, n.Ready, n.Cordoned = node.Object.Name, node.Object.Spec.ProviderID, node.Ready, node.Object.Spec.Unschedulable
	n.ControlPlane, n.Labelled, n.Marked, n.Mark = node.ControlPlane(), o.labelled(node, s), marked, mark
	i.Unhealthy = o.unhealthy(s)
	i.Failed = !node.Ready && o.Record.PendingTermination(i.ID) != nil
	i.Pods, i.Blocked = node.Movable, node.Blocked
	i.BlockedByPods = i.Blocked != "" && cluster.ClassifyNode(node.Object, o.At) == ""
	i.Utilisation, i.Known = node.Utilisation()
	i.Zone = cmp.Or(i.Zone, node.Object.Labels[corev1.LabelTopologyZone])
	switch why := homeless.why(n.Name, o.At); {
	case i.Ambiguous != "":
		i.Blocked, i.BlockedByPods, i.Unhealthy = i.Ambiguous, false, plan.BadCondition{}
	case i.ID == "" || !s.Missing.IsZero():
		i.Blocked, i.BlockedByPods = "the cloud does not list its instance", false
		if foreign := s.Foreign(); foreign != "" {
			i.Blocked += ": " + foreign
		}
	case i.Blocked == "" && !o.Spec.Plan.Deleting:
		i.Blocked = why
	}
}

// overdue tells whether an instance has had its time to join, or has lost its Node for longer than for a moment.
func (o *Observation) overdue(s trackedInstance) bool {
	a := o.Record.Action
	return (a == nil || s.Action != a.ID) && o.At.Sub(s.Launched) > o.Spec.Join.Timeout &&
		o.At.Sub(s.without()) > o.VanishGrace
}

// markBroken notes which workers have not been Ready for longer than a join may take, and has the first of them not count, so
// that others are launched in their place: no more than could be a few failures that have nothing to do with each other, and
// none while what is seen is not to be trusted. So what is paid for stays bounded, as well. Of a pool that is being deleted
// they go like all others. Whether their pods run cannot be known.
func (o *Observation) markBroken(doubt bool) {
	left := o.Spec.Plan.DistrustCount
	if o.Spec.Plan.Deleting || !o.Complete() || doubt {
		left = 0
	}
	for w := range o.Workers() {
		w.BrokenFor = o.brokenFor(w)
		if w.BrokenFor > 0 && left > 0 {
			w.Failed, w.Broken = true, true
			left--
		}
	}
}

func (o *Observation) brokenFor(w *plan.Instance) time.Duration {
	n := o.NodeNamed(w.Node.Name)
	s, seen := o.Known[w.ID]
	if n == nil || n.Ready || !seen || !w.Counts() || o.Record.Action != nil && s.Action == o.Record.Action.ID {
		return 0
	}
	if unready := o.At.Sub(s.unready()); unready > o.Spec.Join.Timeout+o.VanishGrace {
		return unready
	}
	return 0
}

// labelled reports whether a Node has the label of the pool and, as long as it joins, the others that the pool sets.
func (o *Observation) labelled(n *cluster.Node, s trackedInstance) bool {
	if n.Object.Labels[cluster.LabelPool] != o.Pool || !o.hasTimeToJoin(s.Launched) {
		return n.Object.Labels[cluster.LabelPool] == o.Pool
	}
	for key, value := range config.NodeLabels(o.Pool, o.Spec.Template.Labels) {
		if n.Object.Labels[key] != value {
			return false
		}
	}
	return true
}

// OnTheWay tells whether a worker will take pods soon: it has had no Node that was Ready, as far as is known, and its time
// to join is not over. A worker that was Ready and is not any more may never be again.
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

// Emptied returns the nodes, by name, that are being emptied and will be deleted: those that say so themselves,
// workers that this pool removes or the cloud takes back, also by a message of this cycle, and cordoned nodes, which may
// be drained by hand, unless that makes no progress.
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
