package observe

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/config"
)

// taintsKept is how long the taints of a node that is gone are expected on new ones. User data may
// have been corrected meanwhile, which one node shows.
const taintsKept = 12 * time.Hour

// joinedNode describes the latest node of the pool when it joined.
type joinedNode struct {
	created    time.Time
	seen       time.Time // when it was last Ready and up to date
	generation int64     // of the spec
	labels     map[string]string
	taints     []corev1.Taint // that the spec does not declare
}

// recordTemplate determines labels and taints of new nodes: those of the spec, corrected by the latest
// Ready node of the pool. Otherwise one node after the other would be launched for a pod that could
// only run on what the spec promises.
func (l *newNodes) recordTemplate(o *Observation) {
	declared := o.Spec.Template
	for _, s := range inOrder(o.Known) {
		switch n := o.Node(s.Instance.Instance); {
		case n == nil || !n.Ready:
		case s.Outdated == "":
			l.newest.record(n, o, o.hasTimeToJoin(s.Launched))
		case n.Object.CreationTimestamp.Time.Equal(l.newest.created):
			l.newest = joinedNode{} // new nodes will differ
		}
	}
	o.Template = declared
	o.Template.Labels = config.NodeLabels(o.Pool, declared.Labels)
	for key, value := range declared.Labels {
		if config.Factual(key) && (l.newest.labels == nil || l.newest.labels[key] == value) {
			o.Template.Labels[key] = value
		}
	}
	if l.newest.generation == o.Spec.Generation && o.At.Sub(l.newest.seen) < taintsKept {
		o.Template.Taints = slices.Concat(declared.Taints, l.newest.taints)
	}
}

// record records a Ready node. What it has while it joins counts: a taint that it loses before was
// temporary, and one that it gets later is specific to it.
func (j *joinedNode) record(n *cluster.Node, o *Observation, joins bool) {
	created := n.Object.CreationTimestamp.Time
	known := created.Equal(j.created) && j.generation == o.Spec.Generation
	if known {
		j.seen = o.At
	}
	if known && !joins { // a taint that it loses now does not apply to new nodes
		j.taints = slices.DeleteFunc(slices.Clone(j.taints), func(t corev1.Taint) bool {
			return !slices.ContainsFunc(n.Object.Spec.Taints, func(has corev1.Taint) bool { return has.MatchTaint(&t) })
		})
		return
	}
	if created.Before(j.created) {
		return
	}
	*j = joinedNode{created: created, seen: o.At, generation: o.Spec.Generation, labels: n.Object.Labels}
	if joins {
		j.taints = undeclared(n, o.Spec.Template)
	}
}

// undeclared returns the taints of a node that exclude pods, are not declared in the spec, and are
// not set temporarily by Kubernetes or an autoscaler.
func undeclared(n *cluster.Node, declared scheduling.Template) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Object.Spec.Taints), func(t corev1.Taint) bool {
		same := func(other corev1.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }
		return t.Effect == corev1.TaintEffectPreferNoSchedule || passes(t.Key) ||
			slices.ContainsFunc(declared.Taints, same) || slices.ContainsFunc(declared.StartupTaints, same)
	})
}

// passes reports whether taints with a key are set and removed during the life of a node, so that
// they do not apply to new ones.
func passes(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "node.kubernetes.io", "node.cloudprovider.kubernetes.io", "readiness.k8s.io", "karpenter.sh", "foresail.dev":
		return true
	}
	return strings.Contains(key, "ClusterAutoscaler")
}
