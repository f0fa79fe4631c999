package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/terminal"
)

const (
	namespace = "demo"
	// readyDelay is how long a pod takes from its start to its readiness.
	readyDelay = 20 * time.Second
	// prepareTimeout bounds each step before the load, on a crowded machine.
	prepareTimeout = 2 * time.Minute
)

// applications are the two that are compared. A pod of theirs serves 100 requests a second at the most.
func applications() []stack.App {
	predicted := stack.App{
		Namespace: namespace, Name: "predicted", Metric: "predicted_load_total",
		Replicas: 4, Min: 4, Max: 20,
		ServiceTime: 10 * time.Millisecond, Threshold: resource.MustParse("700m"),
	}
	reactive := predicted
	reactive.Name, reactive.Reactive = "reactive", true
	return []stack.App{predicted, reactive}
}

// run shows everything once. Whatever it started has ended when it returns.
func run(ctx context.Context, c config, out, progress *os.File) (err error) {
	s, err := stack.Start(ctx, stack.Options{Progress: progress, ReadyDelay: readyDelay, Seed: c.seed})
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.Close(); closed != nil {
			err = errors.Join(err, terminal.Leftover{Err: closed})
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case failure := <-s.Failed():
			cancel(failure)
		case <-ctx.Done():
		}
	}()
	adapter, err := s.StartAdapter(ctx, "adapter", "--dashboard")
	if err != nil {
		return err
	}
	defer func() {
		if stopped := adapter.Stop(); ctx.Err() == nil && err == nil {
			err = stopped
		}
	}()
	apps := applications()
	if err := prepare(ctx, s, adapter, apps, progress); err != nil {
		return cause(ctx, err)
	}
	page, err := openDashboard(ctx, s, adapter)
	if err != nil {
		return cause(ctx, err)
	}
	defer func() { err = errors.Join(err, page.Stop()) }()
	step(progress, fmt.Sprintf("the load begins and takes %s; watch it in a browser: %s",
		terminal.Clock(c.profile.Duration()), page.URL))
	fmt.Fprintf(progress, "demo: meanwhile, in another shell:\n%s\n", inspect(s, adapter))
	runs, err := play(ctx, s, adapter, apps, c, out)
	if err != nil {
		return cause(ctx, err)
	}
	if err := conclude(c, runs, out); err != nil {
		return err
	}
	if c.keep {
		return keep(ctx, s, adapter, page.URL, out)
	}
	return nil
}

// openDashboard serves the page of Foresail, as its users do.
func openDashboard(ctx context.Context, s *stack.Stack, adapter *stack.Adapter) (*foresail.Dashboard, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, fmt.Errorf("not ready within %s", prepareTimeout))
	defer cancel()
	return adapter.OpenDashboard(ctx, s.Cluster.Kubeconfig())
}

// cause prefers the reason why everything ends to an error that follows from it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func step(progress io.Writer, text string) { fmt.Fprintln(progress, "demo: "+text) }

// prepare brings the adapter and the applications to where the load can begin. The adapter starts
// while the first pods do.
func prepare(ctx context.Context, s *stack.Stack, adapter *stack.Adapter, apps []stack.App, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, fmt.Errorf("not ready within %s", prepareTimeout))
	defer cancel()
	metrics, err := externalmetrics.NewForConfig(s.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		defer controlplane.Announce(progress, "demo: starting Foresail and registering it as external.metrics.k8s.io")()
		if err := adapter.WaitReady(ctx); err != nil {
			return err
		}
		return s.Register(ctx, adapter)
	})
	deployed := controlplane.Announce(progress,
		fmt.Sprintf("demo: deploying two applications, whose pods take %s to become ready, and waiting for their first forecasts", readyDelay))
	for _, a := range apps {
		parts.Go(func() error {
			if err := s.Deploy(ctx, a); err != nil {
				return err
			}
			return waitForForecast(ctx, metrics, a)
		})
	}
	err = parts.Wait()
	deployed()
	return err
}

func waitForForecast(ctx context.Context, metrics externalmetrics.ExternalMetricsClient, a stack.App) error {
	for {
		_, err := stack.ReadMetric(metrics, a)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no forecast for %s: %w: %w", a.Name, context.Cause(ctx), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// play plays the load to all applications at once and shows it.
func play(ctx context.Context, s *stack.Stack, adapter *stack.Adapter, apps []stack.App, c config,
	out *os.File) ([]stack.Run, error) {
	seen, err := newForecasts(adapter, s.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	b := newBoard(s.Cluster.Kubeconfig(), c.profile, apps)
	d := terminal.NewDisplay(out, c.plain, view, newLines(out))
	defer d.Close()

	showing, shown := context.WithCancel(ctx)
	var viewers errgroup.Group
	viewers.Go(func() error { seen.watch(showing, apps, b); return nil })
	viewers.Go(func() error { showEach(showing, b, d); return nil })
	defer func() { shown(); _ = viewers.Wait() }() // they return no errors

	runs := make([]stack.Run, len(apps))
	plays, ctx := errgroup.WithContext(ctx)
	for i, a := range apps {
		plays.Go(func() (err error) {
			runs[i], err = s.Play(ctx, a, c.profile, func(m stack.Moment) { b.note(i, m) })
			return err
		})
	}
	return runs, plays.Wait()
}

// showEach shows the board each second until ctx ends.
func showEach(ctx context.Context, b *board, d *terminal.Display[scene]) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		d.Show(b.look())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// conclude prints what the runs came to and draws them.
func conclude(c config, runs []stack.Run, out io.Writer) error {
	result := compare(runs[0], runs[1])
	fmt.Fprint(out, result.summary())
	if c.chart == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.chart), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(c.chart, []byte(chart(c.profile, result)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nA chart of the run is in %s\n", c.chart)
	if !c.keep {
		fmt.Fprintln(out, "Look further: go run ./test/demo/pods --keep leaves the control plane up for kubectl,\n--down watches the way back down, --help lists the rest.")
	}
	return nil
}

// keep leaves everything up until ctx ends, which is no failure unless the cluster broke.
func keep(ctx context.Context, s *stack.Stack, adapter *stack.Adapter, page string, out io.Writer) error {
	fmt.Fprintf(out, "\nThe control plane stays up, without load, until Ctrl-C. The page of Foresail is at\n%s\n\n%s",
		page, inspect(s, adapter))
	<-ctx.Done()
	return s.Cluster.Err()
}

// inspect returns commands that look at the control plane and at Foresail.
func inspect(s *stack.Stack, adapter *stack.Adapter) string {
	return fmt.Sprintf(`  export KUBECONFIG=%s
  kubectl -n %[2]s get predictedmetrics,hpa,deployments
  kubectl -n %[2]s describe predictedmetric predicted
  kubectl get --raw '/apis/external.metrics.k8s.io/v1beta1/namespaces/%[2]s/predicted_load_total?labelSelector=predictedmetric%%3Dpredicted'
  curl http://%[3]s/metrics
`, s.Cluster.Kubeconfig(), namespace, adapter.Address)
}

// newLines returns a function that prints a line for each application every five seconds.
func newLines(out io.Writer) func(scene) {
	due := terminal.Every{Period: 5 * time.Second}
	return func(s scene) {
		if s.at == 0 || !due.Due(s.at) {
			return
		}
		for _, p := range s.panels {
			fmt.Fprintln(out, p.plain(s.at))
		}
	}
}
