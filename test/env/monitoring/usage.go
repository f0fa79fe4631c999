package monitoring

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/test/env/workload"
)

// What a container uses beside its work. metrics-server takes a container that used no processor
// time at all for one that was not measured; a real one has used some by the time it runs.
const (
	startCPU         = 0.001            // seconds
	idleMemory       = 32 * 1024 * 1024 // bytes
	memoryPerRequest = 64 * 1024        // bytes, waiting or in service
)

// podUsage is what a pod has used up to one moment. Its first container does the work, others are idle.
type podUsage struct {
	pod  *corev1.Pod
	at   time.Time
	busy float64 // seconds that its event loop was busy since it began
	held float64 // requests waiting and in service
}

// readUsage asks a pod that test/env/workload serves.
func readUsage(ctx context.Context, client *http.Client, pod *corev1.Pod) (podUsage, error) {
	address, err := workload.MetricsAddress(pod)
	if err != nil {
		return podUsage{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address.String()+"/metrics", nil)
	if err != nil {
		return podUsage{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return podUsage{}, err
	}
	defer func() { _ = response.Body.Close() }()
	at := time.Now()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return podUsage{}, err
	}
	busy, held := single(families["workload_busy_seconds_total"]), single(families["workload_queue_length"])
	if busy == nil || held == nil {
		return podUsage{}, fmt.Errorf("http://%s/metrics: %s: no workload's series", address, response.Status)
	}
	return podUsage{pod: pod, at: at, busy: busy.GetCounter().GetValue(), held: held.GetGauge().GetValue()}, nil
}

// single returns the only series of a family, or nil.
func single(family *dto.MetricFamily) *dto.Metric {
	if len(family.GetMetric()) != 1 {
		return nil
	}
	return family.GetMetric()[0]
}

// cpu returns seconds of all containers.
func (u podUsage) cpu() float64 { return u.busy + startCPU*float64(len(u.pod.Spec.Containers)) }

// memory returns bytes of all containers.
func (u podUsage) memory() float64 {
	return u.held*memoryPerRequest + idleMemory*float64(len(u.pod.Spec.Containers))
}

// nodeCollector exposes, in the form of a kubelet's /metrics/resource, what a node and its pods have used.
type nodeCollector struct {
	usages []podUsage
	cpu    float64 // seconds, of the node
	at     time.Time
}

// resourceMetric is one of the series and how it is written: with the time it was measured, but for
// the start of a container.
type resourceMetric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
}

func resource(name, help string, kind prometheus.ValueType, labels ...string) resourceMetric {
	return resourceMetric{prometheus.NewDesc(name, help, labels, nil), kind}
}

var (
	nodeCPU = resource("node_cpu_usage_seconds_total", "Cumulative cpu time consumed by the node in core-seconds.",
		prometheus.CounterValue)
	nodeMemory = resource("node_memory_working_set_bytes", "Current working set of the node in bytes.",
		prometheus.GaugeValue)
	containerCPU = resource("container_cpu_usage_seconds_total",
		"Cumulative cpu time consumed by the container in core-seconds.",
		prometheus.CounterValue, "container", "pod", "namespace")
	containerMemory = resource("container_memory_working_set_bytes", "Current working set of the container in bytes.",
		prometheus.GaugeValue, "container", "pod", "namespace")
	containerStart = resource("container_start_time_seconds",
		"Start time of the container since unix epoch in seconds.",
		prometheus.GaugeValue, "container", "pod", "namespace")
	podCPU = resource("pod_cpu_usage_seconds_total", "Cumulative cpu time consumed by the pod in core-seconds.",
		prometheus.CounterValue, "pod", "namespace")
	podMemory = resource("pod_memory_working_set_bytes", "Current working set of the pod in bytes.",
		prometheus.GaugeValue, "pod", "namespace")
	scrapeError = resource("resource_scrape_error",
		"1 if there was an error while getting container metrics, 0 otherwise.", prometheus.GaugeValue)
)

func (m resourceMetric) at(at time.Time, value float64, labels ...string) prometheus.Metric {
	return prometheus.NewMetricWithTimestamp(at, m.untimed(value, labels...))
}

func (m resourceMetric) untimed(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.description, m.kind, value, labels...)
}

// Describe leaves the collector unchecked: the series depend on the pods.
func (nodeCollector) Describe(chan<- *prometheus.Desc) {}

func (n nodeCollector) Collect(out chan<- prometheus.Metric) {
	memory := float64(idleMemory)
	for _, usage := range n.usages {
		memory += usage.memory()
		usage.collect(out)
	}
	out <- nodeCPU.at(n.at, n.cpu)
	out <- nodeMemory.at(n.at, memory)
	out <- scrapeError.untimed(0)
}

func (u podUsage) collect(out chan<- prometheus.Metric) {
	pod, namespace := u.pod.Name, u.pod.Namespace
	out <- podCPU.at(u.at, u.cpu(), pod, namespace)
	out <- podMemory.at(u.at, u.memory(), pod, namespace)
	for i, container := range u.pod.Spec.Containers {
		cpu, memory := startCPU, float64(idleMemory)
		if i == 0 {
			cpu += u.busy
			memory += u.held * memoryPerRequest
		}
		out <- containerCPU.at(u.at, cpu, container.Name, pod, namespace)
		out <- containerMemory.at(u.at, memory, container.Name, pod, namespace)
		if start, ok := started(u.pod, container.Name); ok {
			out <- containerStart.untimed(float64(start.UnixNano())/float64(time.Second), container.Name, pod,
				namespace)
		}
	}
}

// started returns when a container began to run, if it has.
func started(pod *corev1.Pod, container string) (time.Time, bool) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.State.Running != nil {
			return status.State.Running.StartedAt.Time, true
		}
	}
	return time.Time{}, false
}
