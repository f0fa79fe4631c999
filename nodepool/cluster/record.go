package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/objectcache"
)

// record is the part of a pod that decisions need. For a bound pod it is little more than a
// reference to the common part of its kind, for a pending one everything that scheduling depends
// on.
type record struct {
	key      types.NamespacedName
	owner    types.UID // its controller
	node     string    // to which it is bound
	pod      *Pod      // of a bound pod
	pending  *corev1.Pod
	since    time.Time // of a pending one
	filtered bool      // of a pending one: because of the load of nodes
	claims   []claimRef
	gang     string // of a pending one: see [Pending.Gang]
	devices  bool   // it claims devices (dynamic resource allocation)
}

// recordOf returns nil for a pod that no decision needs: it has ended, or is neither bound nor
// unschedulable.
func recordOf(p *corev1.Pod) *record {
	r := &record{key: types.NamespacedName{Namespace: objectcache.Intern(p.Namespace), Name: p.Name}}
	for _, o := range p.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			r.owner = o.UID
		}
	}
	r.devices = len(p.Spec.ResourceClaims) > 0
	unschedulable := Unschedulability(p)
	switch {
	case Ended(p):
		return nil
	case p.Spec.NodeName != "":
		r.node = objectcache.Intern(p.Spec.NodeName)
		r.pod = &Pod{Name: p.Name, Kind: kindOf(p), Leaving: p.DeletionTimestamp != nil, Owner: r.owner, ready: isReady(p)}
		r.pod.keep = keepOf(p.Annotations, startOf(p))
		r.pod.unprotected = r.pod.Leaving || p.Status.Phase == corev1.PodPending
		r.claims = claimsOf(p)
		if r.pod.DaemonSet {
			r.pod.daemonSet, r.pod.created = r.owner, p.CreationTimestamp.Unix()
		}
	case unschedulable != nil && p.DeletionTimestamp == nil:
		r.pending, r.since, r.claims = trimmedPod(p), unschedulable.LastTransitionTime.Time, claimsOf(p)
		if r.since.IsZero() {
			r.since = p.CreationTimestamp.Time
		}
		r.gang = gangOf(p)
		r.filtered = strings.Contains(unschedulable.Message, v1alpha1.FilteredForLoad)
	default:
		return nil
	}
	return r
}

// claimRef is a claim that a pod uses.
type claimRef struct {
	name      string
	ephemeral bool // it ends with the pod
}

// claimsOf returns the claims that a pod uses, including those of its ephemeral volumes.
func claimsOf(p *corev1.Pod) []claimRef {
	var out []claimRef
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, claimRef{name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out = append(out, claimRef{ephemeral.VolumeClaimName(p, v), true})
		}
	}
	return out
}

// Unschedulability returns the condition by which the scheduler reports that it found no node for a
// pod, nil if there is none. The condition of a gated pod has another reason.
func Unschedulability(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func kindOf(p *corev1.Pod) *Kind {
	k := &Kind{
		Namespace: objectcache.Intern(p.Namespace),
		Labels:    objectcache.InternLabels(p.Labels),
		Requests:  Requests(p),
		Ports:     HostPorts(&p.Spec),
		DaemonSet: IsDaemonSets(p),
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		k.AntiAffinity = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if k.class, k.why = classify(p); k.class == Evictable || k.class == Tolerant {
		// each pod of a DaemonSet has its own affinity, to its node
		k.nodeSelector, k.affinity, k.tolerations = p.Spec.NodeSelector, trimmedAffinity(p.Spec.Affinity), p.Spec.Tolerations
		k.spread = trimmedSpread(p.Spec.TopologySpreadConstraints)
	}
	return k
}

// kinds are the latest kinds, by controller.
type kinds map[types.UID]*Kind

// share lets equal pods of one controller share their kind.
func (k kinds) share(r *record) {
	if r == nil || r.pod == nil || r.owner == "" {
		return
	}
	if last := k[r.owner]; last != nil && last.equal(r.pod.Kind) {
		r.pod.Kind = last
		return
	}
	k[r.owner] = r.pod.Kind
}

// equal reports whether pods of two kinds are equal for decisions.
func (k *Kind) equal(other *Kind) bool {
	return k.Namespace == other.Namespace && k.DaemonSet == other.DaemonSet &&
		k.class == other.class && k.why == other.why &&
		maps.Equal(k.Labels, other.Labels) && slices.Equal(k.Ports, other.Ports) &&
		equalRequests(k.Requests, other.Requests) && k.equalRules(other)
}

// equalRules reports whether pods of two kinds may run on the same nodes.
func (k *Kind) equalRules(other *Kind) bool {
	return (len(k.AntiAffinity)+len(other.AntiAffinity) == 0 ||
		equality.Semantic.DeepEqual(k.AntiAffinity, other.AntiAffinity)) &&
		maps.Equal(k.nodeSelector, other.nodeSelector) &&
		slices.EqualFunc(k.tolerations, other.tolerations,
			func(a, b corev1.Toleration) bool { return a.MatchToleration(&b) }) &&
		(k.affinity == nil && other.affinity == nil || equality.Semantic.DeepEqual(k.affinity, other.affinity)) &&
		(len(k.spread)+len(other.spread) == 0 || equality.Semantic.DeepEqual(k.spread, other.spread))
}

func equalRequests(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
