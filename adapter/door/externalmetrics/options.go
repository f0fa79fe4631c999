package externalmetrics

import (
	"errors"
	"fmt"
	"path/filepath"
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

// allowedFor is the time for which the permission of a client is cached, as
// with the kubelet. HPAs read each metric every 15 s: with the library's 10 s the API server would
// be asked at each read.
const allowedFor = 5 * time.Minute

// Options are where and how to serve, and the cluster that authenticates clients.
type Options struct {
	// Kubeconfig names the file that says how to reach the cluster; empty inside a cluster.
	Kubeconfig string
	// CertDir is the folder with the serving certificate, tls.crt, and its key, tls.key; empty without one.
	CertDir string
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

// servingFlags are the library's flags that are offered. How the API server authenticates and which rights its
// clients have is the same in every cluster: the library finds it in the cluster.
func servingFlags() []string {
	return []string{"bind-address", "secure-port", "tls-cipher-suites", "tls-min-version"}
}

// FlagSets returns the flags in groups, for a help text.
func (o *Options) FlagSets() cliflag.NamedFlagSets {
	var groups cliflag.NamedFlagSets
	groups.FlagSet("cluster").StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"File that says how to reach the cluster; empty inside a cluster.")
	serving, library := groups.FlagSet("secure serving"), &pflag.FlagSet{}
	serving.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Folder with the certificate of --secure-port, tls.crt, "+
		"and its key, tls.key, read again when they change; empty has Foresail sign one.")
	o.Generic.SecureServing.AddFlags(library)
	for _, name := range servingFlags() {
		serving.AddFlag(library.Lookup(name))
	}
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
	return errors.Join(o.Generic.Validate()...)
}

// CertificateGiven reports whether the serving certificate is read from files.
func (o *Options) CertificateGiven() bool {
	return o.CertDir != ""
}

// genericConfig makes the configuration of a server from the options, and begins to listen.
func (o *Options) genericConfig() (*genericapiserver.RecommendedConfig, error) {
	o.Generic.Authentication.RemoteKubeConfigFile = o.Kubeconfig
	o.Generic.Authorization.RemoteKubeConfigFile = o.Kubeconfig
	if o.CertDir != "" {
		o.Generic.SecureServing.ServerCert.CertKey = genericoptions.CertKey{
			CertFile: filepath.Join(o.CertDir, "tls.crt"), KeyFile: filepath.Join(o.CertDir, "tls.key"),
		}
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
