// Package source holds what the sources of samples share. Each source is a package below this one, feeds a Sink, and
// exports a function that returns its Registration. Sources never import each other.
package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// WholeTarget stands in place of an instance for the load of the target as a whole.
const WholeTarget = ""

// Sink takes the samples that a source reads for one PredictedMetric. Implementations are safe for concurrent use and
// return at once.
type Sink interface {
	// Append adds samples of one instance (by the ID that package podtracker gives it, or
	// WholeTarget), in any order. The caller may use the slice again when it returns.
	Append(instance string, samples ...pipeline.Sample)
	// Fail reports that an instance could not be read. It changes no data; status and metrics show it.
	Fail(instance string, err error)
	// SourceFailed reports why the source as a whole cannot be read, or nil once it can. It changes no data either.
	SourceFailed(err error)
}

// Refuser is a Sink that may refuse all samples for now, so that reading is unnecessary.
type Refuser interface {
	Refuses() bool
}

// Refuses reports whether a Sink refuses all samples for now.
func Refuses(s Sink) bool {
	r, ok := s.(Refuser)
	return ok && r.Refuses()
}

// Direct is a Sink that finds an instance once, for sources that bring a few samples of many instances at a time.
type Direct interface {
	Sink
	// Receiver returns where the samples of one instance go. It stays good for as long as the Sink,
	// and may be used concurrently.
	Receiver(instance string) Receiver
}

// Receiver takes the samples of one instance, as Append of the Sink does.
type Receiver interface {
	Append(samples ...pipeline.Sample)
}

// ReceiverOf returns where the samples of one instance go.
func ReceiverOf(s Sink, instance string) Receiver {
	if d, ok := s.(Direct); ok {
		return d.Receiver(instance)
	}
	return appender{s, instance}
}

// appender is the Receiver of a Sink that has none.
type appender struct {
	sink     Sink
	instance string
}

// Append implements Receiver.
func (a appender) Append(samples ...pipeline.Sample) { a.sink.Append(a.instance, samples...) }

// Source feeds the samples of PredictedMetrics to sinks. Implementations are safe for concurrent use.
type Source interface {
	// Set reads what a spec selects, for the pods of a fleet, until the next Set or Remove of the key. The spec selects
	// this source and has its defaults. The error names the fields of the source that cannot be used.
	Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec, fleet *podtracker.TargetPods, sink Sink) error
	// Remove stops reading for a key. The sink is not called any more when it returns.
	Remove(key types.NamespacedName)
	// Run reads until the context ends, and returns when nothing is being read any more. It is called once.
	Run(context.Context) error
}

// Registration makes one kind of source known. One list in internal/cli/serve has all of them.
type Registration struct {
	// Name is the field of [v1alpha1.Source] that selects the source.
	Name string
	// AddFlags adds the flags of the source. nil = it has none.
	AddFlags func(*pflag.FlagSet)
	// AddTestOptions adds values that only tests change, of the environment variable FORESAIL_TEST_OPTIONS. nil = none.
	AddTestOptions func(*pflag.FlagSet)
	// Validate returns what is wrong with the flags, as joined *pipeline.FieldErrors. It changes
	// nothing. nil = nothing is.
	Validate func() error
	// New returns the source, which the flags have configured.
	New func(Environment) (Source, error)
}

// Environment holds the dependencies that all sources receive.
type Environment struct {
	Cluster    *rest.Config
	HTTPClient *http.Client // for requests to the cluster
	Registerer prometheus.Registerer
	UserAgent  string
	// PodsKnown returns why not all pods and PredictedMetrics are known yet; nil once they are.
	PodsKnown func() error
	// Prometheus says which Prometheus servers may be queried, and how large an answer may be.
	Prometheus promapi.Options
	// QueryTimeout is how long a query to a Prometheus server may take.
	QueryTimeout time.Duration
}

// Set is sources by the fields of [v1alpha1.Source] that select them.
type Set map[string]Source

// NewSet makes all registered sources. It fails unless exactly those are registered that the API has a field for.
func NewSet(registered []Registration, env Environment) (Set, error) {
	if err := check(registered, v1alpha1.SourceNames()); err != nil {
		return nil, err
	}
	set := Set{}
	for _, r := range registered {
		made, err := r.New(env)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", r.Name, err)
		}
		set[r.Name] = made
	}
	return set, nil
}

// check compares the registered sources with the fields of the API.
func check(registered []Registration, fields []string) error {
	var errs []error
	seen := map[string]bool{}
	for _, r := range registered {
		switch {
		case !slices.Contains(fields, r.Name):
			errs = append(errs, fmt.Errorf("source %s: registered, but spec.source has no such field: must be one of %s",
				r.Name, strings.Join(fields, ", ")))
		case seen[r.Name]:
			errs = append(errs, fmt.Errorf("source %s: registered twice", r.Name))
		}
		seen[r.Name] = true
	}
	for _, field := range fields {
		if !seen[field] {
			errs = append(errs, fmt.Errorf("source %s: not registered, but spec.source has a field for it", field))
		}
	}
	return errors.Join(errs...)
}

// Apply has the one source that a spec selects, defaults filled in, feed a sink, and no other.
func (s Set) Apply(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	fleet *podtracker.TargetPods, sink Sink) error {
	name := spec.Source.Name()
	s.removeExcept(key, name)
	selected := s[name]
	if selected == nil {
		return fmt.Errorf("spec.source: %q: must be one of %s", name, strings.Join(slices.Sorted(maps.Keys(s)), ", "))
	}
	if err := selected.Set(key, spec, fleet, sink); err != nil {
		return fmt.Errorf("spec.source.%s: %w", name, err)
	}
	return nil
}

// Remove stops reading for a key. Its sink is not called any more when it returns.
func (s Set) Remove(key types.NamespacedName) { s.removeExcept(key, "") }

func (s Set) removeExcept(key types.NamespacedName, selected string) {
	for name, x := range s {
		if name != selected {
			x.Remove(key)
		}
	}
}
