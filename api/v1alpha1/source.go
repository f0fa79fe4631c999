package v1alpha1

import (
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Source configures where the metric is read from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.pods), has(self.prometheus), has(self.remoteWrite), has(self.resource)].filter(given, given).size() == 1",message="source must have exactly one of: pods, prometheus, remoteWrite, resource"
type Source struct {
	// Reads the metrics endpoint of every ready pod of the target, each second by default. This is the freshest source.
	// +optional
	Pods *PodsSource `json:"pods,omitempty"`

	// Queries a Prometheus server.
	// +optional
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`

	// Receives the samples that Prometheus servers, agents and collectors push to Foresail by remote write or OTLP.
	// +optional
	RemoteWrite *RemoteWriteSource `json:"remoteWrite,omitempty"`

	// Reads the CPU or memory use of the pods from metrics.k8s.io. Coarse: use it if there is no other source.
	// +optional
	Resource *ResourceSource `json:"resource,omitempty"`
}

// SourceNames returns the fields of Source, one for each kind of source, as they are written in YAML.
func SourceNames() []string { return fieldNames(reflect.TypeFor[Source]()) }

// fieldNames returns the names of a type's fields, as they are written in YAML.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// Name returns the field of s that is set, "" for none.
func (s *Source) Name() string {
	v := reflect.ValueOf(*s)
	for i, name := range SourceNames() {
		if !v.Field(i).IsNil() {
			return name
		}
	}
	return ""
}

// Counter reports whether the metric is a counter, whose rates are the samples.
func (s *Source) Counter() bool {
	switch {
	case s.Pods != nil:
		return s.Pods.Type == MetricCounter
	case s.Prometheus != nil:
		return s.Prometheus.Type == MetricCounter
	case s.RemoteWrite != nil:
		return s.RemoteWrite.Type == MetricCounter
	default:
		return false
	}
}

// Whole returns whether the source measures the target as a whole, and so has a load without any pod.
func (s *Source) Whole() bool {
	return s.Prometheus != nil && s.Prometheus.Scope == ScopeTarget || s.RemoteWrite != nil && s.RemoteWrite.Scope == ScopeTarget
}

// Interval returns how often the source is read, 0 if its samples are pushed. Defaults must have been filled in.
func (s *Source) Interval() time.Duration {
	switch {
	case s.Pods != nil:
		return s.Pods.Interval.Duration
	case s.Prometheus != nil:
		return s.Prometheus.Interval.Duration
	case s.Resource != nil:
		return ResourceInterval
	}
	return 0
}

// MetricType says how readings are turned into samples.
//
// +kubebuilder:validation:Enum=Gauge;Counter
type MetricType string

// The types of metric.
const (
	MetricGauge   MetricType = "Gauge"   // a reading is a sample
	MetricCounter MetricType = "Counter" // the rate per second between two readings is a sample
)

// Scope says what a series measures.
//
// +kubebuilder:validation:Enum=Pod;Target
type Scope string

// The scopes of a series.
const (
	ScopePod    Scope = "Pod"    // one pod of the target
	ScopeTarget Scope = "Target" // the target as a whole: it has a load without a pod, too
)

// PodsSource reads the metrics endpoint (Prometheus or OpenMetrics text over HTTP) of every ready pod of the target.
type PodsSource struct {
	// The port of the endpoint: a number, or the name of a container port.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]+$') ? int(string(self)) >= 1 && int(string(self)) <= 65535 : string(self).matches('^[a-z0-9]+(-[a-z0-9]+)*$') && string(self).matches('[a-z]')",message="source.pods.port must be a number from 1 to 65535 or the name of a container port, such as 9090 or metrics"
	Port intstr.IntOrString `json:"port"`

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

	// Gauge uses readings as they are; Counter uses the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`

	// Labels that select one series if a pod exposes several with this name.
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

// PrometheusSource reads the raw samples of the series that a selector finds.
type PrometheusSource struct {
	// The URL of the server, without /api/v1/query. Foresail's own configuration must list it, and has its credentials.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && url(self).getQuery().size() == 0 && !self.contains('#') && !self.contains('@')",message="source.prometheus.address must be an http or https URL without credentials, query and fragment, such as http://prometheus.monitoring:9090"
	Address string `json:"address"`

	// A selector of series, one for each pod unless scope says otherwise, such as nodejs_eventloop_utilization{container="checkout"}. A matcher for the
	// namespace of the PredictedMetric is added to it. Samples are read with their own timestamps, so functions and operators
	// cannot be used. PredictedMetrics of a namespace with the same address, query, pod label and interval share one query.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^#]*[^#[:space:]][^#]*$') && !self.matches(']$')",message="source.prometheus.query must be a selector of series without a range, such as nodejs_eventloop_utilization{container=\"checkout\"}"
	Query string `json:"query"`

	// What a series measures. Pod: the metric of the pod that podLabel names. Target: load of the whole target, such as the requests
	// at a gateway or the length of a queue; several series are added up, and threshold is the load that one pod can carry.
	// +optional
	// +default="Pod"
	Scope Scope `json:"scope,omitempty"`

	// The label of a series that names its pod, with scope Pod.
	// +optional
	// +default="pod"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.prometheus.podLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	PodLabel string `json:"podLabel,omitempty"`

	// Gauge uses readings as they are; Counter uses the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`

	// How often the server is queried. Its samples are no more frequent than its own scrape interval.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="source.prometheus.interval must be a duration from 1s to 1h, such as 5s"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// RemoteWriteSource receives samples by Prometheus remote write or OTLP. Names of OTLP are those that Prometheus gives them.
type RemoteWriteSource struct {
	// The name of the metric.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_:][a-zA-Z0-9_:]*$')",message="source.remoteWrite.metric must be the name of a Prometheus metric: letters, digits, _ and :, not starting with a digit"
	Metric string `json:"metric"`

	// Labels that select one series if a pod has several with this name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]*$'))",message="source.remoteWrite.matchLabels must have names of Prometheus labels as keys: letters, digits and _, not starting with a digit"
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// What the series measures. Pod: the metric of the pod that podLabel names. Target: the load of the whole target, such as the
	// length of a queue; it must be one series, and threshold is the load that one pod can carry.
	// +optional
	// +default="Pod"
	Scope Scope `json:"scope,omitempty"`

	// The label of a series that names its pod, with scope Pod.
	// +optional
	// +default="pod"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="source.remoteWrite.podLabel must be the name of a Prometheus label: letters, digits and _, not starting with a digit"
	PodLabel string `json:"podLabel,omitempty"`

	// Gauge uses readings as they are; Counter uses the rate per second between two of them.
	// +optional
	// +default="Gauge"
	Type MetricType `json:"type,omitempty"`
}

// ResourceName names a resource of metrics.k8s.io.
//
// +kubebuilder:validation:Enum=cpu;memory
type ResourceName string

// The resources: CPU in cores, memory in bytes.
const (
	ResourceCPU    ResourceName = "cpu"
	ResourceMemory ResourceName = "memory"
)

// ResourceInterval is how often metrics.k8s.io is read. metrics-server has a new value of a pod each 15 s by default, and a
// more frequent read finds the same one.
const ResourceInterval = 15 * time.Second

// ResourceSource reads metrics.k8s.io, which metrics-server serves. Its values are averages over 15 seconds or more.
type ResourceSource struct {
	// The resource: cpu (threshold in cores) or memory (threshold in bytes).
	// +required
	Name ResourceName `json:"name"`

	// The container whose use is read. Empty: the sum of all containers of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="source.resource.container must be the name of a container, or empty for the sum of all"
	Container string `json:"container,omitempty"`
}
