package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// seenCondition is a condition of a Node with the time since which this process has seen it in this
// status and with this transition time. A new process counts from zero, so neither a wrong clock
// nor a status that changed between two cycles makes the condition look older than it is.
type seenCondition struct {
	kind, status string
	transition   time.Time // by the clock of its writer; only compared with itself
	since        time.Time
}

// recordConditions records the conditions of the Node of an instance, nil if it has none.
func (s *trackedInstance) recordConditions(n *cluster.Node, now time.Time) {
	if n == nil {
		s.conditions = nil
		return
	}
	conditions := n.Object.Status.Conditions
	if slices.EqualFunc(s.conditions, conditions, seenCondition.is) {
		return
	}
	out := make([]seenCondition, 0, len(conditions))
	for i := range conditions {
		c := &conditions[i]
		one := seenCondition{string(c.Type), string(c.Status), c.LastTransitionTime.Time, now}
		if at := slices.IndexFunc(s.conditions, func(old seenCondition) bool { return old.is(*c) }); at >= 0 {
			one.since = s.conditions[at].since
		}
		out = append(out, one)
	}
	s.conditions = out
}

func (s seenCondition) is(c corev1.NodeCondition) bool {
	return s.kind == string(c.Type) && s.status == string(c.Status) && s.transition.Equal(c.LastTransitionTime.Time)
}
