package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/foresail/foresail/adapter/forecast/checkpoint"
	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/history"
	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/capacitybuffer"
	"github.com/foresail/foresail/adapter/keep/hpa"
	"github.com/foresail/foresail/adapter/predictedmetric"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/api/v1alpha1"
)

// adapterOptions are the flags of the part that forecasts pods.
type adapterOptions struct {
	namespaces []string
	lease      leaseOptions
	api        metricsAPI
	doors      []door // api is one of them
}

func (o *adapterOptions) validate() error {
	errs := []error{o.lease.validate()}
	for _, d := range o.doors {
		errs = append(errs, d.validate())
	}
	return errors.Join(errs...)
}

// validateAbsence refuses flags of doors where nothing is forecast.
func (o *adapterOptions) validateAbsence() error {
	var errs []error
	for _, d := range o.doors {
		errs = append(errs, d.validateAbsence("left out unless --enable has "+enableAdapter))
	}
	return errors.Join(errs...)
}

// start wires the adapter and opens its doors. It also returns the reconciler of PredictedMetrics.
func (o *adapterOptions) start(ctx context.Context, mgr ctrl.Manager, watches *feeds, sources *sourceOptions,
	ready func() error) ([]*part, *predictedmetric.Reconciler, error) {
	a, err := newAdapter(ctx, mgr, watches, sources, o)
	if err != nil {
		return nil, nil, err
	}
	parts := []*part{{
		ready: a.ready,
		alive: a.forecaster.Alive,
		run: []func(context.Context) error{
			func(ctx context.Context) error { return o.lease.run(ctx, mgr.GetConfig(), a.lead) },
			a.checkpoints.Run,
		},
	}}
	with := &doorOptions{
		mgr: mgr, forecaster: a.forecaster, reconciler: a.reconciler, known: a.known, forecasts: a.ready, ready: ready,
	}
	for _, d := range o.doors {
		p, err := d.open(ctx, with)
		if err != nil {
			return nil, nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	return parts, a.reconciler, nil
}

// adapter turns PredictedMetrics into forecasts.
type adapter struct {
	forecaster  *forecaster.Forecaster
	known       func() error // returns why pods or PredictedMetrics are not all known yet
	listed      func() bool  // the PredictedMetrics that the elected replica looks at
	writer      *predictedmetric.Writer
	reconciler  *predictedmetric.Reconciler
	checkpoints *checkpoint.Checkpoints
	histories   *history.Reader // nil: none are read
}

// ready returns why there are no forecasts yet.
func (a *adapter) ready() error {
	if err := a.known(); err != nil {
		return err // until then there may be PredictedMetrics that the forecaster knows nothing of
	}
	return a.forecaster.Ready()
}

// lead is what one replica alone does, until the context ends.
func (a *adapter) lead(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), a.listed) {
		return nil // the context has ended
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.writer.Start(ctx) })
	for _, k := range a.writer.Keepers {
		group.Go(func() error { return k.Start(ctx) })
	}
	group.Go(func() error { return a.checkpoints.Lead(ctx) })
	if a.histories != nil {
		group.Go(func() error { return a.histories.Lead(ctx) })
	}
	return group.Wait()
}

// newAdapter wires sources, forecaster and reconciler, and adds them to the manager.
func newAdapter(ctx context.Context, mgr ctrl.Manager, watches *feeds, sources *sourceOptions,
	o *adapterOptions) (*adapter, error) {
	tracker := podtracker.NewTracker(podtracker.Options{})
	pods := podtracker.NewWatcher(tracker, watches.podsOf(o.namespaces))
	scales, err := newScales(mgr)
	if err != nil {
		return nil, err
	}
	nodes := &capacitybuffer.Nodes{Feed: watches.nodes, Waits: tracker.Waits, Now: time.Now}
	options := forecaster.Options{
		NodeStartupTime: nodes.StartupTime,
		MaxSamples: samplesThatFit(debug.SetMemoryLimit(-1),
			sources.prometheus.limits.MaxMemory+remotewrite.DefaultMaxInFlightBytes),
	}
	forecasts := forecaster.New(time.Now, metrics.Registry, options)
	reconciler := &predictedmetric.Reconciler{
		Client: mgr.GetClient(), Scales: scales, Tracker: tracker, Forecaster: forecasts, Known: pods.Synced,
		Watches: watches.targets, Namespaces: o.namespaces, Now: time.Now,
	}
	known := func() error {
		if err := pods.Started(); err != nil {
			return err
		}
		return reconciler.Settled(ctx)
	}
	if reconciler.Sources, err = sources.build(mgr, known); err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("watch PredictedMetrics: %w", err)
	}
	if err := errors.Join(mgr.Add(runnable(pods.Run)), mgr.Add(runnable(forecasts.Run))); err != nil {
		return nil, err
	}
	recorder := mgr.GetEventRecorder("foresail")
	objects, err := client.NewWithWatch(mgr.GetConfig(),
		client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client for objects of PredictedMetrics: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.PredictedMetric{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch PredictedMetrics: %w", err)
	}
	cached, synced, err := keep.Cached(informer)
	if err != nil {
		return nil, fmt.Errorf("watch PredictedMetrics: %w", err)
	}
	kept := keep.Options{
		Metrics: cached, Client: objects, Discovery: served, Forecasts: forecasts, Events: recorder,
		Namespaces: o.namespaces,
		Registerer: metrics.Registry, Now: time.Now,
	}
	writer := &predictedmetric.Writer{
		Client: mgr.GetClient(), Metrics: cached, Reconciler: reconciler, Now: time.Now, Events: recorder,
		Keepers: []keep.Runner{hpa.New(kept), capacitybuffer.New(kept, nodes)},
	}
	checkpoints := checkpoint.New(checkpoint.Options{
		Metrics: mgr.GetClient(), Client: objects, Forecasts: forecasts.Learned(), Known: known,
		Namespaces: o.namespaces, Now: time.Now,
		Registerer: metrics.Registry,
	})
	a := &adapter{forecaster: forecasts, known: known, writer: writer, listed: synced, reconciler: reconciler,
		checkpoints: checkpoints}
	if span := time.Duration(sources.prometheus.history); span > 0 {
		a.histories = history.New(history.Options{
			Forecasts: forecasts.Learned(), Sources: history.SourcesOf(reconciler.Sources), Span: span, Now: time.Now,
			Registerer: metrics.Registry,
		})
	}
	return a, nil
}

func newScales(mgr ctrl.Manager) (*predictedmetric.Scales, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	c, err := scale.NewForConfig(mgr.GetConfig(), mgr.GetRESTMapper(), dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(d))
	if err != nil {
		return nil, fmt.Errorf("make a client for scale subresources: %w", err)
	}
	return &predictedmetric.Scales{Client: c, Mapper: mgr.GetRESTMapper()}, nil
}
