package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Source says where samples come from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.pods), has(self.prometheus), has(self.remoteWrite), has(self.resource)].filter(given, given).size() == 1",message="source must have exactly one of: pods, prometheus, remoteWrite, resource"
type Source struct {
	// Reads the metrics endpoint of every ready pod of the target: the freshest source, as every second is seen.
	// +optional
	Pods *PodsSource `json:"pods,omitempty"`

	// Asks a Prometheus server for the samples that it has.
	// +optional
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`

	// Takes the samples that Prometheus servers, agents and collectors push to Foresail by remote write.
	// +optional
	RemoteWrite *RemoteWriteSource `json:"remoteWrite,omitempty"`

	// Asks metrics.k8s.io for the CPU or memory that the pods use: coarse, for those who have nothing else.
	// +optional
	Resource *ResourceSource `json:"resource,omitempty"`
}

// Name is the field of s that is given, "" for none.
func (s *Source) Name() string {
	switch {
	case s.Pods != nil:
		return "pods"
	case s.Prometheus != nil:
		return "prometheus"
	case s.RemoteWrite != nil:
		return "remoteWrite"
	case s.Resource != nil:
		return "resource"
	}
	return ""
}

// Interval is how often the source reads or asks, 0 if it does not: what is pushed comes when it comes. Defaults must
// have been filled in.
func (s *Source) Interval() time.Duration {
	switch {
	case s.Pods != nil:
		return s.Pods.Interval.Duration
	case s.Prometheus != nil:
		return s.Prometheus.Interval.Duration
	case s.Resource != nil:
		return s.Resource.Interval.Duration
	}
	return 0
}

// MetricType says how readings become samples.
//
// +kubebuilder:validation:Enum=Gauge;Counter
type MetricType string

// The types of metric: what of a reading is a sample.
const (
	MetricGauge   MetricType = "Gauge"   // a reading is a sample
	MetricCounter MetricType = "Counter" // the rate per second between two readings is a sample
)

// PodsSource reads the metrics endpoint (Prometheus or OpenMetrics text over HTTP) of every ready pod of the target.
type PodsSource struct {
	// The port of the endpoint: a number, or the name of a container port.
	// +required
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$') ? int(self) >= 1 && int(self) <= 65535 : self.matches('^[a-z0-9]+(-[a-z0-9]+)*$') && self.matches('[a-z]')",message="source.pods.port must be a number from 1 to 65535 or the name of a container port, such as 9090 or metrics"
	Port string `json:"port"`

	// The path of the endpoint, with a query if it takes one.
	// +optional
	// +default="/metrics"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && isURL(self) && url(self).getHost() == ''",message="source.pods.path must be the path of a URL, starting with one /, such as /metrics"
	Path string `json:"path,omitempty"`

	// The name of the metric.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$')",message="source.pods.metric must be the name of a Prometheus metric: letters, digits, _ and :, not starting with a digit"
	Metric string `json:"metric"`

	// Gauge takes readings as they are; Counter takes the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`

	// Labels of the one series to read, where a pod exposes several of the name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]*$'))",message="source.pods.matchLabels must have names of Prometheus labels as keys: letters, digits and _, not starting with a digit"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// How often each pod is read.
	// +optional
	// +default="1s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms')",message="source.pods.interval must be a duration of at least 100ms, such as 1s"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// PrometheusSource asks a Prometheus server for the raw samples of the series that a selector finds.
type PrometheusSource struct {
	// The URL of the server, below which /api/v1/query is. Credentials for it are Foresail's own configuration.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && url(self).getQuery().size() == 0 && !self.contains('#') && !self.contains('@')",message="source.prometheus.address must be an http or https URL without credentials, query and fragment, such as http://prometheus.monitoring:9090"
	Address string `json:"address"`

	// A selector of series, one for each pod, such as nodejs_eventloop_utilization{namespace="shop"}. The samples are read
	// as they are stored, with their own times: functions and operators cannot be used. PredictedMetrics with the same
	// address, query, labels and interval share one query.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^#]*[^#[:space:]][^#]*$') && !self.matches(']$')",message="source.prometheus.query must be a selector of series without a range, such as nodejs_eventloop_utilization{namespace=\"shop\"}"
	Query string `json:"query"`

	// The label of a series that names its pod.
	// +optional
	// +default="pod"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.prometheus.podLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	PodLabel string `json:"podLabel,omitempty"`

	// The label of a series that names the namespace of its pod. Series of other namespaces are left out; one without
	// the label is taken to be of the namespace of the PredictedMetric.
	// +optional
	// +default="namespace"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.prometheus.namespaceLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	NamespaceLabel string `json:"namespaceLabel,omitempty"`

	// Gauge takes readings as they are; Counter takes the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`

	// How often the server is asked. What it has cannot be newer than its own scrape interval.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="source.prometheus.interval must be a duration of at least 1s, such as 5s"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// RemoteWriteSource takes samples that are pushed to Foresail by Prometheus remote write.
type RemoteWriteSource struct {
	// The name of the metric.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$')",message="source.remoteWrite.metric must be the name of a Prometheus metric: letters, digits, _ and :, not starting with a digit"
	Metric string `json:"metric"`

	// Labels of the one series of each pod, where a pod has several of the name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]*$'))",message="source.remoteWrite.matchLabels must have names of Prometheus labels as keys: letters, digits and _, not starting with a digit"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// The label of a series that names its pod.
	// +optional
	// +default="pod"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.remoteWrite.podLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	PodLabel string `json:"podLabel,omitempty"`

	// The label of a series that names the namespace of its pod. Series of other namespaces are left out; one without
	// the label is taken where one namespace alone has a pod of its name, else it is refused.
	// +optional
	// +default="namespace"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.remoteWrite.namespaceLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	NamespaceLabel string `json:"namespaceLabel,omitempty"`

	// Gauge takes readings as they are; Counter takes the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`
}

// ResourceName names a resource that metrics.k8s.io tells of.
//
// +kubebuilder:validation:Enum=cpu;memory
type ResourceName string

// The resources: CPU in cores, memory in bytes.
const (
	ResourceCPU    ResourceName = "cpu"
	ResourceMemory ResourceName = "memory"
)

// ResourceSource asks metrics.k8s.io, which metrics-server serves. Its values are averages over 15 seconds or more.
type ResourceSource struct {
	// The resource: cpu (threshold in cores) or memory (threshold in bytes).
	// +required
	Name ResourceName `json:"name"`

	// The container whose use counts. Empty: of all containers of the pod together.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// How often metrics.k8s.io is asked.
	// +optional
	// +default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="source.resource.interval must be a duration of at least 1s, such as 15s"
	Interval *metav1.Duration `json:"interval,omitempty"`
}
