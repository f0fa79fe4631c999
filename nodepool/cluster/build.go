package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// parts are the inputs of a Cluster, in any order. They are read only.
type parts struct {
	nodes      []*corev1.Node
	load       map[string]*load // by the name of the node
	waiting    []waiting        // unschedulable pods
	daemonSets []*appsv1.DaemonSet
	budgets    []*budget
	volumes    map[*Pod]volumeRules      // of bound pods with volumes
	attached   map[*Pod][]Attachment     // what these use now
	limits     map[string]map[string]int // by the name of the node: see [Node.AttachLimits]
}

// load is the set of pods on a node. It is immutable.
type load struct {
	pods                  []*Pod
	requested, daemonSets corev1.ResourceList
	movable               int
}

// loadOf sorts the pods of a node and sums up their requests.
func loadOf(pods []*Pod) *load {
	slices.SortFunc(pods, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	l := &load{pods: pods, requested: corev1.ResourceList{}, daemonSets: corev1.ResourceList{}}
	for _, p := range pods {
		addTo(l.requested, p.Requests)
		if p.DaemonSet {
			addTo(l.daemonSets, p.Requests)
		}
		if p.class != Ignored {
			l.movable++
		}
	}
	return l
}

func addTo(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// noLoad is the load of a node without pods.
var noLoad = loadOf(nil)

// build makes a Cluster. It reorders its input and changes nothing else in it.
func build(now time.Time, p parts) *Cluster {
	c := &Cluster{At: now, Nodes: make([]Node, len(p.nodes)), DaemonSets: p.daemonSets}
	c.volumes, c.budgets = p.volumes, map[*Kind]*Budget{}
	slices.SortFunc(c.DaemonSets, func(a, b *appsv1.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	byName := make(map[string]*Node, len(p.nodes))
	protection := newBudgets(p.budgets)
	for i, object := range p.nodes {
		l := cmp.Or(p.load[object.Name], noLoad)
		n := Node{Object: object, Requested: l.requested, DaemonSets: l.daemonSets, Movable: l.movable, Pods: l.pods}
		n.Ready, n.ReadySince = readiness(object)
		n.Joined, n.Leaving = joined(&n), Leaves(object)
		n.Blocked = protection.blocked(&n, now)
		n.Attached, n.AttachLimits = attachedTo(l.pods, p.attached), p.limits[object.Name]
		c.Nodes[i] = n
		byName[object.Name] = &c.Nodes[i]
		protect(c, l.pods, protection)
	}
	c.Pending = pendingOf(c, p.waiting, byName)
	sizeDaemonSets(c)
	return c
}

// sizeDaemonSets gives DaemonSets the requests of their newest pods: a LimitRange or an autoscaler
// may have changed the requests, and a new node gets such a pod.
func sizeDaemonSets(c *Cluster) {
	newest := map[types.UID]*Pod{}
	for i := range c.Nodes {
		for _, p := range c.Nodes[i].Pods {
			if before := newest[p.daemonSet]; p.daemonSet != "" && (before == nil || before.created < p.created) {
				newest[p.daemonSet] = p
			}
		}
	}
	for i, d := range c.DaemonSets {
		if p := newest[d.UID]; p != nil {
			c.DaemonSets[i] = sizedLike(d, p)
		}
	}
}

// sizedLike returns a DaemonSet with the requests of one of its pods.
func sizedLike(d *appsv1.DaemonSet, p *Pod) *appsv1.DaemonSet {
	requests := maps.Clone(p.Requests)
	delete(requests, corev1.ResourcePods)
	out := *d
	spec := &out.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}, Ports: p.Ports}}
	spec.InitContainers, spec.Overhead, spec.Resources = nil, nil, nil
	return &out
}

// attachedTo returns the volumes that pods use. A volume counts once however many pods use it.
func attachedTo(pods []*Pod, attached map[*Pod][]Attachment) []Attachment {
	var out []Attachment
	if len(attached) == 0 {
		return nil
	}
	for _, p := range pods {
		out = append(out, attached[p]...)
	}
	return distinct(out)
}

// distinct sorts volumes and removes duplicates.
func distinct(all []Attachment) []Attachment {
	slices.SortFunc(all, func(a, b Attachment) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Volume, b.Volume))
	})
	return slices.Compact(all)
}

