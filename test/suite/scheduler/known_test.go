package scheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// difference is a way in which the model answers otherwise than the scheduler, on purpose. Where
// the two would agree if the scheduler did as the variation says, the difference explains a
// disagreement.
type difference struct {
	name string
	why  string // it is safe
	is   variation
}

var differences = []difference{
	{
		"nodes that are cordoned or not Ready take no pods, not even those that tolerate it",
		"such pods are not pending for long: the scheduler binds them there. As homes such nodes would be none, as they may be about to go",
		variation{open: true},
	},
	{
		"namespaces are not selected by their labels",
		"an anti-affinity keeps more pods away and an affinity finds fewer: no node is removed that is needed, and no node is launched that does not help",
		variation{world: selectNoNamespaces},
	},
	{
		"nodes on their way count as domains that pods spread over",
		"the scheduler counts them some minutes later; no node is removed because of it",
		variation{coming: true},
	},
	{
		"new nodes come one after the other",
		"where some are in domains that have no nodes yet, pods spread over fewer domains until these are there; no node is launched that no pod needs",
		variation{slow: true},
	},
	{
		"it depends on the order of the pods whether all have a place",
		"the model tries one order, in which not all have: the node is kept",
		variation{worst: true},
	},
	{
		"pods that claim devices run nowhere",
		"no node is launched for them, and none that runs them is removed",
		variation{world: func(w *world) { w.Devices = nil }},
	},
	{
		"a free volume that was made by hand is there for any number of pending pods",
		"no node is launched for them: one more would not have such a volume",
		variation{world: volumesForAll},
	},
	{
		"pods of nodes that are cordoned or not Ready keep room on others",
		"such nodes are often being emptied or about to fail, so a removal that takes this room would leave pods without a node",
		variation{world: emptyUnusable},
	},
	{
		"pods that share a claim without a volume may get a node each",
		"it is not known where the volume will be; a node that does not help them is not followed by another at once",
		variation{world: ownClaims},
	},
	{
		"pods that are promised a node count as pods of its domains",
		"the scheduler counts them once they are bound, within moments; until then no node is launched in their place",
		variation{world: bindPromised},
	},
	{
		"any number of pods share a volume of the mode ReadWriteOncePod",
		"no node is launched for a pod whose volume another one holds: it would not help",
		variation{world: shareVolumes},
	},
}

// reasonOf returns the difference that explains a disagreement, "" if there is none.
func reasonOf(ctx context.Context, w *world, d disagreement) string {
	all := variation{world: func(w *world) {
		for _, known := range differences {
			if known.is.world != nil {
				known.is.world(w)
			}
		}
	}}
	for _, known := range differences {
		if explains(ctx, w, d, known.is) {
			return known.name
		}
		all.open, all.coming, all.slow = all.open || known.is.open, all.coming || known.is.coming, all.slow ||
			known.is.slow
	}
	if explains(ctx, w, d, all) {
		return "several of these"
	}
	return ""
}

func explains(ctx context.Context, w *world, d disagreement, v variation) bool {
	v.only = &d
	found, _, err := compare(ctx, w, v)
	return err == nil && !slices.ContainsFunc(found, d.alike)
}

// selectNoNamespaces has terms select all namespaces, or only those that they name.
func selectNoNamespaces(w *world) {
	terms := func(all []corev1.PodAffinityTerm, anti bool) {
		for i := range all {
			s := all[i].NamespaceSelector
			switch {
			case s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0:
			case anti:
				all[i].NamespaceSelector = &metav1.LabelSelector{}
			default:
				all[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"none": "none"}}
			}
		}
	}
	for _, p := range w.Pods {
		if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
			terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, false)
		}
		if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, true)
		}
	}
}

// volumesForAll has as many of each free volume as there are claims.
func volumesForAll(w *world) {
	for _, v := range w.Volumes {
		if v.Spec.ClaimRef != nil {
			continue
		}
		for i := range w.Claims {
			again := v.DeepCopy()
			again.Name += fmt.Sprint("-", i)
			w.Volumes = append(w.Volumes, again)
		}
	}
}

// emptyUnusable takes the pods of nodes away that are cordoned or not Ready.
func emptyUnusable(w *world) {
	w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool {
		n := w.node(p.Spec.NodeName)
		return n != nil && (n.Spec.Unschedulable || !isReady(n))
	})
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// ownClaims gives each pending pod claims of its own in place of those without a volume.
func ownClaims(w *world) {
	for _, p := range w.pending() {
		for i := range p.Spec.Volumes {
			source := p.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil {
				continue
			}
			at := slices.IndexFunc(w.Claims, func(c *corev1.PersistentVolumeClaim) bool {
				return c.Namespace == p.Namespace && c.Name == source.ClaimName && c.Spec.VolumeName == ""
			})
			if at < 0 {
				continue
			}
			own := w.Claims[at].DeepCopy()
			own.Name += "-of-" + p.Name
			w.Claims, source.ClaimName = append(w.Claims, own), own.Name
		}
	}
}

// bindPromised binds pods to the nodes that they are promised.
func bindPromised(w *world) {
	for _, p := range w.pending() {
		if node := p.Status.NominatedNodeName; node != "" {
			p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		}
	}
}

// shareVolumes has volumes be shared by the pods of a node.
func shareVolumes(w *world) {
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	for _, c := range w.Claims {
		c.Spec.AccessModes = once
	}
	for _, v := range w.Volumes {
		v.Spec.AccessModes = once
	}
}
