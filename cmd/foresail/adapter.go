package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/forecaster"
	"github.com/foresail/foresail/adapter/instances"
	"github.com/foresail/foresail/adapter/predictedmetric"
)

// adapterOptions are the flags of the part that forecasts pods.
type adapterOptions struct {
	door       *externalmetrics.Options
	namespaces []string
	lease      leaseOptions
	sources    sourceOptions
}

// validate finds what is wrong if the adapter is enabled. Sources are looked at in any case: their flags say of themselves
// whether they are of use.
func (o *adapterOptions) validate() error {
	return errors.Join(o.door.Validate(), o.lease.validate())
}

// start wires the adapter and returns what runs beside the manager, what tells whether forecasts can be served, and what
// pods are predicted to use. It listens from then on.
func (o *adapterOptions) start(ctx context.Context, mgr ctrl.Manager, ready func() error) (*part, *predictedmetric.PodUses, error) {
	a, err := newAdapter(ctx, mgr, &o.sources, o.namespaces)
	if err != nil {
		return nil, nil, err
	}
	provider := externalmetrics.New(a.forecaster, time.Now)
	metrics.Registry.MustRegister(provider)
	server, err := o.door.NewServer(externalmetrics.Config{Provider: provider, Ready: ready, Version: buildVersion()})
	if err != nil {
		return nil, nil, err
	}
	klog.InfoS("Serving external.metrics.k8s.io", "address", server.Addr(), "cluster", mgr.GetConfig().Host)
	return &part{
		ready: func() error { return errors.Join(a.known(), a.forecaster.Ready()) },
		run: []func(context.Context) error{
			server.Run,
			func(ctx context.Context) error { return o.lease.run(ctx, mgr.GetConfig(), a.writer.Start) },
		},
	}, a.uses, nil
}

// adapter is the parts that turn PredictedMetrics into forecasts.
type adapter struct {
	forecaster *forecaster.Forecaster
	known      func() error // why pods or PredictedMetrics are not all known yet
	writer     *predictedmetric.Writer
	uses       *predictedmetric.PodUses
}

// newAdapter wires sources, forecaster and reconciler, and has the manager run them.
func newAdapter(ctx context.Context, mgr ctrl.Manager, o *sourceOptions, namespaces []string) (*adapter, error) {
	tracker := instances.NewTracker(instances.Options{})
	pods, err := newPodWatcher(mgr, tracker, namespaces)
	if err != nil {
		return nil, err
	}
	scales, err := newScales(mgr)
	if err != nil {
		return nil, err
	}
	forecasts := forecaster.New(time.Now, metrics.Registry)
	reconciler := &predictedmetric.Reconciler{
		Client: mgr.GetClient(), Scales: scales, Tracker: tracker, Forecaster: forecasts, Known: pods.Synced,
	}
	known := func() error {
		if err := pods.Started(); err != nil {
			return err
		}
		return reconciler.Settled(ctx)
	}
	if reconciler.Sources, err = o.build(mgr, known); err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("watch PredictedMetrics: %w", err)
	}
	if err := errors.Join(mgr.Add(runnable(pods.Run)), mgr.Add(runnable(forecasts.Run))); err != nil {
		return nil, err
	}
	writer := &predictedmetric.Writer{
		Client: mgr.GetClient(), Reconciler: reconciler, Now: time.Now,
		Events: mgr.GetEventRecorder("foresail"), Log: mgr.GetLogger().WithName("status"),
	}
	return &adapter{forecaster: forecasts, known: known, writer: writer, uses: predictedmetric.NewPodUses(reconciler, time.Now)}, nil
}

// newPodWatcher returns a watcher of pods.
func newPodWatcher(mgr ctrl.Manager, tracker *instances.Tracker, namespaces []string) (*instances.Watcher, error) {
	client, err := newObjectClient(mgr)
	if err != nil {
		return nil, err
	}
	return instances.NewWatcher(client, tracker, namespaces...), nil
}

func newScales(mgr ctrl.Manager) (*predictedmetric.Scales, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	c, err := scale.NewForConfig(mgr.GetConfig(), mgr.GetRESTMapper(), dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(d))
	if err != nil {
		return nil, fmt.Errorf("make a client for scale subresources: %w", err)
	}
	return &predictedmetric.Scales{Client: c, Mapper: mgr.GetRESTMapper()}, nil
}
