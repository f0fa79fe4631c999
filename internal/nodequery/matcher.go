package nodequery

import (
	"net"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is what identifies a Node.
type Node struct {
	Name      string
	UID       types.UID
	Created   time.Time
	Addresses []corev1.NodeAddress
}

// Of returns what identifies a Node. It shares the Node's memory.
func Of(n *corev1.Node) Node {
	return Node{Name: n.Name, UID: n.UID, Created: n.CreationTimestamp.Time, Addresses: n.Status.Addresses}
}

// Key is unique, unlike the name, which a later Node may have again.
func Key(name string, uid types.UID) string { return name + "/" + string(uid) }

// Key returns the key of the Node's name and UID.
func (n *Node) Key() string { return Key(n.Name, n.UID) }

// Matcher finds the Node that a label names.
type Matcher struct {
	nodes map[string]*Node // by names and addresses; nil = of several
}

// NewMatcher indexes nodes by their names, and by those of their addresses that no other node has
// as name or address. Of two nodes with one name the later wins.
func NewMatcher(nodes []Node) Matcher {
	m := Matcher{nodes: make(map[string]*Node, 3*len(nodes))}
	for i := range nodes {
		n := &nodes[i]
		for _, a := range n.Addresses {
			if other, ok := m.nodes[a.Address]; ok && (other == nil || other.Key() != n.Key()) {
				m.nodes[a.Address] = nil
			} else {
				m.nodes[a.Address] = n
			}
		}
	}
	for i := range nodes {
		m.nodes[nodes[i].Name] = &nodes[i]
	}
	return m
}

// Find returns the Node that a label names by its name or one of its addresses, with or without a
// port; nil if there is none, or more than one.
func (m Matcher) Find(label string) *Node {
	if n := m.nodes[label]; n != nil {
		return n
	}
	host, _, err := net.SplitHostPort(label)
	if err != nil {
		return nil
	}
	return m.nodes[host]
}

// Sort returns the lines of an answer by the keys of the Nodes that a label names, and the lines of
// no known Node.
func (m Matcher) Sort(lines []Line, label model.LabelName) (byNode map[string][]Line, strange []Line) {
	byNode = make(map[string][]Line, len(lines))
	for _, l := range lines {
		if n := m.Find(string(l.Labels[label])); n != nil {
			byNode[n.Key()] = append(byNode[n.Key()], l)
		} else {
			strange = append(strange, l)
		}
	}
	return byNode, strange
}
