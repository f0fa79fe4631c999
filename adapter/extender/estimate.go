package extender

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/resource"
)

// What a pod is expected to use whose workload is not forecast: shares of what its containers request, or may use where
// that is more. Of one that says nothing of a resource, what small pods use of it.
const (
	cpuShare    = 0.85
	memoryShare = 0.70

	unknownCPU    = 250       // millicores
	unknownMemory = 200 << 20 // bytes
)

// requestsOf returns what the scheduler reserves for a pod.
func requestsOf(p *corev1.Pod) use {
	r := resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true})
	return use{cpu: r.Cpu().MilliValue(), memory: r.Memory().Value()}
}

// estimateOf returns what a pod is expected to use once it serves, of each resource the first of these that is known:
// what a pod of its workload is predicted to use, a share of what it declares, and a small amount. It is above 0.
// workloads may be nil.
func estimateOf(p *corev1.Pod, workloads Workloads) use {
	var u use
	if workloads != nil {
		cores, bytes := workloads.PodUse(p.Namespace, labels.Set(p.Labels))
		u = use{cpu: amountOf(cores * 1000), memory: amountOf(bytes)}
	}
	if u.cpu > 0 && u.memory > 0 {
		return u
	}
	declared := requestsOf(declaring(p))
	if u.cpu <= 0 {
		u.cpu = firstAboveZero(amountOf(cpuShare*float64(declared.cpu)), unknownCPU)
	}
	if u.memory <= 0 {
		u.memory = firstAboveZero(amountOf(memoryShare*float64(declared.memory)), unknownMemory)
	}
	return u
}

// amountOf rounds up, and takes what is no amount for none.
func amountOf(x float64) int64 {
	if !(x > 0) || x >= math.MaxInt64/1024 {
		return 0
	}
	return int64(math.Ceil(x))
}

func firstAboveZero(a, b int64) int64 {
	if a > 0 {
		return a
	}
	return b
}

// declaring returns a pod each container of which requests all that it may use. The scheduler's sums of it are then those
// of the larger of both.
func declaring(p *corev1.Pod) *corev1.Pod {
	out := *p
	out.Spec.InitContainers, out.Spec.Containers = declaringAll(p.Spec.InitContainers), declaringAll(p.Spec.Containers)
	if r := p.Spec.Resources; r != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: larger(r.Requests, r.Limits)}
	}
	return &out
}

func declaringAll(all []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(all))
	for i, c := range all {
		out[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy}
		out[i].Resources.Requests = larger(c.Resources.Requests, c.Resources.Limits)
	}
	return out
}

func larger(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		x, inA := a[name]
		y, inB := b[name]
		if inA || inB {
			out[name] = largerOf(x, y)
		}
	}
	return out
}

func largerOf(a, b apiresource.Quantity) apiresource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
