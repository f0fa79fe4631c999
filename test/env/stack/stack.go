package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/workload"
)

// hpaPeriod is how often the HPA controller acts, unless TimeScale shortens it.
const hpaPeriod = 15 * time.Second

// Options of a Stack.
type Options struct {
	// Progress receives lines about builds and waits; nil for none.
	Progress io.Writer
	// OldestKubernetes runs the oldest release that Foresail supports.
	OldestKubernetes bool
	// ReadyDelay is how long a pod takes from its start to its readiness.
	ReadyDelay time.Duration
	// Seed is that of the service times.
	Seed uint64
	// TimeScale divides the periods of the HPA controller, of the HPAs and of the PredictedMetrics,
	// for short tests; 0 stands for 1. The caller divides ReadyDelay and its loads by the same
	// number. Readings stay a second apart.
	TimeScale int
	// ExtraArgs are further flags of control plane components.
	ExtraArgs map[controlplane.Component][]string
	// Stages are further kwok Stage documents in YAML.
	Stages []byte
	// AuditPolicy is that of the control plane; nil for no log.
	AuditPolicy []byte
}

// Stack is a control plane with Foresail's manifests applied and a workload behind every pod of its
// applications.
type Stack struct {
	Cluster *controlplane.Cluster
	binary  foresail.Binary
	scale   int  // Options.TimeScale
	oldest  bool // Options.OldestKubernetes
	ports   podPorts
	// Shares are loads that applications carry without requests.
	Shares *workload.Shares

	workload sync.WaitGroup
	cancel   context.CancelFunc
	failed   chan error // has room for the first failure
}

// podPorts are the ports on which pods listen, each at its own address. They are taken so that no
// other program has them on all addresses, which would be those of pods too.
type podPorts struct{ App, Metrics int }

func takePodPorts() (podPorts, error) {
	app, err := ports.Take()
	if err != nil {
		return podPorts{}, err
	}
	metrics, err := ports.Take()
	return podPorts{app, metrics}, err
}

// Start builds what is missing and runs a stack without an adapter; StartAdapter adds one. Close ends it.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	go controlplane.Download(ctx)
	binary, err := foresail.Build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	free, err := takePodPorts()
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
	build := controlplane.Build
	if o.OldestKubernetes {
		build = controlplane.BuildOldest
	}
	binaries, err := build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	started := controlplane.Announce(o.Progress, "starting the control plane and installing Foresail")
	defer started()
	cluster, err := controlplane.Start(ctx, controlplane.Options{
		Binaries: binaries, Progress: o.Progress, Nodes: 2, ReadyDelay: o.ReadyDelay, ExtraArgs: extra,
		Stages: o.Stages, AuditPolicy: o.AuditPolicy,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Stack{
		Cluster: cluster, binary: binary, scale: scale, oldest: o.OldestKubernetes, ports: free,
		Shares: &workload.Shares{}, cancel: cancel, failed: make(chan error, 1),
	}
	// The pods of the adapter's Deployment are never more than objects here, where no image can
	// run: adapters are processes.
	if err := foresail.ApplyBase(ctx, cluster); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.workload.Go(func() {
		err := workload.Run(ctx, cluster.RESTConfig(), workload.Options{
			Selector: WorkloadLabel + "=true", Seed: o.Seed, Shares: s.Shares, Drain: 10 * time.Second, Failed: s.fail,
		})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The workload has ended")
			s.fail(fmt.Errorf("serve pods: %w", err))
		}
	})
	s.workload.Go(func() {
		select {
		case <-cluster.Done():
			s.fail(cluster.Err())
		case <-ctx.Done():
		}
	})
	return s, nil
}

// Failed receives the first reason why the stack does not work as a whole: a component of the
// control plane has ended, or a pod is not served; nil when the control plane was stopped.
func (s *Stack) Failed() <-chan error { return s.failed }

func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default: // an earlier reason is the cause
	}
}

// Close ends the workload and the control plane. Adapters end with their own contexts.
func (s *Stack) Close() error {
	s.cancel()
	s.workload.Wait()
	return s.Cluster.Stop()
}
