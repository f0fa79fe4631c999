package nodepool

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/binpack"
	"github.com/foresail/foresail/nodepool/clusterstate"
)

// ownLabels returns the labels that a pool sets on its nodes when they join: its own, and those of the template but
// for what Kubernetes and the cloud say of a node.
func ownLabels(pool string, template map[string]string) map[string]string {
	out := maps.Clone(template)
	maps.DeleteFunc(out, func(key, _ string) bool { return factual(key) })
	if out == nil {
		out = map[string]string{}
	}
	out[LabelPool] = pool
	return out
}

// factual reports whether a label says where or what a node is, so that no one else may set it.
func factual(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
		return true
	}
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "beta.kubernetes.io":
		return true
	}
	return false
}

// joinedNode is what the newest node of the pool turned out to be when it joined.
type joinedNode struct {
	created    time.Time
	generation int64 // of the spec
	joins      bool  // its time to join is not over
	labels     map[string]string
	taints     []corev1.Taint // that the spec does not declare
}

// seeTemplate compares what the spec says of new nodes with the newest node of the pool that is Ready, which is
// right: a pod that could run only on what the spec promises would have one node launched after the other. What the
// node had when it joined counts. A taint that it gets later is its own, and one that it loses while it joins was
// passing.
func (b *observer) seeTemplate(o *observation) {
	declared := o.spec.Template
	for _, s := range inOrder(o.known) {
		n := o.node(s.instance)
		if n == nil || !n.Ready || s.instance.Outdated != "" {
			continue
		}
		created, joins := n.Object.CreationTimestamp.Time, o.hasTimeToJoin(s.instance.Launched)
		known := created.Equal(b.newest.created) && b.newest.generation == o.spec.Generation
		if created.Before(b.newest.created) || known && !joins {
			continue
		}
		next := joinedNode{created: created, generation: o.spec.Generation, joins: joins, labels: n.Object.Labels}
		if joins {
			next.taints = undeclared(n, declared)
		}
		b.newest = next
	}
	o.template = declared
	o.template.Labels = ownLabels(o.pool, declared.Labels)
	for key, value := range declared.Labels {
		if factual(key) && (b.newest.labels == nil || b.newest.labels[key] == value) {
			o.template.Labels[key] = value
		}
	}
	if b.newest.generation == o.spec.Generation {
		o.template.Taints = slices.Concat(declared.Taints, b.newest.taints)
	}
}

// undeclared returns the taints of a node that keep pods away and that neither the spec declares nor Kubernetes or
// an autoscaler sets for a while.
func undeclared(n *clusterstate.Node, declared binpack.Template) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Object.Spec.Taints), func(t corev1.Taint) bool {
		same := func(other corev1.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }
		return t.Effect == corev1.TaintEffectPreferNoSchedule || passes(t.Key) ||
			slices.ContainsFunc(declared.Taints, same) || slices.ContainsFunc(declared.StartupTaints, same)
	})
}

// passes reports whether taints of a key are set and removed while a node exists, so that they say nothing of a new
// one.
func passes(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "node.kubernetes.io", "node.cloudprovider.kubernetes.io", "readiness.k8s.io", "karpenter.sh", "foresail.dev":
		return true
	}
	return strings.Contains(key, "ClusterAutoscaler")
}
