package observe

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// expects reports whether an instance that the cloud does not list was launched so recently that it
// need not.
func expects(o *Observation, i fleet.Instance) bool {
	a := o.Record.Action
	return i.ID != "" && (a != nil && i.Action == a.ID || o.At.Sub(i.Launched) < o.VanishGrace)
}

// membersOf returns what is known of the instances of the pool, in order of their launch.
func membersOf(o *Observation, homeless homelessNodes) []plan.Instance {
	out := make([]plan.Instance, 0, len(o.Known))
	for key, s := range o.Known {
		if s.OwnedBy == "" {
			out = append(out, memberOf(o, key, s, homeless))
		}
	}
	slices.SortFunc(out, func(a, b plan.Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return out
}

// memberOf completes what is remembered of an instance with what follows at this moment.
func memberOf(o *Observation, key string, s trackedInstance, homeless homelessNodes) plan.Instance {
	i, node := s.Instance, o.Node(s.Instance.Instance)
	leaves, ending := o.Record.Leaves(i.ID), o.Record.Ending(i.ID)
	i.Worker = isWorker(o, s, node)
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
		addNodeless(o, &i, s)
	} else {
		addNode(o, &i, s, node, homeless)
	}
	return i
}

// isWorker reports whether an instance exists, or must be taken to, and is none of the control
// plane.
func isWorker(o *Observation, s trackedInstance, node *cluster.Node) bool {
	switch {
	case s.isGone(o.VanishGrace, o.At), node != nil && node.ControlPlane():
		return false
	}
	return s.Missing.IsZero() || node != nil && (node.Ready || s.Runs() || s.unlisted) || expects(o, s.Instance.Instance)
}

// addNodeless adds what follows for an instance without a Node.
func addNodeless(o *Observation, i *plan.Instance, s trackedInstance) {
	pending := o.Record.PendingTermination(i.ID)
	if pending != nil {
		i.Stranger = o.nodes.stranger(i.Instance)
	}
	i.Failed = o.Cluster != nil && (i.JoinFailed && s.worked.IsZero() || pending != nil || overdue(o, s))
	i.Kept = i.Failed && pending != nil && pending.Reason == state.TerminateJoinFailed && !o.Spec.Join.KeepFailed
}

// addNode adds the Node of an instance, and what it means for it.
func addNode(o *Observation, i *plan.Instance, s trackedInstance, node *cluster.Node, homeless homelessNodes) {
	mark, marked := drain.MarkOf(node.Object)
	n := &i.Node // with what is remembered of it
	n.Name, n.ProviderID = node.Object.Name, node.Object.Spec.ProviderID
	n.Ready, n.Cordoned = node.Ready, node.Object.Spec.Unschedulable
	n.ControlPlane, n.Labelled, n.Marked, n.Mark = node.ControlPlane(), labelled(o, node, s), marked, mark
	i.Unhealthy = unhealthy(o, s)
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

// overdue reports whether an instance has had its time to join, or has lost its Node for longer
// than a moment.
func overdue(o *Observation, s trackedInstance) bool {
	a := o.Record.Action
	return (a == nil || s.Action != a.ID) && o.At.Sub(s.Launched) > o.Spec.Join.Timeout &&
		o.At.Sub(s.without()) > o.VanishGrace
}

// markBroken notes which workers have not been Ready for longer than a join may take, and makes the
// first of them not count, so that others are launched in their place. There are at most as many as
// could be independent failures, which bounds the cost, and none while observations are not to be
// trusted. Whether their pods run cannot be known. A pool that is being deleted removes them like
// all others.
func markBroken(o *Observation, doubt bool) {
	left := o.Spec.Plan.DistrustCount
	if o.Spec.Plan.Deleting || !o.Complete() || doubt {
		left = 0
	}
	for w := range o.Workers() {
		w.BrokenFor = brokenFor(o, w)
		if w.BrokenFor > 0 && left > 0 {
			w.Failed, w.Broken = true, true
			left--
		}
	}
}

// brokenFor returns how long the Node of a worker has not been Ready, 0 if that is no longer than a
// join may take.
func brokenFor(o *Observation, w *plan.Instance) time.Duration {
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

// labelled reports whether a Node has the label of the pool and, as long as it joins, the others
// that the pool sets.
func labelled(o *Observation, n *cluster.Node, s trackedInstance) bool {
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

// unhealthy returns the condition for which a worker is to be repaired. One that has not joined yet
// is neither healthy nor unhealthy.
func unhealthy(o *Observation, s trackedInstance) plan.BadCondition {
	joins := s.worked.IsZero() && o.hasTimeToJoin(s.Launched)
	if joins || o.Record.Action != nil && s.Action == o.Record.Action.ID {
		return plan.BadCondition{}
	}
	conditions := make([]plan.NodeCondition, len(s.conditions))
	for i, c := range s.conditions {
		conditions[i] = plan.NodeCondition{Type: c.kind, Status: c.status, Since: c.since}
	}
	return o.Spec.Plan.Repair.Unhealthy(conditions)
}
