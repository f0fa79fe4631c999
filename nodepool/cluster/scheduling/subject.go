package scheduling

import (
	"github.com/foresail/foresail/nodepool/cluster"
)

// subject is a pod that needs a place.
type subject struct {
	cluster.Pending
	role role
	from string // the node that it leaves; "" = none
}

// role is the role of a pod in a question.
type role int

const (
	pending   role = iota // it waits for a node
	examined              // its node would be removed
	displaced             // its node is already being drained: it takes room as soon as it has left
	replaced              // like displaced, and a new node replaces its own before it has left
)

// subjectsOf returns the pending pods, and those that leave nodes which are being drained.
func subjectsOf(in *Input) []subject {
	out := make([]subject, 0, len(in.Pods)+len(in.Displaced))
	for _, p := range in.Pods {
		out = append(out, subject{Pending: p})
	}
	for _, d := range in.Displaced {
		s := subject{Pending: d.Pending, role: displaced, from: d.Node}
		if d.Replaced {
			s.role = replaced
		}
		out = append(out, s)
	}
	return out
}

// member is one pod of a group.
type member struct {
	name  string // with its namespace
	from  string
	bound *cluster.Pod
}

func memberOf(s *subject) member { return member{nameOf(s.Pending), s.from, s.Bound} }

func nameOf(p cluster.Pending) string { return p.Pod.Namespace + "/" + p.Pod.Name }
