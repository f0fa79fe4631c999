// Package cluster is the model of the cluster for decisions about worker pools: nodes with their
// pods and requests, unschedulable pods, and the reasons why nodes must not be removed.
//
// [List] reads it once and a [Watcher] keeps it up to date. Both build it by the same pure
// function. Its objects lack the fields that no decision needs: managed fields, images,
// environments, scheduling preferences.
//
// The nodes that can use the volumes of a pod are found as the scheduler does. A bound volume has a
// node affinity. A claim that waits for a consumer gets its volume wherever its StorageClass
// allows, or on the node that was selected for it. A claim that does not wait must be bound before
// any node helps. Without a provisioner (kubernetes.io/no-provisioner) the claim gets one of the
// existing volumes that are free and large enough; volumes of new nodes are unknown. The number of
// volumes that can be attached to a node comes from its CSINode. Not considered are access modes
// and selectors of claims, the capacity that drivers report (CSIStorageCapacity), and
// ReadWriteOncePod.
package cluster

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is the state of a cluster at one moment. It is immutable.
type Cluster struct {
	At         time.Time
	Nodes      []Node              // by name
	Pending    []Pending           // longest waiting first
	DaemonSets []*appsv1.DaemonSet // by namespace and name, with the requests of their newest pods

	volumes map[*Pod]volumeRules // of bound pods with volumes
	budgets map[*Kind]*Budget    // of pods that have one
}

// Budget is the allowance of a PodDisruptionBudget for the pods that it protects.
type Budget struct {
	Name    string // with its namespace
	Allowed int    // pods that may be disrupted now
}

// volumeRules is the requirement of a pod's volumes on its node.
type volumeRules struct {
	at     []*corev1.NodeSelector
	stuck  string
	attach []Attachment // for a bound pod, those of its replacement
}

// Replacements returns the pods that controllers would create if the pods of a node were evicted,
// and the pods that are nominated to it, as if all of them were already pending. Ephemeral volumes
// would be recreated wherever the pod runs.
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
	// when it first became Ready, as far as is known; zero unless it is Ready
	Joined time.Time
	// sum of the requests of its pods, and as "pods" their number, without pods that have ended
	Requested  corev1.ResourceList
	DaemonSets corev1.ResourceList // the part of DaemonSets in it
	Movable    int                 // pods that would lose their node, without those of DaemonSets
	Blocked    string              // the first reason not to drain it, "" = none: a sentence without a full stop
	Pods       []*Pod              // all that have not ended, by namespace and name
	Leaving    bool                // it is being drained and will be deleted, see [Leaves]
	// EmptierAt is the last time at which the pods of a leaving or cordoned node became fewer, or when
	// that was first observed; zero = not observed, see [Cluster.Departing].
	EmptierAt time.Time
	// Nominated are pods that wait for room on the node to which the scheduler has nominated them
	// (status.nominatedNodeName). Requested includes their requests; they are not among Pods.
	Nominated []*Pod
	// Attached are the volumes that its pods use. Each counts once against AttachLimits, the number of
	// volumes of a driver that can be attached to the node. A driver that is missing there has no
	// known limit.
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
	keep        *keep // an annotation that blocks its disruption for a duration, nil = none
	unprotected bool  // no PodDisruptionBudget protects it: it has not started, or is terminating
	ready       bool
	daemonSet   types.UID // its DaemonSet, "" = none
	created     int64     // for pods of a DaemonSet, in seconds
}

// Kind is the common part of the pods of one controller, which share it if they are equal. It is
// read only.
type Kind struct {
	Namespace    string
	Labels       map[string]string
	Requests     corev1.ResourceList      // with one of "pods"
	AntiAffinity []corev1.PodAffinityTerm // required
	Ports        []corev1.ContainerPort   // of the host
	DaemonSet    bool

	class Class // if it is not terminating
	why   string

	// Requirements on the nodes of its pods, for those that may be evicted.
	nodeSelector map[string]string
	affinity     *corev1.Affinity
	tolerations  []corev1.Toleration
	spread       []corev1.TopologySpreadConstraint
}

// Stays reports whether the pod belongs to its node, such as one of a DaemonSet or the mirror of a
// static pod.
func (p *Pod) Stays() bool { return p.class == Ignored }

// EndsWithNode reports whether the pod tolerates the taint of a removal: it is not evicted, and
// ends with its node.
func (p *Pod) EndsWithNode() bool { return p.class == Tolerant }

// replacement returns an equal pod without a node, as far as scheduling is concerned.
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

// Pending is a pod for which the scheduler found no node (PodScheduled=False, reason
// Unschedulable). Pods that are being deleted are left out, and so are pods that are nominated to a
// schedulable node, which hold room there. A pod whose scheduling gates were removed late is
// unschedulable since the time that Kubernetes reports, which may be that of its creation.
type Pending struct {
	Pod   *corev1.Pod // read only
	Since time.Time   // time since which it has been unschedulable; never later than the Cluster's At
	// Filtered is set if at the last attempt the scheduler extender refused it all existing nodes
	// because of their predicted use. It is false for a pod that has been unschedulable since a time
	// in the future, by another clock, because it is unknown which nodes are older than its wait.
	Filtered bool
	// Volumes select the nodes that can use its volumes, in addition to its own rules. Its node must
	// match each of them.
	Volumes []*corev1.NodeSelector
	// Stuck is why no node at all could run it with its claims as they are, or none is known that
	// could, "" for no reason: a sentence without a full stop. Its volumes are unknown then.
	Stuck string
	// Gang is the group of pods that are scheduled together or not at all, "" = it is scheduled alone.
	Gang string
	// Attach are the volumes that must be attached to its node.
	Attach []Attachment
	// Bound is the pod that it would replace, nil for a pending one.
	Bound *Pod
	// Budget is the PodDisruptionBudget that protects the bound pod, nil if there is none.
	Budget *Budget
}
