package externalmetrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/tracing"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"
)

// defaultPort is open to programs that are not root.
const defaultPort = 6443

// allowedFor is for how long a client that may read something need not be asked about again, as with the kubelet. HPAs read each metric
// every 15 s: with the library's 10 s the API server would be asked at each read.
const allowedFor = 5 * time.Minute

// Options are where and how to serve, and the cluster that authenticates clients.
type Options struct {
	// Kubeconfig names the file that says how to reach the cluster; empty inside a cluster. The authentication and the
	// authorization options may name others.
	Kubeconfig string
	// Traces are of requests; nil for none. The server ends it.
	Traces tracing.TracerProvider
	// Generic are the options of the API server library.
	Generic *options.CustomMetricsAdapterServerOptions
}

// NewOptions returns the defaults: port 6443 and a self-signed certificate that is made at start and kept in memory.
func NewOptions() *Options {
	o := options.NewCustomMetricsAdapterServerOptions()
	o.SecureServing.BindPort = defaultPort
	o.SecureServing.Required = true
	o.SecureServing.ServerCert.CertDirectory = "" // a container's file system may be read-only
	o.Audit = nil                                 // the cluster's API server audits the requests that it proxies
	o.Features.EnableProfiling = false
	o.Authorization.AllowCacheTTL = allowedFor
	return &Options{Generic: o}
}

// FlagSets returns the flags in groups, for a help text.
func (o *Options) FlagSets() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets
	groups.FlagSet("cluster").StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"File that says how to reach the cluster; empty inside a cluster. "+
			"--authentication-kubeconfig and --authorization-kubeconfig default to it.")
	o.Generic.SecureServing.AddFlags(groups.FlagSet("secure serving"))
	o.Generic.Authentication.AddFlags(groups.FlagSet("authentication"))
	o.Generic.Authorization.AddFlags(groups.FlagSet("authorization"))
	return groups
}

// AddFlags adds all flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	for _, group := range o.FlagSets().FlagSets {
		fs.AddFlagSet(group)
	}
}

// Validate returns everything that is wrong with the options, joined.
func (o *Options) Validate() error {
	errs := o.Generic.Validate()
	if pair := o.Generic.SecureServing.ServerCert.CertKey; (pair.CertFile == "") != (pair.KeyFile == "") {
		errs = append(errs, fmt.Errorf("--tls-cert-file %q and --tls-private-key-file %q: must be given together or not at all", pair.CertFile, pair.KeyFile))
	}
	return errors.Join(errs...)
}

// CertificateGiven reports whether the serving certificate is read from files.
func (o *Options) CertificateGiven() bool {
	given := o.Generic.SecureServing.ServerCert
	return given.CertKey != genericoptions.CertKey{} || given.CertDirectory != ""
}

// genericConfig makes the configuration of a server from the options, and begins to listen.
func (o *Options) genericConfig() (*genericapiserver.RecommendedConfig, error) {
	if authentication := o.Generic.Authentication; authentication.RemoteKubeConfigFile == "" {
		authentication.RemoteKubeConfigFile = o.Kubeconfig
	}
	if authorization := o.Generic.Authorization; authorization.RemoteKubeConfigFile == "" {
		authorization.RemoteKubeConfigFile = o.Kubeconfig
	}
	client, err := o.clientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.Kubeconfig, err)
	}
	config := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	config.ClientConfig = client
	if o.Traces != nil {
		config.TracerProvider = o.Traces
	}
	if err := o.Generic.ApplyTo(config); err != nil {
		if listener := o.Generic.SecureServing.Listener; listener != nil {
			err = errors.Join(err, listener.Close())
		}
		return nil, fmt.Errorf("set up the server of external metrics: %w", err)
	}
	return config, nil
}

func (o *Options) clientConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
}