// protect records the allowances of budgets for pods that may be evicted.
func protect(c *Cluster, pods []*Pod, protection *budgets) {
	if len(protection.byLabel)+len(protection.others) == 0 {
		return
	}
	for _, p := range pods {
		if p.class != Evictable && p.class != Tolerant {
			continue
		}
		if _, known := c.budgets[p.Kind]; !known {
			c.budgets[p.Kind] = protection.allowance(p.Kind)
		}
	}
}

func readiness(n *corev1.Node) (bool, time.Time) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return true, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}

// joinsWithin is the longest time from the creation of a Node until it is normally Ready. A Node
// that has been Ready only since a later time was Ready before, and lost contact meanwhile.
const joinsWithin = 10 * time.Minute

// joined returns the time at which a node first became Ready. ReadySince comes from the kubelet's
// clock and the creation time from the API server's, which also dates pods: the latter bounds the
// former.
func joined(n *Node) time.Time {
	made := n.Object.CreationTimestamp.Time
	switch latest := made.Add(joinsWithin); {
	case !n.Ready, made.IsZero():
		return n.ReadySince
	case n.ReadySince.Before(made):
		return made
	case n.ReadySince.After(latest):
		return latest
	}
	return n.ReadySince
}

// pendingOf sorts pods by their waiting time, longest first. Pods that are nominated to a node hold
// room there instead. The API server's clock may be ahead of this one.
func pendingOf(c *Cluster, pods []waiting, nodes map[string]*Node) []Pending {
	slices.SortFunc(pods, func(a, b waiting) int { return cmp.Or(a.since.Compare(b.since), compareKeys(a.key, b.key)) })
	out := make([]Pending, 0, len(pods))
	for _, r := range pods {
		if n := nodes[r.pending.Status.NominatedNodeName]; n != nil && n.Ready && !n.Leaving && !n.Object.Spec.Unschedulable {
			nominate(c, r, n)
			continue
		}
		since, ahead := r.since, r.since.After(c.At)
		if ahead {
			since = c.At
		}
		out = append(out, Pending{
			Pod: r.pending, Since: since, Filtered: r.filtered && !ahead, Gang: r.gang,
			Volumes: r.at, Stuck: r.stuck, Attach: r.attach,
		})
	}
	return out
}

// nominate reserves room for a pending pod on the node to which the scheduler has nominated it.
func nominate(c *Cluster, r waiting, n *Node) {
	p := &Pod{Name: r.key.Name, Kind: kindOf(r.pending), unprotected: true}
	n.Nominated = append(n.Nominated, p)
	n.Requested = maps.Clone(n.Requested)
	addTo(n.Requested, p.Requests)
	if r.stuck == "" && len(r.at)+len(r.attach) == 0 {
		return
	}
	c.volumes = maps.Clone(c.volumes)
	if c.volumes == nil {
		c.volumes = map[*Pod]volumeRules{}
	}
	c.volumes[p] = r.volumeRules
	n.Attached = distinct(slices.Concat(n.Attached, r.attach))
}

// splitPods divides pods into the loads of nodes and the pending ones.
func splitPods(pods []*record) (map[string]*load, []*record) {
	at := map[string][]*Pod{}
	var waiting []*record
	for _, r := range pods {
		if r.pending != nil {
			waiting = append(waiting, r)
		} else {
			at[r.node] = append(at[r.node], r.pod)
		}
	}
	out := make(map[string]*load, len(at))
	for name, pods := range at {
		out[name] = loadOf(pods)
	}
	return out, waiting
}
