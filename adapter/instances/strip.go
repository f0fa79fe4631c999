package instances

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StripPod is a cache.TransformFunc: it reduces a pod to the fields that this package reads, and those by which an
// informer identifies it, which is a small part of a usual pod. Anything else, and a pod already reduced, it returns as is.
func StripPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	return &corev1.Pod{
		TypeMeta: p.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:                       p.Name,
			Namespace:                  p.Namespace,
			UID:                        p.UID,
			ResourceVersion:            p.ResourceVersion,
			Labels:                     p.Labels,
			CreationTimestamp:          p.CreationTimestamp,
			DeletionTimestamp:          p.DeletionTimestamp,
			DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{
			Containers:     stripContainers(p.Spec.Containers),
			InitContainers: stripContainers(p.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:                 p.Status.Phase,
			Conditions:            stripConditions(p.Status.Conditions),
			PodIP:                 p.Status.PodIP,
			ContainerStatuses:     stripStatuses(p.Status.ContainerStatuses),
			InitContainerStatuses: stripStatuses(p.Status.InitContainerStatuses),
		},
	}, nil
}

// stripContainers keeps the containers that have named ports, with those alone.
func stripContainers(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range containers {
		var ports []corev1.ContainerPort
		for _, port := range containers[i].Ports {
			if port.Name != "" {
				ports = append(ports, corev1.ContainerPort{Name: port.Name, ContainerPort: port.ContainerPort, Protocol: port.Protocol})
			}
		}
		if ports != nil {
			out = append(out, corev1.Container{Name: containers[i].Name, Ports: ports})
		}
	}
	return out
}

// stripConditions keeps the Ready condition.
func stripConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	for _, c := range conditions {
		if c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}

// stripStatuses keeps the statuses of containers that have restarted.
func stripStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range statuses {
		if statuses[i].RestartCount > 0 {
			out = append(out, corev1.ContainerStatus{Name: statuses[i].Name, RestartCount: statuses[i].RestartCount})
		}
	}
	return out
}
