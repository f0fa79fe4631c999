// Package e2e proves Foresail on a real control plane: the real HPA controller, the real
// aggregator, real RBAC, the project's own manifests, and pods that serve real HTTP.
package e2e

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

const (
	// readyDelay is how long the pods of these tests take to become ready.
	readyDelay = 21 * time.Second / timeScale
	// hpaSync is within how many seconds the HPA acts on a value: its period, and a little for what
	// is on the way.
	hpaSync = 15/timeScale + 3
)

// scaleToZero is the default from Kubernetes 1.37 on.
var scaleToZero = map[controlplane.Component][]string{
	controlplane.APIServer:         {"--feature-gates=HPAScaleToZero=true"},
	controlplane.ControllerManager: {"--feature-gates=HPAScaleToZero=true"},
}

//go:embed scaledobjects.yaml
var scaledObjectsYAML []byte

var (
	suite   context.Context // of all tests
	shared  *stack.Stack    // the control plane of all tests
	adapter *stack.Adapter  // the one that is registered
	pushed  receiver        // where that one takes samples by remote write
	servers serverList      // what PredictedMetrics may query
)

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runWithStack(ctx, m) })
}

func runWithStack(ctx context.Context, m *testing.M) (code int, err error) {
	suite = ctx
	// The tests that run at once wait far more than they work. The command line goes before this.
	if err := flag.Set("test.parallel", "12"); err != nil {
		return 1, err
	}
	shared, err = stack.Start(ctx, stack.Options{Progress: os.Stderr, ReadyDelay: readyDelay, Seed: 1,
		TimeScale: timeScale, ExtraArgs: scaleToZero, AuditPolicy: rbac.Policy})
	if err != nil {
		return 1, err
	}
	defer func() {
		if closed := shared.Close(); err == nil {
			err = closed
		}
	}()
	if _, err := shared.Cluster.Apply(ctx, scaledObjectsYAML); err != nil {
		return 1, err
	}
	if pushed, err = newReceiver("adapter"); err != nil {
		return 1, err
	}
	servers, err = newServerList("prometheus-1s", "prometheus-5s", "prometheus-dies", "prometheus-freezes",
		"prometheus-zero",
		"prometheus-history", "prometheus-oldest")
	if err != nil {
		return 1, err
	}
	if adapter, err = startAdapter(ctx, "adapter", pushed.flags()...); err != nil {
		return 1, err
	}
	if err := shared.Register(ctx, adapter); err != nil {
		return 1, err
	}
	code, err = rbac.Run(m, "test/suite/e2e", shared.Cluster)
	if code != 0 {
		keepLogs()
	}
	return code, errors.Join(err, adapter.Stop())
}

func startAdapter(ctx context.Context, name string, flags ...string) (*stack.Adapter, error) {
	a, err := runAdapter(ctx, name, flags...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("not within a minute"))
	defer cancel()
	return a, a.WaitReady(ctx)
}

// keepLogs prints the end of the log of the adapter.
func keepLogs() {
	content, err := os.ReadFile(adapter.LogFile)
	if err != nil {
		return
	}
	const most = 20_000
	fmt.Fprintf(os.Stderr, "the adapter's log, to its end:\n%s\n", content[max(0, len(content)-most):])
}

// newApp returns an application whose pods serve 25 requests a second each at the most.
func newApp(namespace, name, metric string) stack.App {
	return stack.App{
		Namespace: namespace, Name: name, Metric: metric,
		Replicas: 4, Min: 4, Max: 20,
		ServiceTime: 40 * time.Millisecond, Threshold: resource.MustParse("700m"),
	}
}

// deploy puts an application on the cluster and waits for its first forecast.
func deploy(t *testing.T, a stack.App) {
	t.Helper()
	deployAll(t, []stack.App{a})
}

func deployAll(t *testing.T, apps []stack.App) {
	t.Helper()
	place(t, apps...)
	for _, a := range apps {
		waitForForecast(t, a)
	}
}

// place puts applications on the cluster and waits for their pods.
func place(t *testing.T, apps ...stack.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range apps {
		group.Go(func() error { return shared.Deploy(ctx, a) })
	}
	require.NoError(t, group.Wait())
}
