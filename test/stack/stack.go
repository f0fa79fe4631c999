package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/workload"
)

// Where the manifests put the adapter.
const (
	Namespace      = "foresail-system"
	ServiceName    = "foresail"
	ServiceAccount = "foresail"
)

// hpaPeriod is how often the HPA controller acts, unless TimeScale shortens it.
const hpaPeriod = 15 * time.Second

// Options of a Stack.
type Options struct {
	// Progress receives lines about builds and waits; nil for none.
	Progress io.Writer
	// ReadyDelay is how long a pod takes from its start to its readiness.
	ReadyDelay time.Duration
	// Seed is that of the service times.
	Seed uint64
	// TimeScale divides the periods of the HPA controller, of the HPAs and of the PredictedMetrics, for short tests; 0 stands
	// for 1. The caller divides ReadyDelay and its loads by the same number. Readings stay a second apart.
	TimeScale int
	// ExtraArgs are further flags of control plane components.
	ExtraArgs map[controlplane.Component][]string
}

// Stack is a control plane with Foresail's manifests applied and a workload behind every pod of its applications.
type Stack struct {
	Cluster *controlplane.Cluster
	binary  string
	scale   int // Options.TimeScale

	workload sync.WaitGroup
	cancel   context.CancelFunc
}

// Start builds what is missing and runs a stack without an adapter; StartAdapter adds one. Close ends it.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	binary, err := BuildForesail(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	scale := max(1, o.TimeScale)
	extra := maps.Clone(o.ExtraArgs)
	if scale > 1 {
		if extra == nil {
			extra = map[controlplane.Component][]string{}
		}
		extra[controlplane.ControllerManager] = append([]string{
			"--horizontal-pod-autoscaler-sync-period=" + (hpaPeriod / time.Duration(scale)).String(),
		}, extra[controlplane.ControllerManager]...)
	}
	cluster, err := controlplane.Start(ctx, controlplane.Options{
		Progress: o.Progress, Nodes: 2, ReadyDelay: o.ReadyDelay, ExtraArgs: extra,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Stack{Cluster: cluster, binary: binary, scale: scale, cancel: cancel}
	if err := s.applyManifests(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.workload.Go(func() {
		err := workload.Run(ctx, cluster.RESTConfig(), workload.Options{Selector: WorkloadLabel + "=true", Seed: o.Seed, Drain: 10 * time.Second})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The workload has ended")
		}
	})
	return s, nil
}

// Close ends the workload and the control plane. Adapters end with their own contexts.
func (s *Stack) Close() error {
	s.cancel()
	s.workload.Wait()
	return s.Cluster.Stop()
}

// BuildForesail builds the command under test into the cache folder, and returns where it is.
func BuildForesail(ctx context.Context, progress io.Writer) (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// The go command leaves its work folder behind if it is interrupted early, so it is given one to leave it in.
	work, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }() // what matters has been moved out of it by then
	binary := filepath.Join(cache, "bin", "foresail")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/foresail")
	build.Dir, build.Env = root, append(os.Environ(), "GOTMPDIR="+work)
	// An interrupt lets the go command end its own children.
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = 5 * time.Second
	defer controlplane.Announce(progress, "building foresail")()
	if output, err := build.CombinedOutput(); ctx.Err() != nil {
		return "", fmt.Errorf("build foresail: %w", context.Cause(ctx))
	} else if err != nil {
		return "", fmt.Errorf("build foresail: %w\n%s", err, output)
	}
	return binary, nil
}

// applyManifests applies the definitions and the base as users do. The pods of the adapter's Deployment are never more
// than objects here, where no image can run: adapters are processes.
func (s *Stack) applyManifests(ctx context.Context) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	var documents [][]byte
	for _, folder := range []string{"crds", "base"} {
		files, err := fs.Glob(os.DirFS(filepath.Join(root, "manifests", folder)), "*.yaml")
		if err != nil {
			return err
		}
		for _, file := range files {
			if file == "kustomization.yaml" {
				continue
			}
			content, err := os.ReadFile(filepath.Join(root, "manifests", folder, file))
			if err != nil {
				return err
			}
			documents = append(documents, content)
		}
	}
	return s.applyInAnyOrder(ctx, documents)
}

// applyInAnyOrder applies files that may need one another, such as objects of a namespace and the namespace.
func (s *Stack) applyInAnyOrder(ctx context.Context, documents [][]byte) error {
	for {
		var failed [][]byte
		var errs []error
		for _, document := range documents {
			if _, err := s.Cluster.Apply(ctx, document); err != nil {
				failed, errs = append(failed, document), append(errs, err)
			}
		}
		switch {
		case len(failed) == 0:
			return nil
		case len(failed) == len(documents):
			return fmt.Errorf("apply the manifests: %w", errors.Join(errs...))
		}
		documents = failed
	}
}
