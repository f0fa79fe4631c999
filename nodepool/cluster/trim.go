package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/internal/objectcache"
)

// trimmedPod returns the part of a pod that its scheduling depends on.
func trimmedPod(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, CreationTimestamp: p.CreationTimestamp,
			Labels: objectcache.InternLabels(p.Labels), OwnerReferences: p.OwnerReferences,
		},
		Spec: trimmedSpec(&p.Spec),
	}
	out.Status.NominatedNodeName = p.Status.NominatedNodeName
	return out
}

// trimmedSpec returns what the scheduler must respect: requests, host ports, and placement rules.
func trimmedSpec(s *corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		InitContainers: trimmedContainers(s.InitContainers), Containers: trimmedContainers(s.Containers),
		Overhead: s.Overhead, Resources: s.Resources,
		NodeSelector: s.NodeSelector, Affinity: trimmedAffinity(s.Affinity), Tolerations: s.Tolerations,
		HostNetwork: s.HostNetwork, Priority: s.Priority, PriorityClassName: s.PriorityClassName,
		TopologySpreadConstraints: trimmedSpread(s.TopologySpreadConstraints),
	}
}

func trimmedSpread(all []corev1.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	var out []corev1.TopologySpreadConstraint
	for _, c := range all {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			out = append(out, c)
		}
	}
	return out
}

func trimmedContainers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(all))
	for i := range all {
		out[i] = corev1.Container{Name: all[i].Name, Resources: all[i].Resources, RestartPolicy: all[i].RestartPolicy}
		out[i].Ports = appendHostPorts(nil, &all[i])
	}
	return out
}

func trimmedAffinity(a *corev1.Affinity) *corev1.Affinity {
	if a == nil {
		return nil
	}
	var out corev1.Affinity
	if n := a.NodeAffinity; n != nil && n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		out.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: n.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAntiAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if out == (corev1.Affinity{}) {
		return nil
	}
	return &out
}

func trimmedNode(n *corev1.Node) *corev1.Node {
	out := *n
	out.ManagedFields = nil
	out.Status.Images, out.Status.VolumesInUse, out.Status.VolumesAttached = nil, nil, nil
	return &out
}

func trimmedDaemonSet(d *appsv1.DaemonSet) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, UID: d.UID},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: d.Spec.Template.Labels},
			Spec:       trimmedSpec(&d.Spec.Template.Spec),
		}},
	}
}
