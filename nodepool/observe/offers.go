package observe

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// newNodes is what new nodes of the pool will be, as far as nodes have shown it.
type newNodes struct {
	capacities   map[string]*observedCapacity // by instance type
	attachLimits map[string]attachLimit       // by instance type
	newest       joinedNode
}

// observedCapacity is what the newest nodes of an instance type have turned out to be.
type observedCapacity struct {
	labelled  time.Time // when the node was made that has these labels
	labels    map[string]string
	resources map[corev1.ResourceName]amount
}

// amount is what the newest node has of a resource that tells of it.
type amount struct {
	node     types.UID
	created  time.Time
	quantity resource.Quantity
}

// attachLimit is how many volumes of each driver can be attached to the newest node of an instance type that says so.
type attachLimit struct {
	created time.Time
	drivers map[string]int
}

// seeAttachLimits notes how many volumes nodes of each type can have attached. What they could is remembered when
// they go.
func (l *newNodes) seeAttachLimits(o *Observation) {
	if l.attachLimits == nil {
		l.attachLimits = map[string]attachLimit{}
	}
	for i := range o.Cluster.Nodes {
		n := &o.Cluster.Nodes[i]
		kind, created := n.Object.Labels[corev1.LabelInstanceTypeStable], n.Object.CreationTimestamp.Time
		if len(n.AttachLimits) > 0 && !created.Before(l.attachLimits[kind].created) {
			l.attachLimits[kind] = attachLimit{created, n.AttachLimits}
		}
	}
	o.AttachLimits = make(map[string]map[string]int, len(l.attachLimits))
	for kind, limit := range l.attachLimits {
		o.AttachLimits[kind] = limit.drivers
	}
}

// corrected returns offers as nodes of the pool have turned out to be, where the cloud or an
// estimate promises more: a pod that such a node does not take would have one launched after the
// other.
func (l *newNodes) corrected(o *Observation, offers []provider.Offer) []provider.Offer {
	l.prove(o, offers)
	out := slices.Clone(offers)
	for i := range out {
		if p := l.capacities[out[i].InstanceType]; p != nil {
			out[i].Allocatable, out[i].Labels = p.smaller(out[i].Allocatable), p.without(out[i].Labels)
		}
	}
	return out
}

// prove looks at the nodes that are Ready. What they were is remembered when they go.
func (l *newNodes) prove(o *Observation, offers []provider.Offer) {
	promised := map[string]corev1.ResourceList{}
	for _, offer := range offers {
		promised[offer.InstanceType] = offer.Allocatable
	}
	for _, s := range inOrder(o.Known) {
		n, kind := o.Node(s.Instance.Instance), s.InstanceType
		if n == nil || !n.Ready || kind == "" {
			continue
		}
		if l.capacities[kind] == nil {
			l.capacities[kind] = &observedCapacity{resources: map[corev1.ResourceName]amount{}}
		}
		l.capacities[kind].see(n.Object, promised[kind], o.hasTimeToJoin(s.Launched))
	}
}

// see takes note of a Ready node. While it has time to join, what it lacks may come.
func (p *observedCapacity) see(n *corev1.Node, promised corev1.ResourceList, joining bool) {
	created := n.CreationTimestamp.Time
	if awaits := joining && scheduling.AwaitsCloud(n); !awaits && !created.Before(p.labelled) {
		p.labelled, p.labels = created, n.Labels
	}
	for name := range promised {
		has := n.Status.Allocatable[name]
		known, ok := p.resources[name]
		switch {
		case created.Before(known.created):
		case has.IsZero() && (joining || reported(name) || ok && known.node == n.UID):
			// It has yet to come, or it came and has been lost since, which says nothing of new nodes.
		default:
			p.resources[name] = amount{n.UID, created, has}
		}
	}
}

// reported tells whether the kubelet reports a resource of every node, so that one without it is not known.
func reported(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourcePods
}

// smaller returns what a node can really give of what is promised.
func (p *observedCapacity) smaller(promised corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(promised)
	for name, quantity := range promised {
		if known, ok := p.resources[name]; ok && known.quantity.Cmp(quantity) < 0 {
			out[name] = known.quantity
		}
	}
	return out
}

// without leaves out labels that Kubernetes or the cloud should have given the node and has not,
// such as that of its zone.
func (p *observedCapacity) without(promised map[string]string) map[string]string {
	out := maps.Clone(promised)
	if p.labels == nil {
		return out
	}
	maps.DeleteFunc(out, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		_, has := p.labels[key]
		return !has && (domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"))
	})
	return out
}

// Offered returns what can be launched, with prices if they decide, and why some of these are not known.
func Offered(offers []provider.Offer) (all []fleet.Offer, prices map[fleet.Offer]fleet.Price, why string) {
	for _, o := range offers {
		all, why = append(all, o.Offer), max(why, o.PriceErr)
		if o.Price != (fleet.Price{}) {
			if prices == nil {
				prices = map[fleet.Offer]fleet.Price{}
			}
			prices[o.Offer] = o.Price
		}
	}
	return all, prices, why
}

// Quotas returns what instance types count against.
func Quotas(offers []provider.Offer) map[string]fleet.Quota {
	out := map[string]fleet.Quota{}
	for _, o := range offers {
		out[o.InstanceType] = o.Quota
	}
	return out
}
