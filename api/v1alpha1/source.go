package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Source says where samples come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.pods)",message="source must have exactly one of: pods"
type Source struct {
	// Reads the metrics endpoint of every ready pod of the target.
	// +optional
	Pods *PodsSource `json:"pods,omitempty"`
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
