package extender

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const mib = 1 << 20

// declared is a container; what is "" is not declared.
func declared(name, cpuRequest, cpuLimit, memoryRequest, memoryLimit string) corev1.Container {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			out[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return out
	}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{
		Requests: list(cpuRequest, memoryRequest), Limits: list(cpuLimit, memoryLimit),
	}}
}

func resources(cpuRequest, cpuLimit, memoryRequest, memoryLimit string) *corev1.ResourceRequirements {
	c := declared("", cpuRequest, cpuLimit, memoryRequest, memoryLimit)
	return &c.Resources
}

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: containers}}
}

func sidecar(c corev1.Container) corev1.Container {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

// predicted predicts one amount for pods of the app web in the namespace shop.
type predicted struct{ cores, bytes float64 }

func (p predicted) PodUse(namespace string, pod labels.Set) (cores, bytes float64) {
	if namespace == "shop" && pod["app"] == "web" {
		return p.cores, p.bytes
	}
	return 0, 0
}

func TestEstimate(t *testing.T) {
	withInit := func(p *corev1.Pod, init ...corev1.Container) *corev1.Pod {
		p.Spec.InitContainers = init
		return p
	}
	other := podOf(declared("a", "1", "", "100Mi", ""))
	other.Namespace = "else"
	overhead := podOf(declared("a", "1", "", "100Mi", ""))
	overhead.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	whole := podOf(declared("a", "1", "", "100Mi", ""))
	whole.Spec.Resources = resources("2", "3", "1000Mi", "1000Mi")
	guarded := podOf(declared("a", "1", "", "100Mi", ""))
	guarded.Spec.Resources = resources("1", "9", "1000Mi", "9000Mi")
	resized := podOf(declared("a", "1", "", "100Mi", ""))
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Resources: resources("2", "", "200Mi", "")}}
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		workloads Workloads
		want      use
	}{
		"what it requests": {podOf(declared("a", "1", "", "100Mi", "")), nil,
			use{850, 70 * mib}},
		"what it may use, where more": {podOf(declared("a", "1", "1500m", "100Mi", "180Mi")), nil,
			use{1275, 126 * mib}},
		"up to twice what it requests": {podOf(declared("a", "1", "2001m", "5Gi", "24Gi")), nil,
			use{1700, 7 * gib}},
		"that of each container by itself": {podOf(declared("a", "100m", "8", "100Mi", "8Gi"),
			declared("b", "", "1", "800Mi", "")), nil, use{1020, 700 * mib}},
		"all, where it requests nothing": {podOf(declared("a", "0", "2", "", "20Gi")), nil,
			use{1700, 14 * gib}},
		"what it may use is less": {podOf(declared("a", "1", "500m", "100Mi", "50Mi")), nil,
			use{850, 70 * mib}},
		"of containers each by its own": {podOf(declared("a", "1", "", "300Mi", ""),
			declared("b", "", "2", "", "100Mi")), nil, use{2550, 280 * mib}},
		"nothing declared": {podOf(corev1.Container{Name: "a"}), nil,
			use{250, 200 * mib}},
		"one of both declared": {podOf(declared("a", "100m", "", "", "")), nil,
			use{85, 200 * mib}},
		"zero is nothing": {podOf(declared("a", "0", "0", "0", "0")), nil,
			use{250, 200 * mib}},
		"the least is one of its unit": {podOf(declared("a", "1m", "", "1", "")), nil, use{1, 1}},
		"the largest of init containers": {withInit(podOf(declared("a", "1", "", "100Mi", "")),
			declared("i", "2", "", "50Mi", "")), nil, use{1700, 70 * mib}},
		"sidecars beside": {withInit(podOf(declared("a", "1", "", "100Mi", "")),
			sidecar(declared("s", "", "1", "", "100Mi"))), nil, use{1700, 140 * mib}},
		"with its overhead":                                       {overhead, nil, use{935, 70 * mib}},
		"declared of the whole pod":                               {whole, nil, use{2550, 700 * mib}},
		"declared of it with a guard":                             {guarded, nil, use{1700, 1400 * mib}},
		"what it has been given, where more than it asks for now": {resized, nil, use{1700, 140 * mib}},
		"what is predicted": {podOf(declared("a", "1", "", "100Mi", "")),
			predicted{0.3, 30 * mib}, use{300, 30 * mib}},
		"predicted for one": {podOf(declared("a", "1", "", "100Mi", "")),
			predicted{0.3, 0}, use{300, 70 * mib}},
		"predicted for others": {other, predicted{0.3, 30 * mib}, use{850, 70 * mib}},
		"predicted beyond its limits": {podOf(declared("a", "1", "2", "62Mi", "100Mi")),
			predicted{800, 8e11}, use{2000, 100 * mib}},
		"predicted beyond its requests": {podOf(declared("a", "1", "", "62Mi", "")),
			predicted{800, 8e11}, use{10_000, 620 * mib}},
		"predicted beyond what is limited in part": {podOf(declared("a", "", "", "62Mi", "100Mi"),
			declared("b", "1", "", "10Mi", "")), predicted{0.3, 8e11}, use{300, 200 * mib}},
		"predicted beyond what a pod of nothing declared has": {podOf(corev1.Container{Name: "a"}),
			predicted{800, 8e11}, use{2500, 2000 * mib}},
		"predicted is no amount": {podOf(declared("a", "1", "", "100Mi", "")),
			predicted{math.NaN(), math.Inf(1)}, use{850, 70 * mib}},
		"predicted is negative": {podOf(declared("a", "1", "", "100Mi", "")),
			predicted{-1, -1}, use{850, 70 * mib}},
	} {
		before := c.pod.DeepCopy()
		assert.Equal(t, c.want, estimateOf(c.pod, c.workloads), name)
		assert.Equal(t, before, c.pod, name)
	}
}

func TestRequestsMatchTheScheduler(t *testing.T) {
	p := podOf(declared("a", "1", "2", "100Mi", ""), declared("b", "100m", "", "", "50Mi"))
	p.Spec.InitContainers = []corev1.Container{declared("i", "500m", "", "400Mi", ""),
		sidecar(declared("s", "50m", "", "1Mi", ""))}
	assert.Equal(t, use{1150, 400 * mib}, requestsOf(p))
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Resources: resources("3", "", "", "")}}
	assert.Equal(t, use{3150, 400 * mib}, requestsOf(p), "it is being made smaller")
}
