package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/internal/promapi"
)

// sourceOptions are the flags of where samples come from.
type sourceOptions struct {
	pods           pods.Options
	prometheusFile string
	prometheusURL  string // that WorkerPools ask unless they name another; "" for none
	prometheus     prometheus.Options
	remoteWrite    remotewrite.Options
	flags          *pflag.FlagSet // that all of these are of
}

// receiverFlags are the flags of remote write by the options that they set.
var receiverFlags = map[string]string{
	"Address":         "remote-write-address",
	"WebConfigFile":   "remote-write-web-config-file",
	"BearerTokenFile": "remote-write-bearer-token-file",
	"AllowAnonymous":  "remote-write-allow-anonymous",
}

func (o *sourceOptions) addFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.IntVar(&o.pods.Concurrency, "scrape-concurrency", 1024, "Pods that are read at the same time, half of them slow or failing ones.")
	fs.DurationVar(&o.pods.Timeout, "scrape-timeout", 3*time.Second, "How long a pod may take to answer. More than an interval lets pods answer that are overloaded.")
	fs.StringVar(&o.prometheusFile, "prometheus-config-file", "", "File that lists the Prometheus servers that PredictedMetrics and WorkerPools may ask, with their credentials and certificates; empty lets them ask any, without credentials.")
	fs.StringVar(&o.prometheusURL, "prometheus-url", "", "Prometheus server that WorkerPools ask if they name none, and the extender for what nodes use, such as http://prometheus.monitoring:9090.")
	fs.DurationVar(&o.prometheus.Timeout, "prometheus-timeout", 10*time.Second, "How long a query to a Prometheus server may take.")
	fs.IntVar(&o.prometheus.MaxSeries, "prometheus-max-series", 10_000, "Series that the answer to a query may have.")
	fs.Int64Var(&o.prometheus.MaxBytes, "prometheus-max-bytes", 32<<20, "Bytes that the answer to a query may have.")
	fs.StringVar(&o.remoteWrite.Address, receiverFlags["Address"], "", "Address that samples are taken on by Prometheus remote write (v1 and v2) at /api/v1/write, such as :9201; empty takes none.")
	fs.StringVar(&o.remoteWrite.WebConfigFile, receiverFlags["WebConfigFile"], "", "File with TLS, client certificates and users for remote write, as Prometheus exporters take it.")
	fs.StringVar(&o.remoteWrite.BearerTokenFile, receiverFlags["BearerTokenFile"], "", "File with the token that remote write must present; it is read again when it changes.")
	fs.BoolVar(&o.remoteWrite.AllowAnonymous, receiverFlags["AllowAnonymous"], false, "Take samples from anybody who can reach the address.")
	fs.IntVar(&o.remoteWrite.MaxSeries, "remote-write-max-series", 100_000, "Series that a request by remote write may have.")
}

// validate also reads the files that flags name.
func (o *sourceOptions) validate() error {
	var errs []error
	if o.pods.Concurrency < 2 {
		errs = append(errs, badFlag("scrape-concurrency", o.pods.Concurrency, "at least 2"))
	}
	if o.pods.Timeout <= 0 {
		errs = append(errs, badFlag("scrape-timeout", o.pods.Timeout, "above 0s"))
	}
	if o.prometheus.Timeout <= 0 {
		errs = append(errs, badFlag("prometheus-timeout", o.prometheus.Timeout, "above 0s"))
	}
	if o.prometheus.MaxSeries < 1 {
		errs = append(errs, badFlag("prometheus-max-series", o.prometheus.MaxSeries, "at least 1"))
	}
	if o.prometheus.MaxBytes < 1 {
		errs = append(errs, badFlag("prometheus-max-bytes", o.prometheus.MaxBytes, "at least 1"))
	}
	if o.remoteWrite.MaxSeries < 1 {
		errs = append(errs, badFlag("remote-write-max-series", o.remoteWrite.MaxSeries, "at least 1"))
	}
	return errors.Join(append(errs, o.validateReceiver(), o.validateServers())...)
}

// validateServers reads the file of servers, and finds what is wrong with it and with the server of WorkerPools.
func (o *sourceOptions) validateServers() error {
	if o.prometheusFile == "" {
		return o.validateURL()
	}
	servers, err := promapi.LoadServers(o.prometheusFile)
	if err != nil {
		err = fmt.Errorf("--prometheus-config-file: %w", err)
	}
	o.prometheus.Servers = servers
	return errors.Join(err, o.validateURL())
}

// validateURL finds what is wrong with the server of WorkerPools, once it is known which may be asked.
func (o *sourceOptions) validateURL() error {
	if o.prometheusURL == "" {
		return nil
	}
	address, err := promapi.ParseAddress(o.prometheusURL)
	if err != nil {
		return badFlag("prometheus-url", fmt.Sprintf("%q", promapi.Redact(o.prometheusURL)), promapi.AcceptedAddress)
	}
	if err := o.prometheus.Servers.Permit(address); err != nil {
		return badFlag("prometheus-url", fmt.Sprintf("%q", address), fmt.Sprintf("one that --prometheus-config-file permits: %v", err))
	}
	return nil
}

// validateReceiver finds what is wrong with remote write, where it is asked for.
func (o *sourceOptions) validateReceiver() error {
	if o.remoteWrite.Address != "" {
		return inFlags(o.remoteWrite.Validate())
	}
	var errs []error
	o.flags.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "remote-write-") && f.Name != receiverFlags["Address"] {
			errs = append(errs, badFlag(f.Name, fmt.Sprintf("%q", f.Value), "left out as long as --remote-write-address is empty, which takes nothing by remote write"))
		}
	})
	return errors.Join(errs...)
}

// inFlags says an error of options in terms of flags.
func inFlags(err error) error {
	var option *remotewrite.OptionError
	if !errors.As(err, &option) {
		return err
	}
	accept := option.Accept
	for name, flag := range receiverFlags {
		accept = strings.ReplaceAll(accept, name, "--"+flag)
	}
	return badFlag(receiverFlags[option.Option], fmt.Sprintf("%q", option.Value), fmt.Sprintf("%s: %v", accept, option.Err))
}

// build makes the sources and has the manager run them. Pushed samples are put off until ready returns nil: before
// that nobody knows whose they are.
func (o *sourceOptions) build(mgr ctrl.Manager, ready func() error) (predictedmetric.Sources, error) {
	registerer, agent := metrics.Registry, "foresail/"+buildVersion()
	client, err := metricsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return predictedmetric.Sources{}, fmt.Errorf("make a client for metrics.k8s.io: %w", err)
	}
	o.pods.Registerer, o.pods.UserAgent = registerer, agent
	o.prometheus.Registerer, o.prometheus.UserAgent = registerer, agent
	endpoints := pods.New(o.pods)
	servers := prometheus.New(o.prometheus)
	usage := resource.New(resource.Options{Client: client.MetricsV1beta1(), Registerer: registerer})
	sources := predictedmetric.Sources{Pods: endpoints, Prometheus: servers, Resource: usage}
	parts := []func(context.Context) error{endpoints.Run, servers.Run, usage.Run}
	if o.remoteWrite.Address != "" {
		o.remoteWrite.Registerer, o.remoteWrite.Ready = registerer, ready
		o.remoteWrite.Logger = slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("remote-write")))
		receiver := remotewrite.New(o.remoteWrite)
		sources.RemoteWrite = receiver
		parts = append(parts, receiver.Run)
	}
	for _, part := range parts {
		if err := mgr.Add(runnable(part)); err != nil {
			return predictedmetric.Sources{}, err
		}
	}
	return sources, nil
}
