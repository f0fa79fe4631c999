package workload

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/test/env/ports"
)

// fleet holds the pods that are served. Its methods are called one at a time.
type fleet struct {
	options Options
	serving map[cache.ObjectName]service
	running sync.WaitGroup
}

// service is one pod that is served, or that waits for its address.
type service struct {
	uid  types.UID
	stop context.CancelFunc
}

func newFleet(options Options) *fleet {
	if options.Shares == nil {
		options.Shares = &Shares{}
	}
	if options.Failed == nil {
		options.Failed = func(error) {}
	}
	return &fleet{options: options, serving: map[cache.ObjectName]service{}}
}

// sync starts or stops serving a pod as its state demands. A pod may have been replaced by another
// of the same name. Everything ends with ctx.
func (f *fleet) sync(ctx context.Context, pod *corev1.Pod) {
	f.options.Shares.follow(pod)
	name := cache.MetaObjectToName(pod)
	desired := pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != ""
	current, serving := f.serving[name]
	if serving && (!desired || current.uid != pod.UID) {
		f.stop(name)
		serving = false
	}
	if desired && !serving {
		f.start(ctx, name, pod)
	}
}

func (f *fleet) start(ctx context.Context, name cache.ObjectName, pod *corev1.Pod) {
	// Bounded by the context of the whole fleet: when everything ends nothing is drained.
	draining := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, f.options.Drain) }
	serving, stop := context.WithCancel(ctx)
	f.serving[name] = service{uid: pod.UID, stop: stop}
	f.running.Go(func() {
		if err := f.serve(serving, pod, draining); err != nil {
			klog.FromContext(ctx).Error(err, "Pod is not served", "pod", klog.KObj(pod))
			f.options.Failed(notServed(pod, err))
		}
	})
}

func (f *fleet) stop(name cache.ObjectName) {
	if current, ok := f.serving[name]; ok {
		current.stop()
		delete(f.serving, name)
	}
}

// wait returns when everything stopped has been closed.
func (f *fleet) wait() { f.running.Wait() }

// serve serves one pod until ctx ends, then drains it.
func (f *fleet) serve(ctx context.Context, pod *corev1.Pod,
	draining func() (context.Context, context.CancelFunc)) error {
	model, err := modelOf(pod, f.options.Model)
	if err != nil {
		return err
	}
	server, err := NewPod(pod.Namespace+"/"+pod.Name, model, f.options.Seed)
	if err != nil {
		return err
	}
	server.usage = f.options.Shares.usage(pod, server.Usage)
	app, metrics, err := f.listen(ctx, pod)
	if err != nil || app == nil {
		return err
	}
	f.running.Go(func() {
		<-ctx.Done()
		drain, cancel := draining()
		defer cancel()
		server.Shutdown(drain)
	})
	return server.Serve(app, metrics)
}

// notServed names the pod that an error is about.
func notServed(pod *corev1.Pod, err error) error {
	return fmt.Errorf("pod %s/%s is not served: %w", pod.Namespace, pod.Name, err)
}

// retry is how listening is tried again: a pod's address may still be held by an earlier pod that is closing.
var retry = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 8}

// failedAfter is the time after which an address that is in use is reported to Options.Failed.
// Closing takes less.
const failedAfter = 3 * time.Second

// listen opens both ports of a pod, again and again until it can or ctx ends; then it returns nil
// listeners, no error.
func (f *fleet) listen(ctx context.Context, pod *corev1.Pod) (app, metrics net.Listener, err error) {
	appAddress, err := AppAddress(pod)
	if err != nil {
		return nil, nil, err
	}
	metricsAddress, err := MetricsAddress(pod)
	if err != nil {
		return nil, nil, err
	}
	if err := checkAddresses(appAddress, metricsAddress); err != nil {
		return nil, nil, err
	}
	began, logged, failed := time.Now(), false, false
	_ = retry.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if app, metrics, err = listenBoth(ctx, appAddress, metricsAddress); err == nil {
			return true, nil
		}
		if !logged && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Listening is tried again until it works", "pod", klog.KObj(pod))
			logged = true
		}
		if !failed && ctx.Err() == nil && time.Since(began) > failedAfter {
			f.options.Failed(notServed(pod, err))
			failed = true
		}
		return false, nil
	}) // ends with an error only when ctx does
	return app, metrics, nil
}

func checkAddresses(app, metrics netip.AddrPort) error {
	if !app.Addr().IsLoopback() {
		return fmt.Errorf("address %s: must be a loopback address", app.Addr())
	}
	if app == metrics {
		return fmt.Errorf("ports %s and %s are both %d: must differ", AppPortName, MetricsPortName, app.Port())
	}
	return nil
}

// listenBoth opens both ports or none.
func listenBoth(ctx context.Context, appAddress, metricsAddress netip.AddrPort) (app, metrics net.Listener, err error) {
	if app, err = listenAt(ctx, appAddress.String()); err != nil {
		return nil, nil, err
	}
	if metrics, err = listenAt(ctx, metricsAddress.String()); err != nil {
		_ = app.Close()
		return nil, nil, err
	}
	return app, metrics, nil
}

func listenAt(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return listener, ports.Explain(err, address)
}
