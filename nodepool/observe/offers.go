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

// newNodes describes new nodes of the pool, as far as existing nodes have shown it.
type newNodes struct {
	capacities   map[string]*observedCapacity // by instance type
	attachLimits map[string]attachLimit       // by instance type
	newest       joinedNode
}

// observedCapacity describes the latest nodes of an instance type.
type observedCapacity struct {
	labelled  time.Time // creation time of the node with these labels
	labels    map[string]string
	resources map[corev1.ResourceName]amount
}

// amount is the quantity of a resource on the latest node that reports it.
type amount struct {
	node     types.UID
	created  time.Time
	quantity resource.Quantity
}

// attachLimit is the number of volumes of each driver that can be attached to the latest node of an
// instance type that reports it.
type attachLimit struct {
	created time.Time
	drivers map[string]int
}

// recordAttachLimits records how many volumes nodes of each type can have attached. The limits outlive
// the nodes.
func (l *newNodes) recordAttachLimits(o *Observation) {
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

// corrected returns offers corrected by the nodes of the pool where the cloud or an estimate
// promises more. Otherwise one node after the other would be launched for a pod that fits on none.
func (l *newNodes) corrected(o *Observation, offers []provider.Offer) []provider.Offer {
	l.recordCapacities(o, offers)
	out := slices.Clone(offers)
	for i := range out {
		if p := l.capacities[out[i].InstanceType]; p != nil {
			out[i].Allocatable, out[i].Labels = p.smaller(out[i].Allocatable), p.without(out[i].Labels)
		}
	}
	return out
}

// recordCapacities records the Ready nodes. The records outlive the nodes.
func (l *newNodes) recordCapacities(o *Observation, offers []provider.Offer) {
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
		l.capacities[kind].record(n.Object, promised[kind], o.hasTimeToJoin(s.Launched))
	}
}

// record records a Ready node. While it may still join, missing resources may still appear.
func (p *observedCapacity) record(n *corev1.Node, promised corev1.ResourceList, joining bool) {
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
			// It may still appear, or it appeared and was lost since, which does not apply to new nodes.
		default:
			p.resources[name] = amount{n.UID, created, has}
		}
	}
}

// reported reports whether the kubelet reports a resource on every node, so that it is unknown if
// it is missing.
func reported(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourcePods
}

// smaller returns the promised amounts, limited to those that a node can really provide.
func (p *observedCapacity) smaller(promised corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(promised)
	for name, quantity := range promised {
		if known, ok := p.resources[name]; ok && known.quantity.Cmp(quantity) < 0 {
			out[name] = known.quantity
		}
	}
	return out
}

// without leaves out labels that Kubernetes or the cloud should have set on the node and has not,
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

// Offered returns what can be launched, with prices if they decide, and why some prices are
// unknown.
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

// Quotas returns the quotas of instance types.
func Quotas(offers []provider.Offer) map[string]fleet.Quota {
	out := map[string]fleet.Quota{}
	for _, o := range offers {
		out[o.InstanceType] = o.Quota
	}
	return out
}
