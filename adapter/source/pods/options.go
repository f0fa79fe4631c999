package pods

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

// Options of a Source; the zero value is usable.
type Options struct {
	// Concurrency is the maximum number of scrapes at the same time. Half of it is for slow or failing endpoints. An
	// endpoint that answers within 5 ms uses 5 ms of a slot in each interval. 0 = 1024; at least 2.
	Concurrency int
	// Timeout is how long a scrape may take, answer included. 0 = its interval. A longer one lets overloaded pods
	// answer, less often than once per interval.
	Timeout time.Duration
	// MaxBackoff is the longest time between two scrapes of an endpoint that keeps failing, unless its interval is
	// longer. 0 = 5 s.
	MaxBackoff time.Duration
	// MaxBodyBytes is the maximum size of an answer. It is parsed as it arrives, and never held as a whole. 0 = 2 MiB.
	MaxBodyBytes int64
	// MaxSeries is the maximum number of series, on one page, of a metric that is read. 0 = 10,000.
	MaxSeries int
	// AllowLoopback lets pods have loopback addresses, as in tests.
	AllowLoopback bool
	// UserAgent is sent with each scrape. "" = foresail.
	UserAgent string
	// Registerer registers the metrics of the source; nil = none.
	Registerer prometheus.Registerer
}

// Limits of one scrape. An answer is parsed as it arrives, so that a longer one takes CPU time, not memory: an
// exporter with a larger page gets a page of its own for the metric that is read.
const (
	defaultTimeout   = 3 * time.Second
	defaultMaxBytes  = 2 << 20
	defaultMaxSeries = 10_000
)

func (o Options) withDefaults() Options {
	o.Concurrency = max(2, cmp.Or(o.Concurrency, 1024))
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Second)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, defaultMaxBytes)
	o.MaxSeries = cmp.Or(o.MaxSeries, defaultMaxSeries)
	o.UserAgent = cmp.Or(o.UserAgent, "foresail")
	return o
}

// Registration registers this source.
func Registration() source.Registration {
	var o Options
	return source.Registration{
		Name: "pods",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.IntVar(&o.Concurrency, "scrape-concurrency", 1024,
				"Maximum number of pods scraped at the same time. Half of it is for slow or failing pods.")
		},
		AddTestOptions: func(fs *pflag.FlagSet) {
			fs.BoolVar(&o.AllowLoopback, "scrape-allow-loopback", false,
				"Scrape pods whose IP is a loopback address too: in a cluster that is Foresail's own pod or node.")
		},
		Validate: o.validate,
		New: func(env source.Environment) (source.Source, error) {
			o.Registerer, o.UserAgent, o.Timeout = env.Registerer, env.UserAgent, defaultTimeout
			return registered{New(o)}, nil
		},
	}
}

func (o *Options) validate() error {
	if o.Concurrency < 2 {
		return &pipeline.FieldError{Field: "--scrape-concurrency", Value: o.Concurrency, Accept: "at least 2"}
	}
	return nil
}

// registered is a Source that is set by the spec of a PredictedMetric.
type registered struct{ *Source }

// Set implements source.Source.
func (r registered) Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	fleet *podtracker.TargetPods, sink source.Sink) error {
	r.Source.Set(key, configOf(spec.Source.Pods), fleet, sink)
	return nil
}

func configOf(s *v1alpha1.PodsSource) Config {
	return Config{
		Port: s.Port.String(), Path: s.Path, Metric: s.Metric, Type: source.Type(s.Type),
		MatchLabels: s.MatchLabels, Interval: s.Interval.Duration,
	}
}
