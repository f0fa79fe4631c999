package nodepool

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// observation is what a cycle has seen, of one moment: the cloud, the journal, the cluster and the messages of the cloud. No
// phase changes it.
type observation struct {
	at   time.Time
	pool string
	spec Spec
	// vanishGrace is [Options.VanishGrace].
	vanishGrace time.Duration
	specErr     error // why the configuration is that of an earlier cycle

	instances  map[string]fleet.Instance // that the cloud lists, by id
	foreign    map[string]fleet.Instance // that it lists, and that belong to another controller
	listErr    error
	findErr    error            // why instances that the list lacks could not be found by their ids
	cluster    *cluster.Cluster // nil while it is not known
	clusterErr error
	nodes      nodeIndex
	offers     []provider.Offer
	offersErr  error

	record    state.Record // as it was read
	leading   bool         // this process may act
	tookOver  bool         // the record was another's: somebody else may have launched
	decidedAt time.Time    // when the last decision was made, as far as it is known

	attachLimits map[string]map[string]int  // volumes of each driver that a node can have attached, by instance type
	template     scheduling.Template        // what new nodes turn out to be
	known        map[string]trackedInstance // of the instances, as of this moment
	workers      []plan.Worker
	facts        []plan.Instance
	emptySince   time.Time          // since when nothing of the pool has been left
	messages     []provider.Message // of the cloud, that nothing has been decided about
	messagesErr  error              // why there may be more
}

// errs is what could not be seen.
func (o *observation) errs() []error {
	return []error{
		o.specErr, o.listErr, o.findErr, o.clusterErr, o.offersErr, o.messagesErr, o.spec.Disruption.Budgets.Err(),
	}
}

// err is why the workers are not known, nil if they are.
func (o *observation) err() error { return errors.Join(o.listErr, o.clusterErr) }

// complete tells whether both the cloud and the cluster have been seen.
func (o *observation) complete() bool { return o.listErr == nil && o.cluster != nil }

// node returns the Node of an instance, nil if there is none or it is not known. If several have its
// provider id, it is the one that was seen first. Callers that destroy something check
// [observation.ambiguity] before.
func (o *observation) node(i fleet.Instance) *cluster.Node {
	return o.nodes.nodeOf(i, o.known[i.ID].node)
}

// ambiguity returns why it is not certain which Node is the one of an instance, "" if it is.
func (o *observation) ambiguity(s trackedInstance) string {
	return o.nodes.ambiguity(s, s.isGone(o.vanishGrace, o.at))
}

// nodeNamed returns a Node, nil if there is none.
func (o *observation) nodeNamed(name string) *cluster.Node {
	if name == "" || o.cluster == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(o.cluster.Nodes, name, func(n cluster.Node, name string) int { return cmp.Compare(n.Object.Name, name) })
	if !ok {
		return nil
	}
	return &o.cluster.Nodes[at]
}

// gone tells whether an instance is known to have gone.
func (o *observation) gone(id string) bool {
	s, ok := o.known[id]
	return ok && o.listErr == nil && s.isGone(o.vanishGrace, o.at)
}

// hasTimeToJoin tells whether the time is not over yet in which an instance becomes a node that takes pods.
func (o *observation) hasTimeToJoin(launched time.Time) bool {
	return o.at.Sub(launched) <= o.spec.Join.Timeout
}

// expects tells whether an instance that the cloud does not list has been launched so lately that it need not.
func (o *observation) expects(i fleet.Instance) bool {
	a := o.record.Action
	return i.ID != "" && (a != nil && i.Action == a.ID || o.at.Sub(i.Launched) < o.vanishGrace)
}

// seeWorkers returns the instances that are there, or must be taken to be, in order of their launch.
func (o *observation) seeWorkers(homeless homelessNodes) []plan.Worker {
	var out []plan.Worker
	for _, s := range o.known {
		node := o.node(s.instance)
		switch {
		case s.isGone(o.vanishGrace, o.at), s.instance.OwnedBy != "", node != nil && controlPlane(node.Object):
		case s.missing.IsZero(), node != nil && (node.Ready || s.runs() || s.unlisted), o.expects(s.instance):
			out = append(out, o.worker(s, node, homeless))
		}
	}
	slices.SortFunc(out, func(a, b plan.Worker) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.Node, b.Node))
	})
	return out
}

