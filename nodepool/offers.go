package nodepool

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/provider"
)

// proof is what the newest node of an instance type has turned out to be.
type proof struct {
	created     time.Time
	allocatable corev1.ResourceList
	labels      map[string]string
}

// corrected returns offers as nodes of the pool have turned out to be, where the cloud or an estimate promises more: a pod
// that such a node does not take would have one launched after the other.
func (t *tick) corrected(offers []provider.Offer) []provider.Offer {
	t.prove()
	out := slices.Clone(offers)
	for i := range out {
		if p, ok := t.proofs[out[i].InstanceType]; ok {
			out[i].Allocatable, out[i].Labels = p.smaller(out[i].Allocatable), p.without(out[i].Labels)
		}
	}
	return out
}

// prove looks at the nodes that are Ready. What they were is remembered when they go.
func (t *tick) prove() {
	for _, s := range t.sightings {
		n := t.node(s.instance)
		if n == nil || !n.Ready || s.instance.InstanceType == "" {
			continue
		}
		created := n.Object.CreationTimestamp.Time
		if p, ok := t.proofs[s.instance.InstanceType]; !ok || !created.Before(p.created) {
			t.proofs[s.instance.InstanceType] = proof{created: created, allocatable: n.Object.Status.Allocatable, labels: n.Object.Labels}
		}
	}
}

// smaller returns what a node can really give of what every node has from the first moment on.
func (p proof) smaller(promised corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(promised)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if has, ok := p.allocatable[name]; ok && !has.IsZero() && has.Cmp(out[name]) < 0 {
			out[name] = has
		}
	}
	return out
}

// without leaves out labels that Kubernetes or the cloud should have given the node and has not, such as that of its zone.
func (p proof) without(promised map[string]string) map[string]string {
	out := maps.Clone(promised)
	maps.DeleteFunc(out, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		_, has := p.labels[key]
		return !has && (domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"))
	})
	return out
}
