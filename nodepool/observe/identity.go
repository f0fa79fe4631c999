package observe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// nodeIndex finds the Nodes of instances by the machine that Nodes report. Kubelets write all of
// it, so nothing is removed because of one report that another one contradicts.
type nodeIndex struct {
	cluster    *cluster.Cluster           // nil while it is unknown
	byInstance map[string][]*cluster.Node // by the id in the provider id, in order of their names
	byAddress  map[string][]*cluster.Node // by private addresses and host names
	nodeless   map[string]string          // ids, by address, of instances whose provider id no Node has
}

func newNodeIndex(c *cluster.Cluster) nodeIndex {
	x := nodeIndex{cluster: c, byInstance: map[string][]*cluster.Node{}, byAddress: map[string][]*cluster.Node{},
		nodeless: map[string]string{}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if id := provider.IDOf(n.Object.Spec.ProviderID); id != "" {
			x.byInstance[id] = append(x.byInstance[id], n)
		}
		for _, address := range nodeAddresses(n.Object) {
			x.byAddress[address] = append(x.byAddress[address], n)
		}
	}
	return x
}

// nodesWithID returns the Nodes with the provider id of an instance: one, unless a kubelet is
// misconfigured or lies.
func (x nodeIndex) nodesWithID(i fleet.Instance) []*cluster.Node {
	return x.byInstance[cmp.Or(i.ID, provider.IDOf(i.ProviderID))]
}

// at returns the Nodes that report an address of an instance.
func (x nodeIndex) at(i fleet.Instance) []*cluster.Node {
	var out []*cluster.Node
	for _, address := range i.Addresses {
		out = append(out, x.byAddress[addressKey(address)]...)
	}
	return out
}

// nodeAddresses returns the private addresses and host names that a Node reports, as address keys.
func nodeAddresses(n *corev1.Node) []string {
	var all []string
	add := func(address string) {
		if key := addressKey(address); key != "" && !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	add(n.Name)
	add(n.Labels[corev1.LabelHostname])
	for _, a := range n.Status.Addresses {
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeHostName, corev1.NodeInternalDNS:
			add(a.Address)
		}
	}
	return all
}

// addressKey normalises an address: for a host name it is the first label, in lower case.
func addressKey(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	name, _, _ := strings.Cut(address, ".")
	return strings.ToLower(name)
}

// isAt reports whether a Node has an address of an instance.
func isAt(n *corev1.Node, i fleet.Instance) bool {
	has := nodeAddresses(n)
	return slices.ContainsFunc(i.Addresses, func(address string) bool { return slices.Contains(has, addressKey(address)) })
}

// nodeOf returns the Node of an instance, nil if there is none. Of several it prefers the one that
// the instance had before.
func (x nodeIndex) nodeOf(i fleet.Instance, before string) *cluster.Node {
	nodesWithID := x.nodesWithID(i)
	if len(nodesWithID) == 0 {
		return nil
	}
	at := slices.IndexFunc(nodesWithID, func(n *cluster.Node) bool { return n.Object.Name == before })
	return nodesWithID[max(0, at)]
}

// ambiguity returns why it is unclear which Node belongs to an instance, as a part of a sentence,
// "" if it is clear. Until then neither the instance nor a Node of it is removed.
func (x nodeIndex) ambiguity(s trackedInstance, gone bool) string {
	nodesWithID, id := x.nodesWithID(s.Instance.Instance), cmp.Or(s.ID, s.ProviderID)
	if len(nodesWithID) == 0 {
		return ""
	}
	n, other := nodesWithID[0].Object, ""
	if nodesWithID[0].Ready || !gone {
		other = x.nodelessAt(n) // a new instance may have the address of a gone one
	}
	switch {
	case len(nodesWithID) > 1:
		return fmt.Sprintf("nodes %s and %s both have the provider id of %s", n.Name, nodesWithID[1].Object.Name, id)
	case n.Name == s.node && other == "", isAt(n, s.Instance.Instance):
		return ""
	case other != "":
		return fmt.Sprintf("node %s has the provider id of %s, and an address of %s", n.Name, id, other)
	case s.node != "":
		return fmt.Sprintf("node %s has the provider id of %s, which was that of node %s", n.Name, id, s.node)
	case s.disputed:
		return fmt.Sprintf("node %s has the provider id of %s, as another node had", n.Name, id)
	}
	return ""
}

// nodelessAt returns an instance with an address of this Node whose provider id no Node has, "" if
// there is none.
func (x nodeIndex) nodelessAt(n *corev1.Node) string {
	if len(x.nodeless) == 0 {
		return ""
	}
	for _, address := range nodeAddresses(n) {
		if id := x.nodeless[address]; id != "" && id != provider.IDOf(n.Spec.ProviderID) {
			return id
		}
	}
	return ""
}

// addNodeless records an instance if no Node has its provider id.
func (x nodeIndex) addNodeless(i fleet.Instance) {
	if i.ID == "" || len(x.nodesWithID(i)) > 0 {
		return
	}
	for _, address := range i.Addresses {
		x.nodeless[addressKey(address)] = i.ID
	}
}

// possibleNodeWithin is how long after the launch of an instance a Node that does not name it may still
// belong to it. In clusters where other Nodes appear all the time, such as Fargate nodes, an older
// one is most likely unrelated.
const possibleNodeWithin = time.Hour

// possibleNode returns a Node that may run on an instance although its provider id differs, "" if there
// is none: it has an address of the instance, or it is newer than the instance and its provider id
// names no instance, as when a kubelet was not configured with one.
func (x nodeIndex) possibleNode(i fleet.Instance) string {
	for _, n := range x.at(i) {
		if !n.ControlPlane() {
			return n.Object.Name
		}
	}
	if x.cluster == nil {
		return ""
	}
	for _, n := range x.cluster.Nodes {
		age := n.Object.CreationTimestamp.Sub(i.Launched)
		if !namesInstance(n.Object.Spec.ProviderID, i) && !n.ControlPlane() && age > 0 && age < possibleNodeWithin {
			return n.Object.Name
		}
	}
	return ""
}

// namesInstance reports whether a provider id has the form of an instance's cloud. Instance ids
// begin with i-.
func namesInstance(providerID string, like fleet.Instance) bool {
	isID := func(id string) bool { return strings.HasPrefix(id, "i-") }
	return scheme(providerID) == scheme(like.ProviderID) && isID(provider.IDOf(providerID)) == isID(like.ID)
}