func (o *observation) worker(s trackedInstance, node *cluster.Node, homeless homelessNodes) plan.Worker {
	i, leaves, ends := s.instance, leaves(o.record, s.instance.ID), ending(o.record, s.instance.ID) != nil
	w := plan.Worker{
		InstanceID: i.ID, Placement: i.Placement, Launched: i.Launched,
		Leaving: i.State == fleet.Leaving || s.ended || leaves,
		Ended:   ends || (i.State == fleet.Leaving || s.ended) && !leaves,
	}
	if w.Outdated = outdated(i, o.spec.Disruption, o.at); w.Outdated == "" {
		w.OutdatedErr = i.OutdatedErr
	}
	c := pendingTermination(o.record, i.ID)
	if node == nil {
		w.Failed = o.cluster != nil && (i.JoinFailed && s.worked.IsZero() || c != nil || o.overdue(s))
		w.Kept = w.Failed && c != nil && c.Reason == plan.TerminateJoinFailed && !o.spec.Join.KeepFailed
		return w
	}
	w.Node, w.Unhealthy = node.Object.Name, o.unhealthy(s)
	w.Ready = node.Ready && !node.Object.Spec.Unschedulable
	w.Cordoned = node.Ready && node.Object.Spec.Unschedulable
	w.Failed = !node.Ready && c != nil
	w.Pods, w.Blocked = node.Movable, node.Blocked
	w.BlockedByPods = w.Blocked != "" && cluster.ClassifyNode(node.Object, o.at) == ""
	w.Utilisation, w.Known = utilisation(node)
	w.Zone = cmp.Or(w.Zone, node.Object.Labels[corev1.LabelTopologyZone])
	switch why, ambiguity := homeless.why(w.Node, o.at), o.ambiguity(s); {
	case ambiguity != "":
		w.Blocked, w.BlockedByPods, w.Unhealthy = ambiguity, false, plan.BadCondition{}
	case i.ID == "" || !s.missing.IsZero():
		w.Blocked, w.BlockedByPods = "the cloud does not list its instance"+because(s.foreign()), false
	case w.Blocked == "" && !o.spec.Plan.Deleting:
		w.Blocked = why
	}
	return w
}

// overdue tells whether an instance has had its time to join, or has lost its Node for longer than for a moment.
func (o *observation) overdue(s trackedInstance) bool {
	a := o.record.Action
	return (a == nil || s.instance.Action != a.ID) && o.at.Sub(s.instance.Launched) > o.spec.Join.Timeout &&
		o.at.Sub(s.without()) > o.vanishGrace
}

// markBroken notes which workers have not been Ready for longer than a join may take, and has the first of them not count, so
// that others are launched in their place: no more than could be a few failures that have nothing to do with each other, and
// none while what is seen is not to be trusted. So what is paid for stays bounded, as well. Of a pool that is being deleted
// they go like all others. Whether their pods run cannot be known.
func (o *observation) markBroken(workers []plan.Worker, doubt bool) {
	left := o.spec.Plan.DistrustCount
	if o.spec.Plan.Deleting || !o.complete() || doubt {
		left = 0
	}
	for i := range workers {
		w := &workers[i]
		w.BrokenFor = o.brokenFor(*w)
		if w.BrokenFor > 0 && left > 0 {
			w.Failed, w.Broken = true, true
			left--
		}
	}
}

func (o *observation) brokenFor(w plan.Worker) time.Duration {
	n := o.nodeNamed(w.Node)
	s, seen := o.known[w.InstanceID]
	if n == nil || n.Ready || !seen || !w.Counts() || o.record.Action != nil && s.instance.Action == o.record.Action.ID {
		return 0
	}
	if unready := o.at.Sub(s.unready()); unready > o.spec.Join.Timeout+o.vanishGrace {
		return unready
	}
	return 0
}

// seeFacts returns what the plan looks at to tidy up, in order of the ids.
func (o *observation) seeFacts() []plan.Instance {
	out := make([]plan.Instance, 0, len(o.known))
	for key, s := range inOrder(o.known) {
		i := s.instance
		if i.OwnedBy != "" {
			continue
		}
		fact := plan.Instance{
			ID: i.ID, ProviderID: i.ProviderID, Placement: i.Placement, Action: i.Action,
			Listed: s.missing.IsZero() && i.ID != "", Leaving: i.State == fleet.Leaving, Stopped: s.stopped, JoinFailed: i.JoinFailed,
			Joined: !s.joined.IsZero(), Gone: o.gone(key), Nodeless: s.without(), DriftErr: i.OutdatedErr,
			Ambiguous: o.ambiguity(s), Disowned: i.Disowned,
		}
		if s.unlisted && !s.ended {
			fact.Unlisted, fact.UnlistedWhy = o.at.Sub(s.missing), s.whyUnlisted()
		}
		if x := ending(o.record, i.ID); x != nil && !fact.Gone {
			fact.Ending = o.at.Sub(x.Since)
		}
		n := o.node(i)
		switch {
		case n != nil:
			fact.Node = o.nodeFacts(n, s)
		case pendingTermination(o.record, i.ID) != nil:
			fact.Stranger = o.nodes.stranger(i)
		}
		out = append(out, fact)
	}
	return out
}

func (o *observation) nodeFacts(n *cluster.Node, s trackedInstance) plan.Node {
	mark, marked := drain.MarkOf(n.Object)
	return plan.Node{
		Name: n.Object.Name, ProviderID: n.Object.Spec.ProviderID, Ready: n.Ready, ControlPlane: controlPlane(n.Object),
		Labelled: o.labelled(n, s), Marked: marked, Mark: mark, StaleMark: s.staleMark, Advised: s.cordoned,
	}
}

