package signal

import (
	"net"

	"github.com/foresail/foresail/nodepool/world"
)

// matcher finds the Node that a label means.
type matcher map[string]string // names and addresses → nodeKey; "" = of several

// newMatcher knows the names of nodes, and their addresses where these are not the names or addresses of others.
func newMatcher(nodes []world.Node) matcher {
	m := make(matcher, 3*len(nodes))
	for i := range nodes {
		key := nodeKey(&nodes[i])
		for _, a := range nodes[i].Object.Status.Addresses {
			if other, ok := m[a.Address]; ok && other != key {
				m[a.Address] = ""
			} else {
				m[a.Address] = key
			}
		}
	}
	for i := range nodes {
		m[nodes[i].Object.Name] = nodeKey(&nodes[i])
	}
	return m
}

// find returns the key of the Node that a label names: by its name, or by one of its addresses, with or without a port.
func (m matcher) find(label string) (key string, ok bool) {
	if key := m[label]; key != "" {
		return key, true
	}
	host, _, err := net.SplitHostPort(label)
	if err != nil {
		return "", false
	}
	key = m[host]
	return key, key != ""
}
