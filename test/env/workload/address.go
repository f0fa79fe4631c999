package workload

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Names of container ports, and the ports of a pod that names none.
const (
	AppPortName     = "http"
	MetricsPortName = "metrics"

	DefaultAppPort     uint16 = 8080
	DefaultMetricsPort uint16 = 9090
)

// ServiceTimeAnnotation sets Model.ServiceTime of one pod, as a Go duration such as "20ms".
const ServiceTimeAnnotation = "test.foresail.dev/service-time"

// AppAddress returns where a pod serves requests. The pod must have an IP.
func AppAddress(pod *corev1.Pod) (netip.AddrPort, error) {
	return address(pod, AppPortName, DefaultAppPort)
}

// MetricsAddress returns where a pod serves /metrics. The pod must have an IP.
func MetricsAddress(pod *corev1.Pod) (netip.AddrPort, error) {
	return address(pod, MetricsPortName, DefaultMetricsPort)
}

func address(pod *corev1.Pod, portName string, otherwise uint16) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("pod %s/%s: status.podIP: %w", pod.Namespace, pod.Name, err)
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == portName {
				return netip.AddrPortFrom(ip, uint16(port.ContainerPort)), nil
			}
		}
	}
	return netip.AddrPortFrom(ip, otherwise), nil
}

// modelOf returns the model that a pod's annotations ask for, on top of a base.
func modelOf(pod *corev1.Pod, base Model) (Model, error) {
	value, given := pod.Annotations[ServiceTimeAnnotation]
	if !given {
		return base, nil
	}
	serviceTime, err := time.ParseDuration(value)
	if err != nil {
		return Model{}, fmt.Errorf("annotation %s: %w", ServiceTimeAnnotation, err)
	}
	base.ServiceTime = serviceTime
	if err := base.Validate(); err != nil {
		return Model{}, fmt.Errorf("annotation %s: %w", ServiceTimeAnnotation, err)
	}
	return base, nil
}
