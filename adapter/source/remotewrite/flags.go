package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// Registration registers this source. anonymous reports whether senders need no identity.
func Registration(anonymous func() bool) source.Registration {
	f := &flags{anonymous: anonymous}
	return source.Registration{Name: "remoteWrite", AddFlags: f.add, Validate: f.validate, New: f.newSource}
}

// flags are the flags of remote write.
type flags struct {
	options   Options
	anonymous func() bool
	all       *pflag.FlagSet
}

const (
	flagPrefix         = "remote-write-"
	namespaceLabelFlag = flagPrefix + "namespace-label"
	unlabelledFlag     = flagPrefix + "unlabelled-namespace"
)

// flagNames are the flags that set the options which an OptionError may name.
var flagNames = map[string]string{
	"Address":         flagPrefix + "address",
	"WebConfigFile":   flagPrefix + "web-config-file",
	"BearerTokenFile": flagPrefix + "bearer-token-file",
	"AllowAnonymous":  "allow-anonymous=remote-write",
}

func (f *flags) add(fs *pflag.FlagSet) {
	f.all = fs
	o := &f.options
	fs.StringVar(&o.Address, flagNames["Address"], "",
		"Address to receive Prometheus remote write (v1 and v2) on, at /api/v1/write, and OTLP metrics, at /v1/metrics, such as :9201; empty receives none.")
	fs.StringVar(&o.WebConfigFile, flagNames["WebConfigFile"], "",
		"File with TLS, client certificates and users for remote write and OTLP, in the format of Prometheus exporters.")
	fs.StringVar(&o.BearerTokenFile, flagNames["BearerTokenFile"], "",
		"File with the token that senders of remote write and OTLP must present; it is read again when it changes.")
	fs.StringVar(&o.Tenancy.NamespaceLabel, namespaceLabelFlag, promapi.DefaultNamespaceLabel,
		"Label of a pushed series that names the namespace it belongs to.")
	fs.StringVar(&o.Tenancy.Unlabelled, unlabelledFlag, "",
		"Namespace that pushed series without that label belong to; empty ignores them.")
}

func (f *flags) validate() error {
	var errs []error
	f.options.AllowAnonymous = f.anonymous()
	if err := f.options.Tenancy.Validate("--"+namespaceLabelFlag, "--"+unlabelledFlag); err != nil {
		errs = append(errs, err)
	}
	if f.options.Address != "" {
		return errors.Join(append(errs, inFlags(f.options.Validate()))...)
	}
	f.all.VisitAll(func(x *pflag.Flag) {
		if x.Changed && strings.HasPrefix(x.Name, flagPrefix) && x.Name != flagNames["Address"] {
			errs = append(errs, &pipeline.FieldError{Field: "--" + x.Name, Value: fmt.Sprintf("%q", x.Value),
				Accept: "left out while --" + flagNames["Address"] + " is empty, which receives no remote write"})
		}
	})
	return errors.Join(errs...)
}

// inFlags names flags in place of options.
func inFlags(err error) error {
	option, ok := errors.AsType[*OptionError](err)
	if !ok {
		return err
	}
	accept := option.Accept
	for name, flag := range flagNames {
		accept = strings.ReplaceAll(accept, name, "--"+flag)
	}
	return &pipeline.FieldError{Field: "--" + flagNames[option.Option], Value: fmt.Sprintf("%q", option.Value),
		Accept: fmt.Sprintf("%s: %v", accept, option.Err)}
}

func (f *flags) newSource(env source.Environment) (source.Source, error) {
	if f.options.Address == "" {
		return disabled{}, nil
	}
	o := f.options
	o.AllowAnonymous = f.anonymous()
	o.Registerer, o.Ready = env.Registerer, env.PodsKnown
	return registered{New(o)}, nil
}

// registered is a Source that is set by the spec of a PredictedMetric.
type registered struct{ *Source }

// Set implements source.Source.
func (r registered) Set(key types.NamespacedName, spec *v1alpha1.PredictedMetricSpec,
	fleet *podtracker.TargetPods, sink source.Sink) error {
	r.Source.Set(key, configOf(spec.Source.RemoteWrite), fleet, sink)
	return nil
}

func configOf(s *v1alpha1.RemoteWriteSource) Config {
	c := Config{
		Metric: s.Metric, Type: source.Type(s.Type), PodLabel: s.PodLabel, MatchLabels: s.MatchLabels,
	}
	if s.Scope == v1alpha1.ScopeTarget {
		c.Whole, c.PodLabel = true, ""
	}
	return c
}

// disabled is the source while no address is given.
type disabled struct{}

var errDisabled = errors.New("remote write is disabled: Foresail must be started with --" + flagNames["Address"])

// Set implements source.Source.
func (disabled) Set(types.NamespacedName, *v1alpha1.PredictedMetricSpec, *podtracker.TargetPods, source.Sink) error {
	return errDisabled
}

// Remove implements source.Source.
func (disabled) Remove(types.NamespacedName) {}

// Run implements source.Source.
func (disabled) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
