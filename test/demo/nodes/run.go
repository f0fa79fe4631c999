package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/terminal"
)

const (
	namespace  = "shop"
	deployment = "checkout"
	poolName   = "workers"

	// prepareTimeout bounds what comes before the load, on a crowded machine.
	prepareTimeout = 2 * time.Minute
	lookEvery      = 250 * time.Millisecond
)

var (
	//go:embed pool.yaml
	poolManifest []byte
	//go:embed app.yaml
	appManifest []byte
)

// run shows everything once. Whatever it started has ended when it returns.
func run(ctx context.Context, o options, out, progress *os.File) (err error) {
	go controlplane.Download(ctx)
	binary, err := foresail.Build(ctx, progress)
	if err != nil {
		return err
	}
	cluster, err := startCluster(ctx, progress)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := cluster.Stop(); stopped != nil {
			err = errors.Join(err, terminal.Leftover{Err: stopped})
		}
	}()
	objects, err := apply(ctx, cluster, o)
	if err != nil {
		return err
	}
	process, err := foresail.Start(foresail.Options{
		Binary: binary, Dir: cluster.Dir(), Flags: []string{"--enable", "nodepool", "--kubeconfig",
			cluster.Kubeconfig()},
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := process.Stop(); err == nil {
			err = stopped
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-cluster.Done():
			cancel(cluster.Err())
		case <-process.Ended():
			cancel(process.Failure())
		case <-ctx.Done():
		}
	}()
	page, err := openDashboard(ctx, process, cluster, progress)
	if err != nil {
		return reason(ctx, err)
	}
	defer func() { err = errors.Join(err, page.Stop()) }()
	fmt.Fprintln(progress, "demonodes: waiting for the two nodes that the pool has at least; watch it in a browser: "+page.URL)
	return reason(ctx, show(ctx, cluster, objects, process, o, out))
}

// reason prefers why everything ends to an error that follows from it.
func reason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func startCluster(ctx context.Context, progress io.Writer) (*controlplane.Cluster, error) {
	binaries, err := controlplane.Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer controlplane.Announce(progress, "demonodes: starting a control plane without nodes")()
	return controlplane.Start(ctx, controlplane.Options{
		Binaries: binaries, Progress: progress,
		// Nodes whose instance has been terminated stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.Kwok: {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
}

// openDashboard serves the page of the pool, as its users do, once Foresail is ready.
func openDashboard(ctx context.Context, process *foresail.Process, cluster *controlplane.Cluster,
	progress io.Writer) (*foresail.Dashboard, error) {
	defer controlplane.Announce(progress, "demonodes: starting foresail run --enable nodepool")()
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, fmt.Errorf("not ready within %s", prepareTimeout))
	defer cancel()
	if err := process.WaitReady(ctx); err != nil {
		return nil, err
	}
	return process.OpenDashboard(ctx, cluster.Kubeconfig())
}

// apply makes the cluster know WorkerPools, the pool and the application.
func apply(ctx context.Context, cluster *controlplane.Cluster, o options) (client.Client, error) {
	if err := foresail.Apply(ctx, cluster, "crds/foresail.dev_workerpools.yaml"); err != nil {
		return nil, err
	}
	if _, err := cluster.Apply(ctx, appManifest); err != nil {
		return nil, err
	}
	pool := &v1alpha1.WorkerPool{}
	if err := yaml.UnmarshalStrict(poolManifest, pool); err != nil {
		return nil, fmt.Errorf("pool.yaml: %w", err)
	}
	if o.reactive {
		pool.Spec.Forecast = v1alpha1.PoolForecastDisabled
	}
	objects, err := foresail.NewClient(cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	return objects, objects.Create(ctx, pool)
}

// show waits for the first nodes, plays the load and prints the summary.
func show(ctx context.Context, cluster *controlplane.Cluster, objects client.Client, process *foresail.Process,
	o options, out *os.File) error {
	l := newLedger()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	parts, watching := errgroup.WithContext(watching)
	parts.Go(func() error {
		return l.watch(watching, cluster.Client(), objects, process)
	})
	display := terminal.NewDisplay(out, o.plain, view, newLines(out).show)
	load := defaultLoad()
	if o.interrupt {
		load = load.withInterruption()
	}
	err := play(ctx, cluster.Client(), l, load, display)
	display.Close()
	stop()
	if err := errors.Join(err, parts.Wait()); err != nil {
		return err
	}
	_, err = io.WriteString(out, l.summary(o.reactive))
	return err
}

// play waits until the pool is ready, and then has the load come and go.
func play(ctx context.Context, client kubernetes.Interface, l *ledger, load load, d *terminal.Display[scene]) error {
	waiting, cancel := context.WithTimeoutCause(ctx, prepareTimeout,
		fmt.Errorf("the pool is not ready within %s", prepareTimeout))
	defer cancel()
	if err := until(waiting, func() bool { return l.look(time.Now()).ready() >= 2 }); err != nil {
		return fmt.Errorf("%w; the pool reports: %s", err, l.look(time.Now()).health)
	}
	began := time.Now()
	l.begin(began)
	last, interrupted := -1, false
	return until(ctx, func() bool {
		at := time.Since(began)
		if n := load.replicas(at); n != last {
			l.note(scaleTo(ctx, client, n))
			last = n
		}
		s := l.look(time.Now())
		s.at, s.phase, s.asked, s.longest = at, load.phase(at), last, load.longestPlay
		if load.interruptAt > 0 && at > load.interruptAt && !interrupted {
			interrupted = true
			l.note(interrupt(ctx, client, s))
		}
		d.Show(s)
		return at > load.longestPlay || at > load.leavesAt && s.settled()
	})
}

// until calls done until it returns true.
func until(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

// notice is how long the cloud warns before it takes an instance back.
const notice = 30 * time.Second

// interrupt has the cloud take back the first Spot instance that is at work.
func interrupt(ctx context.Context, client kubernetes.Interface, s scene) error {
	for _, n := range s.nodes {
		if n.state == serving && n.market == fleet.Spot {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, simulated.AnnotationInterrupt, notice)
			var cloud v1alpha1.SimulatedProvider
			cloud.Default()
			_, err := client.CoreV1().ConfigMaps(cloud.Namespace).Patch(ctx, n.id, types.MergePatchType, patch,
				metav1.PatchOptions{})
			return err
		}
	}
	return nil
}

func scaleTo(ctx context.Context, client kubernetes.Interface, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := client.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, patch,
		metav1.PatchOptions{}, "scale")
	return err
}
