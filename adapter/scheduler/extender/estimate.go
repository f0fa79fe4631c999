package extender

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/resource"
)

// The expected use of a pod without a forecast: a share of its requests, or of its limits where these are
// higher. A limit far above the request is only a safeguard: with it, a pod that requests 2 GiB and is limited
// to 24 would fit empty nodes alone. A pod without either is assumed to be small.
const (
	cpuShare    = 0.85
	memoryShare = 0.70

	// maxOfRequest caps the share of a limit that counts, in multiples of the request.
	maxOfRequest = 2

	// maxForecastOfRequest caps the forecast of a container without a limit, in multiples of its request. An
	// editor of a namespace can make any forecast for its pods, which would fill nodes that others need.
	maxForecastOfRequest = 10

	unknownCPU    = 250       // millicores
	unknownMemory = 200 << 20 // bytes
)

// requestsOf returns the requests of a pod as the scheduler sums them.
func requestsOf(p *corev1.Pod) use {
	r := resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true})
	return use{cpu: r.Cpu().MilliValue(), memory: r.Memory().Value()}
}

// estimateOf returns the expected use of a running pod. For each resource the first known value counts: the
// forecast of its workload, up to the limits of the pod, a share of its requests and limits, or a small amount.
// It is above 0. workloads may be nil.
func estimateOf(p *corev1.Pod, workloads Workloads) use {
	var u use
	if workloads != nil {
		cores, bytes := workloads.PodUse(p.Namespace, labels.Set(p.Labels))
		u = use{cpu: amountOf(cores * 1000), memory: amountOf(bytes)}
	}
	if u != (use{}) {
		most := requestsOf(declaring(p, maxForecast))
		u.cpu = min(u.cpu, firstAboveZero(most.cpu, maxForecastOfRequest*unknownCPU))
		u.memory = min(u.memory, firstAboveZero(most.memory, maxForecastOfRequest*unknownMemory))
	}
	if u.cpu > 0 && u.memory > 0 {
		return u
	}
	declared := requestsOf(declaring(p, declaredOf))
	if u.cpu <= 0 {
		u.cpu = firstAboveZero(amountOf(cpuShare*float64(declared.cpu)), unknownCPU)
	}
	if u.memory <= 0 {
		u.memory = firstAboveZero(amountOf(memoryShare*float64(declared.memory)), unknownMemory)
	}
	return u
}

// amountOf rounds up. Negative, infinite and NaN values become 0.
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

// declaring returns a pod whose requests are an amount of what its containers declare, so that the scheduler's
// sums apply.
func declaring(p *corev1.Pod, amount func(requests, limits corev1.ResourceList) corev1.ResourceList) *corev1.Pod {
	all := func(containers []corev1.Container) []corev1.Container {
		out := make([]corev1.Container, len(containers))
		for i, c := range containers {
			out[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy}
			out[i].Resources.Requests = amount(c.Resources.Requests, c.Resources.Limits)
		}
		return out
	}
	out := *p
	out.Spec.InitContainers, out.Spec.Containers = all(p.Spec.InitContainers), all(p.Spec.Containers)
	if r := p.Spec.Resources; r != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: amount(r.Requests, r.Limits)}
	}
	return &out
}

// maxForecast returns the upper bound of a forecast: the limit, or without one a multiple of the request.
func maxForecast(requests, limits corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if limit, limited := limits[name]; limited {
			out[name] = limit
		} else if most, requested := requests[name]; requested {
			most = most.DeepCopy()
			most.Mul(maxForecastOfRequest)
			out[name] = most
		}
	}
	return out
}

// declaredOf joins requests and limits: the limit, up to maxOfRequest times the request where there is one.
func declaredOf(requests, limits corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, requested := requests[name]
		limit, limited := limits[name]
		if requested || limited {
			out[name] = largerOf(request, bounded(limit, request))
		}
	}
	return out
}

func bounded(limit, request apiresource.Quantity) apiresource.Quantity {
	if request.Sign() <= 0 {
		return limit
	}
	if most := request.DeepCopy(); most.Mul(maxOfRequest) && most.Cmp(limit) < 0 {
		return most
	}
	return limit
}

func largerOf(a, b apiresource.Quantity) apiresource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
