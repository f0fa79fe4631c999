package scheduling

import (
	"github.com/foresail/foresail/nodepool/cluster"
)

// subject is a pod that a place is looked for.
type subject struct {
	cluster.Pending
	role role
	from string // the node that it leaves; "" = it has none
}

// role is what a pod is in a question.
type role int

const (
	pending   role = iota // it waits for a node
	asked                 // its node would be removed
	displaced             // its node is being emptied already: it takes room as soon as it has left
)

// subjectsOf returns pending pods, and those that leave the nodes that are being emptied.
func subjectsOf(in *Input) []subject {
	out := make([]subject, 0, len(in.Pods)+len(in.Displaced))
	for _, p := range in.Pods {
		out = append(out, subject{Pending: p})
	}
	for _, d := range in.Displaced {
		out = append(out, subject{Pending: d.Pending, role: displaced, from: d.Node})
	}
	return out
}

// Displaced is a pod that will need another node, as its own is being emptied.
type Displaced struct {
	cluster.Pending
	Node string
}

// DisplacedOf returns the pods that will leave some nodes of a cluster.
func DisplacedOf(c *cluster.Cluster, leaves func(*cluster.Node) bool) []Displaced {
	var out []Displaced
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if !leaves(n) {
			continue
		}
		for _, p := range c.Replacements(n) {
			out = append(out, Displaced{p, n.Object.Name})
		}
	}
	return out
}

// member is one pod of a group.
type member struct {
	name  string // with its namespace
	from  string
	bound *cluster.Pod
}

func (s *subject) member() member {
	return member{s.Pod.Namespace + "/" + s.Pod.Name, s.from, s.Bound}
}
