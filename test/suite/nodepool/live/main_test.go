package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

// patience is how long anything is waited for, on a crowded machine.
const patience = 2 * time.Minute

var (
	cluster  *controlplane.Cluster
	objects  client.Client // of the administrator
	binary   foresail.Binary
	settings string // the home of processes, in which the AWS SDK finds its settings

	mu        sync.Mutex
	processes []*foresail.Process
)

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runOnCluster(ctx, m) })
}

func runOnCluster(ctx context.Context, m *testing.M) (code int, err error) {
	// The tests that run at once wait far more than they work. The command line goes before this.
	if err := flag.Set("test.parallel", "12"); err != nil {
		return 1, err
	}
	flag.Parse()
	if binary, err = foresail.Build(ctx, os.Stderr); err != nil {
		return 1, err
	}
	cluster, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, AuditPolicy: rbac.Policy,
		// Nodes whose instance has been terminated stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.Kwok: {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop())
		}
		err = errors.Join(err, cluster.Stop())
	}()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	return rbac.Run(m, "test/suite/nodepool/live", cluster)
}

// prepare applies what an installation of Foresail consists of, but for the process.
func prepare(ctx context.Context) error {
	settings = filepath.Join(cluster.Dir(), "home")
	if err := os.MkdirAll(filepath.Join(settings, ".aws"), 0o700); err != nil {
		return err
	}
	err := foresail.Apply(ctx, cluster,
		"crds/foresail.dev_workerpools.yaml", "base/namespace.yaml", "base/serviceaccount.yaml",
		"components/nodepool/rbac.yaml",
		"components/simulated-nodes/namespace.yaml", "components/simulated-nodes/rbac.yaml")
	if err != nil {
		return err
	}
	objects, err = foresail.NewClient(cluster.RESTConfig())
	return err
}

// startForesail starts a process that runs every pool, as the manifests would.
func startForesail(t *testing.T) *foresail.Process {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), foresail.Namespace, foresail.ServiceAccount)
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	p, err := foresail.Start(foresail.Options{
		Name: fmt.Sprintf("foresail-%d", len(processes)), Binary: binary, Dir: cluster.Dir(), Home: settings,
		Flags: []string{"--enable", "nodepool", "--kubeconfig", kubeconfig},
	})
	require.NoError(t, err)
	processes = append(processes, p)
	return p
}

// shared is the process of all tests that leave it alone.
var shared struct {
	once    sync.Once
	process *foresail.Process
}

// running has the shared process run.
func running(t *testing.T) {
	t.Helper()
	shared.once.Do(func() { shared.process = startForesail(t) })
	require.NotNil(t, shared.process, "foresail could not be started")
}

// logTail is the end of what the newest process has said.
func logTail() string {
	mu.Lock()
	defer mu.Unlock()
	if len(processes) == 0 {
		return "no process has been started"
	}
	return processes[len(processes)-1].LogTail()
}
