// Package smoke plays each promise of the README once, all on one control plane and with one
// Foresail process that does everything: a real HPA follows a forecast, a pool of workers launches
// and drains, a real scheduler asks the extender, and KEDA's protocol is answered. Every process is
// real; pods and nodes are objects that kwok makes Ready.
//
// It is what "make test" runs besides the unit tests. "make test-e2e" has the faults, races and variants.
package smoke

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

const (
	// timeScale divides every period: syncs of the HPA, starts of pods, windows and ramps.
	timeScale  = 3
	readyDelay = 21 * time.Second / timeScale
	// patience bounds each wait, on a crowded machine.
	patience = 2 * time.Minute
)

//go:embed rights.yaml
var rights []byte

var (
	shared  *stack.Stack
	adapter *stack.Adapter
	objects client.Client // of the administrator
	usage   *nodeUsage
	// extenderAddress and kedaAddress are where the process answers kube-scheduler and KEDA, as host:port.
	extenderAddress, kedaAddress string
)

// oldest has the promises kept with the oldest supported Kubernetes.
var oldest = flag.Bool("oldest", false, "run the oldest Kubernetes that Foresail supports")

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runOnCluster(ctx, m) })
}

func runOnCluster(ctx context.Context, m *testing.M) (code int, err error) {
	// The tests wait far more than they work. The command line overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		return 1, err
	}
	flag.Parse()
	shared, err = stack.Start(ctx, stack.Options{
		Progress: os.Stderr, ReadyDelay: readyDelay, Seed: 1, TimeScale: timeScale, OldestKubernetes: *oldest,
		// A node whose instance has been terminated must stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.Kwok: {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	if objects, err = foresail.NewClient(shared.Cluster.RESTConfig()); err != nil {
		return 1, err
	}
	if usage, err = serveUsage(ctx, shared.Cluster); err != nil {
		return 1, err
	}
	if err := startForesail(ctx); err != nil {
		return 1, err
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, adapter.LogTail())
	}
	return code, adapter.Stop()
}

// startForesail starts one process with all parts, under the rights that the manifests grant to each of them.
func startForesail(ctx context.Context) error {
	err := foresail.Apply(ctx, shared.Cluster, "components/nodepool/rbac.yaml",
		"components/simulated-nodes/namespace.yaml", "components/simulated-nodes/rbac.yaml", "components/extender-rights/rbac.yaml")
	if err != nil {
		return err
	}
	if _, err := shared.Cluster.Apply(ctx, rights); err != nil {
		return err
	}
	for _, address := range []*string{&extenderAddress, &kedaAddress} {
		if *address, err = ports.TakeAddress(); err != nil {
			return err
		}
	}
	cert, _, err := shared.Cluster.ServingCertificate("127.0.0.1", "localhost")
	if err != nil {
		return err
	}
	adapter, err = shared.StartAdapter(ctx, "foresail", "--enable", "adapter,nodepool,extender", "--keda-address",
		kedaAddress,
		"--extender-address", extenderAddress, "--extender-cert-dir", filepath.Dir(cert),
		"test:extender-metrics-interval=1s", "test:extender-warm-up=0s")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	if err := adapter.WaitReady(ctx); err != nil {
		return err
	}
	return shared.Register(ctx, adapter)
}
