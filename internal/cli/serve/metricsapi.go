package serve

import (
	"context"
	"errors"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/door/custommetrics"
	"github.com/foresail/foresail/adapter/door/externalmetrics"
	"github.com/foresail/foresail/internal/cli"
)

// metricsAPI is the door for HPAs: external metrics, and custom metrics if they are asked for.
type metricsAPI struct {
	server     *externalmetrics.Options
	apiService apiServiceOptions
	custom     customMetricsOptions
	forward    forwardOptions
}

func (d *metricsAPI) addFlags(groups *cliflag.NamedFlagSets) {
	d.apiService.addFlags(groups.FlagSet(groupAPI))
	d.custom.addFlags(groups.FlagSet(groupCustom))
	d.forward.addFlags(groups.FlagSet(groupForward))
	server := d.server.FlagSets()
	for _, name := range server.Order {
		groups.FlagSet(name).AddFlagSet(server.FlagSets[name])
	}
}

func (d *metricsAPI) validate() error {
	service, _ := d.apiService.target() // what is wrong with it is reported once
	return errors.Join(d.server.Validate(), checkCertDir(certDirFlag, d.server.CertDir),
		d.apiService.validate(d.server.CertificateGiven()),
		d.forward.validate(service.Host()))
}

func (d *metricsAPI) validateAbsence(accept string) error { return d.custom.validateAbsence(accept) }

func (d *metricsAPI) open(ctx context.Context, o *doorOptions) (*part, error) {
	config := o.mgr.GetConfig()
	if d.apiService.enabled() {
		service, err := d.apiService.target()
		if err != nil {
			return nil, err
		}
		if err := d.custom.checkFree(ctx, config, service); err != nil {
			return nil, err
		}
	}
	provider := externalmetrics.New(o.forecaster, time.Now)
	metrics.Registry.MustRegister(provider)
	serve := externalmetrics.Config{Provider: provider, Ready: o.ready, Version: cli.BuildVersion()}
	if d.custom.enabled {
		custom := custommetrics.New(o.forecaster, time.Now)
		metrics.Registry.MustRegister(custom)
		serve.Custom = custom
	}
	registrar, err := d.apiService.registrar(o.mgr, d.server.CertificateGiven(), o.forecasts, d.custom.apis()...)
	if err != nil {
		return nil, err
	}
	p := &part{}
	if registrar != nil {
		serve.Certificate = registrar.Certificate()
		p.ready, p.run = registrar.Ready, append(p.run, registrar.Run)
	}
	second, err := d.forward.forwarder(config)
	if err != nil {
		return nil, err
	}
	if second != nil {
		serve.Second = second
	}
	server, err := d.server.NewServer(serve)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Serving external.metrics.k8s.io", "address", server.Addr(), "cluster", config.Host,
		"custom", d.custom.enabled)
	p.run = append(p.run, server.Run)
	return p, nil
}
