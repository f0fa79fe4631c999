package resource

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/metricsapi"
)

// Options of a Source; only Client must be set.
type Options struct {
	// Client lists PodMetrics. Its rate limit must allow one list per namespace and interval, the
	// shortest of its PredictedMetrics.
	Client metricsv1beta1.PodMetricsesGetter
	// Timeout is how long a list may take. 0 = 10 s.
	Timeout time.Duration
	// MaxBackoff is the longest time between two lists while they fail, at least 1 s. 0 = 1 min.
	MaxBackoff time.Duration
	// Concurrency is the maximum number of lists at the same time. 0 = 8.
	Concurrency int
	// Registerer registers the metrics of the source; nil = none.
	Registerer prometheus.Registerer
	// Now is the clock for the ages of pods; nil = time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Registration registers this source.
func Registration() source.Registration {
	return source.Registration{
		Name: "resource",
		New: func(env source.Environment) (source.Source, error) {
			client, err := metricsclient.NewForConfigAndClient(env.Cluster, env.HTTPClient)
			if err != nil {
				return nil, fmt.Errorf("make a client for metrics.k8s.io: %w", err)
			}
			return registered{New(Options{Client: client.MetricsV1beta1(), Registerer: env.Registerer})}, nil
		},
	}
}

// registered is a Source that is set by the spec of a PredictedMetric.
type registered struct{ *Source }

// Set implements source.Source.
func (r registered) Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	fleet *podtracker.TargetPods, sink source.Sink) error {
	r.Source.Set(key, configOf(spec.Source.Resource), fleet, sink)
	return nil
}

func configOf(s *v1alpha1.ResourceSource) Config {
	return Config{Name: string(s.Name), Container: s.Container, Interval: v1alpha1.ResourceInterval}
}

// telemetry is the metrics of a Source.
type telemetry struct {
	lists map[metricsapi.Result]prometheus.Observer
}

func newTelemetry(r prometheus.Registerer) *telemetry {
	factory := promauto.With(r)
	lists := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "foresail_resource_list_duration_seconds", Help: "Duration of lists of PodMetrics, by result.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"result"})
	t := &telemetry{lists: map[metricsapi.Result]prometheus.Observer{}}
	for _, r := range metricsapi.Results() {
		t.lists[r] = lists.WithLabelValues(string(r))
	}
	return t
}
