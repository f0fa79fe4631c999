package extender

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// requestsOf returns what the scheduler reserves for a pod.
func requestsOf(p *corev1.Pod) use {
	r := resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true})
	return use{cpu: r.Cpu().MilliValue(), memory: r.Memory().Value()}
}

// estimateOf returns what a pod is expected to use once it serves. workloads may be nil.
func estimateOf(p *corev1.Pod, _ Workloads) use { return requestsOf(p) }
