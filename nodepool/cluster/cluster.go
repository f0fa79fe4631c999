// Package cluster is the model of the cluster that worker pools decide by: nodes with their pods
// and requests, unschedulable pods, and the reasons why nodes must not be removed.
//
// [List] reads it once and a [Watcher] keeps it up to date; both build it by the same pure
// function. Objects in it lack the fields that no decision needs: managed fields, images,
// environments, preferences of scheduling.
//
// The nodes that can use the volumes of a pod are found as the scheduler does. A bound volume has a
// node affinity. A claim that waits for a node gets its volume wherever its StorageClass allows, or
// on the node that was chosen for it; one that does not wait must be bound before any node helps.
// Without a provisioner (kubernetes.io/no-provisioner) the claim gets one of the existing volumes
// that are free and large enough; volumes that a new node might bring are not known. The number of
// volumes that can be attached to a node comes from its CSINode. Not considered: access modes and
// selectors of claims, the capacity that drivers report (CSIStorageCapacity), and ReadWriteOncePod.
package cluster

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what was seen of a cluster at one moment. It is immutable.
type Cluster struct {
	At         time.Time
	Nodes      []Node              // by name
	Pending    []Pending           // those that have waited for longest first
	DaemonSets []*appsv1.DaemonSet // by namespace and name, with the requests of their newest pods

	volumes map[*Pod]where    // of bound pods that use any
	budgets map[*Kind]*Budget // of pods that one protects
}

// Budget is what a PodDisruptionBudget allows of the pods that it protects.
type Budget struct {
	Name    string // with its namespace
	Allowed int    // pods that may be disrupted now
}

// where is what the volumes of a pod demand of its node.
type where struct {
	at     []*corev1.NodeSelector
	stuck  string
	attach []Attachment // for a bound pod, of the one that would replace it
}

// Replacements returns the pods that controllers would create if those of a node were evicted, and the pods that
// are nominated to it, as if all of them were pending already. Ephemeral volumes would be created again, wherever
// that is.
func (c *Cluster) Replacements(n *Node) []Pending {
	var out []Pending
	for _, p := range n.Pods {
		if (p.class == Evictable || p.class == Tolerant) && !p.Leaving {
			out = append(out, c.replacement(p))
		}
	}
	for _, p := range n.Nominated {
		if p.class != Ignored {
			out = append(out, c.replacement(p))
		}
	}
	return out
}

func (c *Cluster) replacement(p *Pod) Pending {
	out := Pending{Pod: p.replacement(), Since: c.At, Bound: p}
	if at, ok := c.volumes[p]; ok {
		out.Volumes, out.Stuck, out.Attach = at.at, at.stuck, at.attach
	}
	if !p.unprotected {
		out.Budget = c.budgets[p.Kind]
	}
	return out
}

// Node is a Node with the pods that are bound to it.
type Node struct {
	Object     *corev1.Node // read only
	Ready      bool         // its Ready condition is True, and it has been since ReadySince
	ReadySince time.Time
	// when it became Ready for the first time, by all that is known; zero unless it is Ready
	Joined time.Time
	// all that its pods request, and as "pods" their number; those that have ended do not count
	Requested  corev1.ResourceList
	DaemonSets corev1.ResourceList // the part of DaemonSets in it
	Movable    int                 // pods that would lose their node, those of DaemonSets aside
	Blocked    string              // the first reason not to drain it, "" = none: a sentence without a full stop
	Pods       []*Pod              // all that have not ended, by namespace and name
	Leaving    bool                // it is being emptied and will be deleted, see [Leaves]
	// EmptierAt is when the pods of a node that leaves or is cordoned became fewer last, or when
	// this was first seen; zero = not observed, see [Cluster.Departing].
	EmptierAt time.Time
	// Nominated are pods that wait for room on the node which the scheduler has promised them
	// (status.nominatedNodeName). Requested includes what they request; they are not among Pods.
	Nominated []*Pod
	// Attached are the volumes that its pods use; each counts once against AttachLimits, the number of volumes of a
	// driver that can be attached to the node. A driver that is missing has no known limit.
	Attached     []Attachment
	AttachLimits map[string]int
}

// Attachment is a volume that must be attached to the node of a pod.
type Attachment struct {
	Driver string // of the container storage interface
	Volume string // its PersistentVolume, or namespace/name of a claim that has none yet
}

// Pod is a pod that is bound to a node.
type Pod struct {
	Name    string
	Leaving bool      // it is being deleted
	Owner   types.UID // its controller, "" = none
	*Kind
	keep        *keep // an annotation that keeps it for a time, nil = none
	unprotected bool  // no PodDisruptionBudget protects it: it has not started, or is leaving
	ready       bool
	daemonSet   types.UID // that it is of, "" = of none
	created     int64     // of a pod of a DaemonSet, in seconds
}

// Kind is what the pods of one controller have in common; they share it as far as they are alike. It is read only.
type Kind struct {
	Namespace    string
	Labels       map[string]string
	Requests     corev1.ResourceList      // with one of "pods"
	AntiAffinity []corev1.PodAffinityTerm // required
	Ports        []corev1.ContainerPort   // of the host
	DaemonSet    bool

	class Class // if it is not leaving
	why   string

	// Where its pods may run, as far as it is required; of those that may be evicted.
	nodeSelector map[string]string
	affinity     *corev1.Affinity
	tolerations  []corev1.Toleration
	spread       []corev1.TopologySpreadConstraint
}

// Stays reports whether the pod belongs to its node, as those of DaemonSets and mirrors of static ones do.
func (p *Pod) Stays() bool { return p.class == Ignored }

// EndsWithNode reports whether the pod tolerates the taint of a removal: it is not evicted, and
// ends when its node does.
func (p *Pod) EndsWithNode() bool { return p.class == Tolerant }

// replacement returns a pod like this one that has no node, as far as its place matters.
func (p *Pod) replacement() *corev1.Pod {
	requests := maps.Clone(p.Requests)
	delete(requests, corev1.ResourcePods)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}, Ports: p.Ports}},
			NodeSelector: p.nodeSelector, Affinity: p.affinity, Tolerations: p.tolerations, TopologySpreadConstraints: p.spread,
		},
	}
}

// Pending is a pod that the scheduler found no node for (PodScheduled=False, reason Unschedulable). One that is
// being deleted is none. Nor is one that is nominated to a node that takes pods: it holds its room there. A pod
// whose scheduling gates were opened late is unschedulable since the moment that Kubernetes gives, which can be
// that of its creation.
type Pending struct {
	Pod   *corev1.Pod // read only
	Since time.Time   // it has been unschedulable; never later than the Cluster's At
	// Filtered says that the scheduler extender refuses it all the nodes that there are, because of
	// what these are predicted to use: so it was when the scheduler tried last. It is false for a
	// pod that has been unschedulable since a time in the future, by another clock: which nodes are
	// older than its wait is unknown.
	Filtered bool
	// Volumes select the nodes that can use its volumes, in addition to its own rules: its node must match each.
	Volumes []*corev1.NodeSelector
	// Stuck is why no node at all could run it as things are with its claims, or is known that could, "" for no
	// reason: a sentence without a full stop. No volumes are known then.
	Stuck string
	// Gang is the group of pods that are scheduled together or not at all, "" = it is scheduled by itself.
	Gang string
	// Attach are the volumes that must be attached to its node.
	Attach []Attachment
	// Bound is the pod that it would replace, nil for one that is pending.
	Bound *Pod
	// Budget is the PodDisruptionBudget that protects the bound pod, nil if none does.
	Budget *Budget
}
