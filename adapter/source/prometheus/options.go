package prometheus

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// Options of a Source; the zero value is usable.
type Options struct {
	// Servers are the servers that may be queried, with their credentials. nil = any, without credentials.
	Servers *promapi.Servers
	// Timeout is how long a query may take, answer included. Queries with short intervals end earlier: after two
	// intervals, but not before 5 s. 0 = 10 s.
	Timeout time.Duration
	// MaxBackoff is the longest time between two queries to a failing server, unless the interval is longer. 0 = 30 s.
	MaxBackoff time.Duration
	// Concurrency is the maximum number of queries to one server at the same time. 0 = 8.
	Concurrency int
	// MaxSeries is the maximum number of series in an answer. 0 = 10,000.
	MaxSeries int
	// MaxBytes is the maximum size of an answer. 0 = 32 MiB.
	MaxBytes int64
	// MaxMemory is the maximum memory that all answers take at once. Namespaces share it. 0 = 256 MiB.
	MaxMemory int64
	// UserAgent is sent with each query. "" = foresail.
	UserAgent string
	// Now is the clock. nil = time.Now.
	Now func() time.Time
	// Registerer registers the metrics of the source; nil = none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.Concurrency = max(1, cmp.Or(o.Concurrency, 8))
	o.MaxSeries = cmp.Or(o.MaxSeries, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 32<<20)
	o.UserAgent = cmp.Or(o.UserAgent, "foresail")
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// timeout is how long a query of an interval may take.
func (o *Options) timeout(interval time.Duration) time.Duration {
	return min(o.Timeout, max(2*interval, 5*time.Second))
}

// Registration registers this source. Its flags are those of all that query Prometheus servers, so
// internal/cli/serve has them.
func Registration() source.Registration {
	return source.Registration{
		Name: "prometheus",
		New: func(env source.Environment) (source.Source, error) {
			return registered{New(Options{
				Servers: env.Prometheus.Servers, MaxSeries: env.Prometheus.MaxSeries, MaxBytes: env.Prometheus.MaxBytes,
				MaxMemory: env.Prometheus.MaxMemory,
				Timeout:   env.QueryTimeout, UserAgent: env.UserAgent, Registerer: env.Registerer,
			})}, nil
		},
	}
}

// registered is a Source that is set by the spec of a PredictedMetric.
type registered struct{ *Source }

// Set implements source.Source.
func (r registered) Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	fleet *podtracker.TargetPods, sink source.Sink) error {
	return r.Source.Set(key, configOf(spec, fleet), fleet, sink)
}

// startups estimates how long pods take to start, as podtracker.TargetPods does.
type startups interface {
	StartupTime(m pipeline.Method, initial time.Duration) time.Duration
}

// configOf returns the query of a valid spec. Its window is that of the forecasts, which follows the startup time.
func configOf(spec *v1alpha1.PredictedMetricSpec, pods startups) Config {
	p, _ := params.FromSpec(*spec)
	startupTime := pods.StartupTime(p.Method, p.StartupTime)
	s, target := spec.Source.Prometheus, spec.ScaleTargetRef
	return Config{
		Target: schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind(), TargetName: target.Name,
		Address: s.Address, Query: s.Query, PodLabel: s.PodLabel, Whole: s.Scope == v1alpha1.ScopeTarget,
		Type: source.Type(s.Type), Interval: s.Interval.Duration,
		Window: max(p.WindowFor(startupTime), s.Interval.Duration),
	}
}
