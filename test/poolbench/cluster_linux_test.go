package poolbench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
	"github.com/foresail/foresail/test/stack"
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

// startSite runs a control plane, and Foresail with variables added to its environment, until the benchmark ends.
func startSite(b *testing.B, environment ...string) *site {
	b.Helper()
	binary, err := stack.BuildForesail(b.Context(), b.Output())
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
	root, err := controlplane.Root()
	require.NoError(b, err)
	definition, err := os.ReadFile(filepath.Join(root, "manifests", "crds", "foresail.dev_workerpools.yaml"))
	require.NoError(b, err)
	_, err = cluster.Apply(b.Context(), definition)
	require.NoError(b, err)
	_, err = cluster.Client().CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(b, err)
	scheme := runtime.NewScheme()
	require.NoError(b, v1alpha1.AddToScheme(scheme))
	objects, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(b, err)
	startForesail(b, cluster, binary, environment)
	return &site{cluster, objects}
}

func startForesail(b *testing.B, cluster *controlplane.Cluster, binary string, environment []string) {
	b.Helper()
	port, err := ports.Take()
	require.NoError(b, err)
	env, err := exec.LookPath("env") // gives way to the command
	require.NoError(b, err)
	command := append(environment, binary, "run", "--enable", "nodepool", "--kubeconfig", cluster.Kubeconfig(), "--http-address", "127.0.0.1:"+strconv.Itoa(port))
	foresail, err := controlplane.StartProcess("foresail", env, filepath.Join(cluster.Dir(), "foresail.log"), cluster.Dir(), command)
	require.NoError(b, err)
	b.Cleanup(func() {
		if b.Failed() {
			b.Log(foresail.LogTail())
		}
		require.NoError(b, foresail.Stop(20*time.Second))
	})
}

// watchPods calls see for each pod of the benchmark that comes or changes, and gone for each that goes, until the
// benchmark ends.
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
