package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
	"github.com/foresail/foresail/test/stack"
)

const (
	// patience is how long anything is waited for, on a crowded machine.
	patience = 2 * time.Minute
	// stopDeadline is how long foresail has to end by itself.
	stopDeadline = 15 * time.Second
)

var (
	cluster  *controlplane.Cluster
	objects  client.Client // of the administrator
	binary   string
	settings string // the home of processes, in which the AWS SDK finds its settings

	mu        sync.Mutex
	processes []*controlplane.Process
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := runOnCluster(ctx, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runOnCluster(ctx context.Context, m *testing.M) (code int, err error) {
	// The tests that run at once wait far more than they work. The command line goes before this.
	if err := flag.Set("test.parallel", "12"); err != nil {
		return 1, err
	}
	flag.Parse()
	if binary, err = stack.BuildForesail(ctx, os.Stderr); err != nil {
		return 1, err
	}
	cluster, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr,
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
			err = errors.Join(err, p.Stop(stopDeadline))
		}
		err = errors.Join(err, cluster.Stop())
	}()
	if err := prepare(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// prepare applies what an installation of Foresail consists of, but for the process.
func prepare(ctx context.Context) error {
	settings = filepath.Join(cluster.Dir(), "home")
	if err := os.MkdirAll(filepath.Join(settings, ".aws"), 0o700); err != nil {
		return err
	}
	for _, file := range []string{
		"crds/foresail.dev_workerpools.yaml", "base/namespace.yaml", "base/serviceaccount.yaml", "components/nodepool/rbac.yaml",
		"components/simulated-nodes/namespace.yaml", "components/simulated-nodes/rbac.yaml",
	} {
		manifest, err := readManifest(file)
		if err != nil {
			return err
		}
		if _, err := cluster.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	objects, err = client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	return err
}

func readManifest(file string) ([]byte, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, "manifests", file))
}

// startForesail starts a process that runs every pool, as the manifests would.
func startForesail(t *testing.T) *controlplane.Process {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), "foresail-system", "foresail")
	require.NoError(t, err)
	port, err := ports.Take()
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	log := filepath.Join(cluster.Dir(), fmt.Sprintf("foresail-%d.log", len(processes)))
	p, err := controlplane.StartProcess("foresail", binary, log, settings, []string{
		"run", "--enable", "nodepool", "--kubeconfig", kubeconfig, "--http-address", "127.0.0.1:" + strconv.Itoa(port),
	})
	require.NoError(t, err)
	processes = append(processes, p)
	return p
}

// foresail is the process of all tests that leave it alone.
var foresail struct {
	once    sync.Once
	process *controlplane.Process
}

// running has the shared process run.
func running(t *testing.T) {
	t.Helper()
	foresail.once.Do(func() { foresail.process = startForesail(t) })
	require.NotNil(t, foresail.process, "foresail could not be started")
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
