package cluster

import (
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

var onePod = quantity.MustParse("1")

// Requests returns the resources that the scheduler reserves for a pod, and one of "pods".
func Requests(p *corev1.Pod) corev1.ResourceList {
	r := resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true})
	r[corev1.ResourcePods] = onePod
	return r
}

// HostPorts returns the host ports that the containers and sidecars of a pod use.
func HostPorts(spec *corev1.PodSpec) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, c := range spec.Containers {
		out = appendHostPorts(out, &c)
	}
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = appendHostPorts(out, &c)
		}
	}
	return out
}

func appendHostPorts(out []corev1.ContainerPort, c *corev1.Container) []corev1.ContainerPort {
	for _, port := range c.Ports {
		if port.HostPort > 0 {
			out = append(out, corev1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
		}
	}
	return out
}
