// Package extender has real kube-schedulers ask a real Foresail, started as a process by the flags
// that users give, while things go on and go wrong around them: nodes that are removed, nodes that
// fill up, bursts of pods, and faults between the two.
//
// All tests share one control plane, and each has its own nodes, by a label that all of its pods
// ask for, and its own schedulers, so that each can be run alone. What nodes use is played: every
// pod says in annotations what it will really use, which need not be what it requests, and tests
// add what nodes use beside their pods. It is served as metrics.k8s.io.
package extender

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

// patience is how long anything is waited for, on a crowded machine.
const patience = 2 * time.Minute

// long makes the comparisons longer than a run of all tests has time for.
var long = flag.Bool("long", false, "compare for longer")

var (
	cluster *controlplane.Cluster
	objects client.Client // of the administrator
	binary  = sync.OnceValues(func() (foresail.Binary,
		error) {
		return foresail.Build(context.Background(), os.Stderr)
	})
	uses  *meter
	pools *foresail.Process // that runs WorkerPools
)

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runOnCluster(ctx, m) })
}

func runOnCluster(ctx context.Context, m *testing.M) (code int, err error) {
	// The tests that run at once wait far more than they work. The command line goes before this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		return 1, err
	}
	flag.Parse()
	cluster, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, KeepDir: os.Getenv("KEEP_DIR") != "", AuditPolicy: rbac.Policy,
		// Nodes whose instance has been terminated stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.APIServer: {"--delete-collection-workers=8"}, // stages end with hundreds of pods
			controlplane.Kwok:      {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if uses, err = startMeter(ctx); err != nil {
		return 1, err
	}
	if pools, err = startPools(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, pools.Stop()) }()
	return rbac.Run(m, "test/suite/extender", cluster)
}

// prepare applies what an installation of Foresail consists of, but for the process.
func prepare(ctx context.Context) error {
	if err := os.MkdirAll(home(), 0o700); err != nil {
		return err
	}
	err := foresail.Apply(ctx, cluster,
		"crds/foresail.dev_workerpools.yaml", "base/namespace.yaml", "base/serviceaccount.yaml",
		"components/nodepool/rbac.yaml",
		"components/simulated-nodes/namespace.yaml", "components/simulated-nodes/rbac.yaml",
		"components/extender-rights/rbac.yaml",
		"overlays/extender/serviceaccount.yaml", "overlays/extender/binding.yaml")
	if err != nil {
		return err
	}
	objects, err = foresail.NewClient(cluster.RESTConfig())
	return err
}

// home is the working directory of processes.
func home() string { return filepath.Join(cluster.Dir(), "home") }
