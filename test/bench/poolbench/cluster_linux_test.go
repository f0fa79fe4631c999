package poolbench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

const (
	namespace = "shop"
	poolLabel = "bench.foresail.dev/pool"
)

// site is a control plane without nodes, and Foresail.
type site struct {
	*controlplane.Cluster
	objects client.Client
}

// startSite runs a control plane, and Foresail with variables added to its environment, until the
// benchmark ends.
func startSite(b *testing.B, environment ...string) *site {
	b.Helper()
	binary, err := foresail.Build(b.Context(), b.Output())
	require.NoError(b, err)
	cluster, err := controlplane.Start(context.WithoutCancel(b.Context()), controlplane.Options{
		Progress: b.Output(),
		// Nodes whose instance has been terminated stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.Kwok: {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cluster.Stop()) })
	require.NoError(b, foresail.Apply(b.Context(), cluster, "crds/foresail.dev_workerpools.yaml"))
	_, err = cluster.Client().CoreV1().Namespaces().Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(b, err)
	objects, err := foresail.NewClient(cluster.RESTConfig())
	require.NoError(b, err)
	foresail.StartFor(b, foresail.Options{
		Binary: binary, Dir: cluster.Dir(), Env: environment, Flags: []string{"--enable", "nodepool", "--kubeconfig",
			cluster.Kubeconfig()},
	})
	return &site{cluster, objects}
}

// watchPods calls see for each pod of the benchmark that comes or changes, and gone for each that
// goes, until the benchmark ends.
func (s *site) watchPods(b *testing.B, see, gone func(*corev1.Pod)) {
	b.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client(), 0, informers.WithNamespace(namespace))
	on := func(do func(*corev1.Pod)) func(any) {
		return func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			do(o.(*corev1.Pod))
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: on(see), UpdateFunc: func(_, o any) { on(see)(o) }, DeleteFunc: on(gone),
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	b.Cleanup(func() { cancel(); factory.Shutdown() })
}

// until looks until something is so; an error of the look ends it.
func until(ctx context.Context, what string, within time.Duration, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s: %s", within, what))
	defer cancel()
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isUnschedulable tells whether the scheduler has found no node for a pod.
func isUnschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}
