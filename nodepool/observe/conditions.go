package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// seenCondition is a condition of a Node, and when this process first saw it in this status since
// this transition. So a process that begins counts anew, and neither a clock that is wrong nor a
// status that came and went between two cycles makes it look older than it is.
type seenCondition struct {
	kind, status string
	transition   time.Time // by the clock of whoever set it, which is only compared with itself
	since        time.Time
}

// seeConditions takes note of the conditions of the Node of an instance, nil if it has none.
func (s *trackedInstance) seeConditions(n *cluster.Node, now time.Time) {
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
