package nodeusage

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/internal/metricsapi"
	"github.com/foresail/foresail/pipeline"
)

// Resource is a resource of nodes that is forecast.
type Resource string

// The resources.
const (
	CPU    Resource = "cpu"    // in cores
	Memory Resource = "memory" // the working set, in bytes
)

// Reading has the samples of one resource of one node.
type Reading struct {
	Node     string // its name
	Resource Resource
	// the time before each sample that it covers: it is the mean of that, or from some moment in it;
	// 0: it is of its own moment
	Window  time.Duration
	Samples []pipeline.Sample // in order; some may have been read before
}

// Source reads the use of nodes.
type Source interface {
	// Read returns what is new since the last call; the first one covers the window if the source has
	// a history. It may return both readings and an error. Calls do not overlap, and come about once
	// an interval.
	Read(ctx context.Context, now time.Time) ([]Reading, error)
}

// readTimeout is how long a list of MetricsAPI may take, and by default a query of Prometheus.
const readTimeout = 10 * time.Second

// MetricsAPI reads metrics.k8s.io, which metrics-server serves. It has no history: after a start
// the first forecast takes four intervals, or four times the distance of samples if that is longer.
type MetricsAPI struct {
	// Client lists NodeMetrics.
	Client metricsclient.NodeMetricsesGetter
}

// Read implements Source. It leaves out nodes with incomplete NodeMetrics.
func (m *MetricsAPI) Read(ctx context.Context, _ time.Time) ([]Reading, error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list, err := m.Client.NodeMetricses().List(limited, metav1.ListOptions{})
	if err != nil {
		asked := metricsapi.List{What: "the NodeMetrics", Grant: "the resource nodes of metrics.k8s.io",
			Timeout: readTimeout}
		return nil, asked.Explain(err, limited.Err() != nil)
	}
	out := make([]Reading, 0, 2*len(list.Items))
	samples := make([]pipeline.Sample, 0, 2*len(list.Items)) // of all readings
	for i := range list.Items {
		for _, resource := range []Resource{CPU, Memory} {
			if s, ok := sampleOf(&list.Items[i], resource); ok {
				n := len(samples)
				samples = append(samples, s)
				out = append(out, Reading{
					Node: list.Items[i].Name, Resource: resource, Samples: samples[n : n+1 : n+1],
					Window: averagingWindow(&list.Items[i], resource),
				})
			}
		}
	}
	return out, nil
}

// sampleOf returns the sample of a resource. Whether it is acceptable is decided by the table.
func sampleOf(m *v1beta1.NodeMetrics, r Resource) (s pipeline.Sample, ok bool) {
	usage, ok := m.Usage[corev1.ResourceName(r)]
	if !ok || m.Timestamp.IsZero() {
		return s, false
	}
	return pipeline.Sample{T: m.Timestamp.UnixMilli(), V: usage.AsApproximateFloat64()}, true
}

// averagingWindow returns the time that a sample is the mean over: CPU is the rate of a counter,
// memory a reading at the timestamp.
func averagingWindow(m *v1beta1.NodeMetrics, r Resource) time.Duration {
	if r == Memory {
		return 0
	}
	return max(0, m.Window.Duration)
}
