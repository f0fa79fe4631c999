package world

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

var onePod = resource.MustParse("1")

// parts are what a Cluster is made of, in any order. All is read only.
type parts struct {
	nodes      []*corev1.Node
	pods       []*record
	daemonSets []*appsv1.DaemonSet
	budgets    []*budget
}

// build makes a Cluster. It changes nothing of what it is given but the order.
func build(now time.Time, p parts) *Cluster {
	c := &Cluster{At: now, Nodes: make([]Node, len(p.nodes)), DaemonSets: p.daemonSets}
	slices.SortFunc(c.DaemonSets, func(a, b *appsv1.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	at := make(map[string]int, len(p.nodes))
	for i, n := range p.nodes {
		at[n.Name] = i
		c.Nodes[i].Object = n
		c.Nodes[i].Ready, c.Nodes[i].ReadySince = readiness(n)
	}
	var pending []*record
	for _, r := range p.pods {
		switch i, ok := at[r.node]; {
		case ok:
			c.Nodes[i].Pods = append(c.Nodes[i].Pods, r.pod)
		case r.pending != nil:
			if _, promised := at[r.pending.Status.NominatedNodeName]; !promised {
				pending = append(pending, r)
			}
		}
	}
	c.Pending = pendingOf(pending, now)
	protection := newBudgets(p.budgets)
	for i := range c.Nodes {
		c.Nodes[i].sum()
		c.Nodes[i].Blocked = protection.blocked(&c.Nodes[i])
	}
	return c
}

func readiness(n *corev1.Node) (bool, time.Time) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return true, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}

// pendingOf orders pods by how long they have waited. The API server's clock may be ahead of ours.
func pendingOf(records []*record, now time.Time) []Pending {
	slices.SortFunc(records, func(a, b *record) int { return cmp.Or(a.since.Compare(b.since), compareKeys(a.key, b.key)) })
	out := make([]Pending, 0, len(records))
	for _, r := range records {
		since := r.since
		if since.After(now) {
			since = now
		}
		out = append(out, Pending{Pod: r.pending, Since: since})
	}
	return out
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// sum orders the pods of a node and adds up what they request.
func (n *Node) sum() {
	slices.SortFunc(n.Pods, func(a, b *Pod) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	n.Requested, n.DaemonSets = corev1.ResourceList{}, corev1.ResourceList{}
	for _, p := range n.Pods {
		addTo(n.Requested, p.Requests)
		if p.DaemonSet {
			addTo(n.DaemonSets, p.Requests)
		}
		if p.class != Ignored {
			n.Movable++
		}
	}
}

func addTo(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// blocked returns the first reason not to drain a node.
func (b *budgets) blocked(n *Node) string {
	if why := ClassifyNode(n.Object); why != "" {
		return "the Node " + why
	}
	for _, p := range n.Pods {
		if p.class == Ignored || p.Leaving {
			continue
		}
		why := p.why
		if why == "" {
			why = b.blocks(p)
		}
		if why != "" {
			return "the pod " + p.Namespace + "/" + p.Name + " " + why
		}
	}
	return ""
}
