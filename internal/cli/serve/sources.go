package serve

import (
	"errors"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/internal/cli"
)

// registeredSources lists all sources. A new one is added here.
func registeredSources(anonymous *anonymousOptions) []source.Registration {
	strangers := func() bool { return anonymous.allows(anonymousRemoteWrite) }
	return []source.Registration{pods.Registration(), prometheus.Registration(), remotewrite.Registration(strangers),
		resource.Registration()}
}

// sourceOptions are the flags of the sources of samples.
type sourceOptions struct {
	registered []source.Registration
	prometheus prometheusOptions
	anonymous  *anonymousOptions // nil: no sender is anonymous
}

func (o *sourceOptions) addFlags(fs *pflag.FlagSet) {
	o.registered = registeredSources(o.anonymous)
	for _, r := range o.registered {
		if r.AddFlags != nil {
			r.AddFlags(fs)
		}
	}
	o.prometheus.addFlags(fs)
}

func (o *sourceOptions) addTestOptions(fs *pflag.FlagSet) {
	for _, r := range o.registered {
		if r.AddTestOptions != nil {
			r.AddTestOptions(fs)
		}
	}
}

// validate reads the files that flags name, and keeps nothing of them.
func (o *sourceOptions) validate() error {
	errs := []error{o.prometheus.validate()}
	for _, r := range o.registered {
		if r.Validate == nil {
			continue
		}
		if err := r.Validate(); err != nil {
			errs = append(errs, cli.Unusable(err))
		}
	}
	return errors.Join(errs...)
}

// complete loads the files that flags name.
func (o *sourceOptions) complete() error { return o.prometheus.complete() }

// build makes the sources and adds them to the manager. podsKnown returns why not all pods and PredictedMetrics are
// known yet.
func (o *sourceOptions) build(mgr ctrl.Manager, podsKnown func() error) (source.Set, error) {
	limits := o.prometheus.api()
	sources, err := source.NewSet(o.registered, source.Environment{
		Cluster: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Registerer: metrics.Registry,
		UserAgent: limits.UserAgent,
		PodsKnown: podsKnown, Prometheus: limits, QueryTimeout: queryTimeout,
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := mgr.Add(runnable(s.Run)); err != nil {
			return nil, err
		}
	}
	return sources, nil
}
