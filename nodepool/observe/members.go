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

// members derives the state of each instance of the pool.
type members struct {
	o         *Observation
	unmovable unmovableNodes
	futile    futileRemovals
}

// all returns the instances of the pool, in order of their launch.
func (m members) all() []plan.Instance {
	out := make([]plan.Instance, 0, len(m.o.Known))
	for key, s := range m.o.Known {
		if s.OwnedBy == "" {
			out = append(out, m.one(key, s))
		}
	}
	slices.SortFunc(out, func(a, b plan.Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return out
}

// one completes the recorded part of an instance with the derived part.
func (m members) one(key string, s trackedInstance) plan.Instance {
	i, node := s.Instance, m.o.Node(s.Instance.Instance)
	leaves, ending := m.o.Record.Leaves(i.ID), m.o.Record.Ending(i.ID)
	i.Worker = m.isWorker(s, node)
	i.Listed, i.Joined, i.Gone, i.NodelessSince = s.Missing.IsZero() && i.ID != "",
		!s.joined.IsZero(), m.o.Gone(key), s.nodelessSince()
	i.Ambiguous = m.o.Ambiguity(s)
	if s.unlisted && !s.ended {
		i.Unlisted, i.UnlistedWhy = m.o.At.Sub(s.Missing), s.whyUnlisted()
	}
	if ending != nil && !i.Gone {
		i.Ending = m.o.At.Sub(ending.Since)
	}
	i.Leaving = i.State == fleet.Leaving || s.ended || leaves
	i.Ended = ending != nil || (i.State == fleet.Leaving || s.ended) && !leaves
	i.Outdated = m.o.Spec.Disruption.Outdated(i.Instance, m.o.At)
	if node == nil {
		m.addNodeless(&i, s)
	} else {
		m.addNode(&i, s, node)
	}
	return i
}

// isWorker reports whether an instance exists, or must be assumed to, and does not belong to the
// control plane.
func (m members) isWorker(s trackedInstance, node *cluster.Node) bool {
	switch {
	case s.isGone(m.o.VanishGrace, m.o.At), node != nil && node.ControlPlane():
		return false
	}
	return s.Missing.IsZero() || node != nil && (node.Ready || s.Runs() || s.unlisted) || m.o.expects(s.Instance.Instance)
}

// addNodeless completes an instance without a Node.
func (m members) addNodeless(i *plan.Instance, s trackedInstance) {
	pending := m.o.Record.PendingTermination(i.ID)
	if pending != nil {
		i.PossibleNode = m.o.nodes.possibleNode(i.Instance)
	}
	i.Failed = m.o.Cluster != nil && (i.JoinFailed && s.readyAt.IsZero() || pending != nil || m.overdue(s))
	i.Kept = i.Failed && pending != nil && pending.Reason == state.TerminateJoinFailed
}

// addNode completes an instance with its Node.
func (m members) addNode(i *plan.Instance, s trackedInstance, node *cluster.Node) {
	mark, marked := drain.MarkOf(node.Object)
	n := &i.Node // including the recorded part
	n.Name, n.ProviderID, n.Ready, n.Cordoned = node.Object.Name, node.Object.Spec.ProviderID, node.Ready,
		node.Object.Spec.Unschedulable
	n.ControlPlane, n.Labelled, n.Marked, n.Mark = node.ControlPlane(), m.labelled(node, s), marked, mark
	i.Unhealthy = m.unhealthy(s)
	i.Failed = !node.Ready && m.o.Record.PendingTermination(i.ID) != nil
	i.Pods, i.Blocked = node.Movable, node.Blocked
	i.BlockedByPods = i.Blocked != "" && cluster.ClassifyNode(node.Object, m.o.At) == ""
	i.Utilisation, i.Known = node.Utilisation()
	i.FutileRemoval = m.futile.why(node)
	i.Zone = cmp.Or(i.Zone, node.Object.Labels[corev1.LabelTopologyZone])
	switch why := m.unmovable.why(n.Name, m.o.At); {
	case i.Ambiguous != "":
		i.Blocked, i.BlockedByPods, i.Unhealthy = i.Ambiguous, false, plan.BadCondition{}
	case i.ID == "" || !s.Missing.IsZero():
		i.Blocked, i.BlockedByPods = "the cloud does not list its instance", false
		if foreign := s.Foreign(); foreign != "" {
			i.Blocked += ": " + foreign
		}
	case i.Blocked == "" && !m.o.Spec.Plan.Deleting:
		i.Blocked = why
	}
}

// overdue reports whether the time of an instance to join is over, or it has lost its Node for more
// than a moment.
func (m members) overdue(s trackedInstance) bool {
	a := m.o.Record.Action
	return (a == nil || s.Action != a.ID) && m.o.At.Sub(s.Launched) > m.o.Spec.Join.Timeout &&
		m.o.At.Sub(s.nodelessSince()) > m.o.VanishGrace
}

// labelled reports whether a Node has the label of the pool and, while it joins, the other labels
// that the pool sets.
func (m members) labelled(n *cluster.Node, s trackedInstance) bool {
	if n.Object.Labels[cluster.LabelPool] != m.o.Pool || !m.o.hasTimeToJoin(s.Launched) {
		return n.Object.Labels[cluster.LabelPool] == m.o.Pool
	}
	for key, value := range config.NodeLabels(m.o.Pool, m.o.Spec.Template.Labels) {
		if n.Object.Labels[key] != value {
			return false
		}
	}
	return true
}

// markBroken finds the workers that have not been Ready for longer than a join may take. The first
// of them no longer count, so that others are launched in their place: as many as may fail
// independently, and none while observations cannot be trusted, which also bounds the cost. In a
// pool that is being deleted they are removed like all others. Whether their pods run is unknown.
func (m members) markBroken(doubt bool) {
	left := m.o.Spec.Plan.DistrustCount
	if m.o.Spec.Plan.Deleting || !m.o.Complete() || doubt {
		left = 0
	}
	for w := range m.o.Workers() {
		w.BrokenFor = m.brokenFor(w)
		if w.BrokenFor > 0 && left > 0 {
			w.Failed, w.Broken = true, true
			left--
		}
	}
}

func (m members) brokenFor(w *plan.Instance) time.Duration {
	n := m.o.NodeNamed(w.Node.Name)
	s, seen := m.o.Known[w.ID]
	if n == nil || n.Ready || !seen || !w.Counts() || m.o.Record.Action != nil && s.Action == m.o.Record.Action.ID {
		return 0
	}
	if unready := m.o.At.Sub(s.unreadySince()); unready > m.o.Spec.Join.Timeout+m.o.VanishGrace {
		return unready
	}
	return 0
}

// unhealthy returns the condition for which a worker is repaired. A worker that has not joined yet
// is neither healthy nor unhealthy.
func (m members) unhealthy(s trackedInstance) plan.BadCondition {
	joins := s.readyAt.IsZero() && m.o.hasTimeToJoin(s.Launched)
	if joins || m.o.Record.Action != nil && s.Action == m.o.Record.Action.ID {
		return plan.BadCondition{}
	}
	conditions := make([]plan.NodeCondition, len(s.conditions))
	for i, c := range s.conditions {
		conditions[i] = plan.NodeCondition{Type: c.kind, Status: c.status, Since: c.since}
	}
	return m.o.Spec.Plan.Repair.Unhealthy(conditions)
}