// labelled reports whether a Node has the label of the pool and, as long as it joins, the others that the pool sets.
func (o *observation) labelled(n *cluster.Node, s trackedInstance) bool {
	if n.Object.Labels[LabelPool] != o.pool || !o.hasTimeToJoin(s.instance.Launched) {
		return n.Object.Labels[LabelPool] == o.pool
	}
	for key, value := range ownLabels(o.pool, o.spec.Template.Labels) {
		if n.Object.Labels[key] != value {
			return false
		}
	}
	return true
}

// onTheWay tells whether a worker will take pods soon: it has had no Node that was Ready, as far as is known, and its time
// to join is not over. A worker that was Ready and is not any more may never be again.
func (o *observation) onTheWay(w plan.Worker) bool {
	node := o.nodeNamed(w.Node)
	switch s, seen := o.known[w.InstanceID]; {
	case !w.Counts(), !seen || !s.worked.IsZero(), !o.hasTimeToJoin(w.Launched):
		return false
	case node == nil:
		return s.joined.IsZero()
	}
	return !node.Ready && !node.Object.Spec.Unschedulable
}

// emptied returns the nodes, by name, that are being emptied and will be deleted: those that say so themselves,
// workers that this pool removes or the cloud takes back, by a message of this cycle, too, and cordoned nodes, which may
// be drained by hand, unless that makes no progress: those stay, for all that is known.
func (o *observation) emptied() map[string]bool {
	out := map[string]bool{}
	for i := range o.cluster.Nodes {
		n := &o.cluster.Nodes[i]
		if n.Leaving || n.Object.Spec.Unschedulable && !n.Stalled(o.at) {
			out[n.Object.Name] = true
		}
	}
	for _, w := range o.workers {
		if r := target(o.record, w.InstanceID); w.Node != "" && w.Leaving && (r == nil || r.State != state.RemovalPlanned) {
			out[w.Node] = true
		}
		if w.Node != "" && o.interrupted(w.InstanceID) {
			out[w.Node] = true
		}
	}
	return out
}

// interrupted reports whether a message of this cycle says that the cloud takes an instance back.
func (o *observation) interrupted(instance string) bool {
	return slices.ContainsFunc(o.messages, func(m provider.Message) bool {
		return m.InstanceID == instance && m.Kind == provider.MessageInterruption
	})
}

// joining returns the workers that are Ready within their time to join, by the names of their nodes.
func (o *observation) joining() map[string]fleet.Placement {
	out := map[string]fleet.Placement{}
	for _, w := range o.workers {
		if w.Counts() && w.Ready && o.hasTimeToJoin(w.Launched) {
			out[w.Node] = w.Placement
		}
	}
	return out
}

// joined returns the nodes of some of the workers, as far as they have joined.
func (o *observation) joined(which func(plan.Worker) bool) []cluster.Node {
	var out []cluster.Node
	for _, w := range o.workers {
		if n := o.nodeNamed(w.Node); n != nil && which(w) {
			out = append(out, *n)
		}
	}
	return out
}

// left returns what there is of the pool: Nodes, and the instances that have none. An instance that
// is not listed any more counts until it is known to have gone, and its Node until it is deleted.
// Neither the control plane, nor what belongs to another controller, nor an instance without a Node
// that has lost its tags is a part of it.
func (o *observation) left() (nodes, instances []string) {
	for key, s := range inOrder(o.known) {
		switch node := o.node(s.instance); {
		case node != nil && controlPlane(node.Object), s.instance.OwnedBy != "", node == nil && s.instance.Disowned != "":
		case node != nil:
			nodes = append(nodes, node.Object.Name)
		case !o.gone(key):
			instances = append(instances, key)
		}
	}
	return nodes, instances
}

// empty tells whether nothing of the pool is left, nor can come. In a dry run an open action launches nothing.
func (o *observation) empty() bool {
	if !o.complete() || o.record.Action != nil && !o.spec.DryRun {
		return false
	}
	nodes, instances := o.left()
	return len(nodes)+len(instances) == 0
}

// foreignInstances returns the instances that have the pool's tags and belong to another controller.
func (o *observation) foreignInstances() []plan.Foreign {
	owners := map[string]string{}
	for id, i := range o.foreign {
		owners[id] = i.OwnedBy
	}
	for _, s := range o.known {
		if s.instance.OwnedBy != "" {
			owners[s.instance.ID] = s.instance.OwnedBy
		}
	}
	out := make([]plan.Foreign, 0, len(owners))
	for id, owner := range inOrder(owners) {
		out = append(out, plan.Foreign{InstanceID: id, Owner: owner})
	}
	return out
}

func leaving(w plan.Worker) bool { return w.Leaving }

func expected(workers []plan.Worker) (n int) {
	for _, w := range workers {
		if w.Counts() {
			n++
		}
	}
	return n
}

func controlPlane(n *corev1.Node) bool {
	_, control := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	return control || master
}

// utilisation is the larger share of CPU and memory that pods request of what a node can allocate.
func utilisation(n *cluster.Node) (share float64, known bool) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		can, asked := n.Object.Status.Allocatable[name], n.Requested[name]
		if can.IsZero() {
			return 0, false
		}
		share = max(share, asked.AsApproximateFloat64()/can.AsApproximateFloat64())
	}
	return share, true
}
