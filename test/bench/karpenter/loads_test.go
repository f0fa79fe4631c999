//go:build long

package karpenter_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/bench/karpenter"
	"github.com/foresail/foresail/test/env/foresail"
)

var (
	onlyLoads = flag.String("loads", "", "run only these loads, such as ramp,spikes")
	measured  = foresail.DefineFlags()
	asIs      = flag.Bool("as-is", false, "leave the constants of both as they are, which settings do not reach")
)

// compress divides every time of the loads, of nodes and of both autoscalers, constants of their
// source included: twenty minutes pass in four. It is the largest number by which the intervals of
// a WorkerPool and the starts of nodes are whole seconds.
const compress = 5

const (
	startOfNode = 40 * time.Second / compress // from the launch of an instance until its Node is there
	warmUp      = 5 * time.Minute / compress  // before figures are taken, in which forecasts gather samples
)

// contender is an autoscaler with its settings. Each has a pool of nodes, a namespace and pods of its own.
type contender struct {
	name  string
	label string // of its nodes, with the name of their pool
	pool  func(*side)
}

var contenders = []contender{
	{name: "karpenter", label: karpenter.PoolLabel, pool: (*side).nodePool},
	{name: "workerpool", label: workerPoolLabel, pool: (*side).workerPool},
}

// rivals are the processes of both autoscalers.
type rivals struct {
	testing.TB
	objects    client.Client
	compressed bool
	processes  map[string]int // ids, by the name of the autoscaler
}

// side is a contender under a load.
type side struct {
	contender
	testing.TB
	objects client.Client
	name    string // of its namespace and its pool
	process string // the name of its autoscaler

	maxNodes   int
	compressed bool
	ledger     *ledger
}

// BenchmarkLoads plays one load after the other to Karpenter and to WorkerPools at the same time,
// each with pods and nodes of its own on one control plane. Figures are printed, not asserted.
func BenchmarkLoads(b *testing.B) {
	r := newRivals(b, !*asIs)
	for _, l := range loads() {
		if *onlyLoads == "" || slices.Contains(strings.Split(*onlyLoads, ","), l.name) {
			r.play(b, l)
		}
	}
}

// newRivals starts Foresail, and a Karpenter that has served no pool before. Compressed ones have
// the times of the loads.
func newRivals(b *testing.B, compressed bool) *rivals {
	b.Helper()
	log.SetLogger(klog.Background()) // before the first client: controller-runtime warns of none
	cluster := shared.stack.Cluster
	binaries := shared.binaries
	var flags []string
	var err error
	if compressed {
		flags = []string{
			"--batch-idle-duration=" + (time.Second / compress).String(),
			"--batch-max-duration=" + (10 * time.Second / compress).String(),
		}
		binaries, err = karpenter.BuildCompressed(b.Context(), b.Output(), compress)
		require.NoError(b, err)
	}
	require.NoError(b, shared.karpenter.Stop())
	shared.karpenter, err = karpenter.Start(b.Context(), cluster, binaries, flags...)
	require.NoError(b, err)
	build := measured.Build
	if compressed && !measured.Given() {
		build = func(ctx context.Context, progress io.Writer) (foresail.Binary, error) {
			return karpenter.BuildForesailCompressed(ctx, progress, compress)
		}
	}
	binary, err := build(b.Context(), b.Output())
	require.NoError(b, err)
	process := foresail.StartFor(b, foresail.Options{
		Name: "foresail-loads", Binary: binary, Dir: cluster.Dir(), Flags: []string{"--enable", "nodepool",
			"--kubeconfig", cluster.Kubeconfig()},
	})
	objects, err := foresail.NewClient(cluster.RESTConfig())
	require.NoError(b, err)
	return &rivals{b, objects, compressed, map[string]int{"karpenter": shared.karpenter.PID(),
		"foresail": process.PID()}}
}

// play has all contenders carry a load from the same moment on, and reports what it cost.
func (r *rivals) play(b *testing.B, l load) {
	var sides []*side
	for _, c := range contenders {
		sides = append(sides, r.newSide(l, c))
	}
	for _, s := range sides {
		s.settle()
	}
	r.wait(warmUp)
	usage := map[string]*usage{}
	for name, pid := range r.processes {
		usage[name] = r.watchUsage(pid)
	}
	idle := r.idleCores()
	begin := time.Now()
	r.carry(l, sides)
	end := time.Now()
	idle = (r.idleCores() - idle) / end.Sub(begin).Seconds()
	for _, u := range usage {
		u.stop()
	}
	for _, s := range sides {
		f := s.ledger.figures(begin, end)
		b.Run(l.name+"/"+s.contender.name, func(b *testing.B) { report(b, f, usage[s.process], idle) })
	}
	for _, s := range sides {
		s.leave()
	}
	eventually(r.TB, 3*time.Minute, "no instance is left", func(c *assert.CollectT) {
		for _, s := range sides {
			assert.Zero(c, s.ledger.instancesNow(), s.name)
		}
	})
}

// carry has pods arrive at all sides until the load is over.
func (r *rivals) carry(l load, sides []*side) {
	r.Helper()
	const step = 500 * time.Millisecond
	begin, replicas, batches := time.Now(), l.pods(0), l.batches
	for tick := time.Duration(0); tick*step < loadTime/compress; tick++ {
		r.wait(time.Until(begin.Add(tick * step)))
		at := tick * step * compress
		var group errgroup.Group
		if n := l.pods(at); n != replicas {
			replicas = n
			for _, s := range sides {
				group.Go(func() error { return s.scale(n) })
			}
		}
		for ; len(batches) > 0 && batches[0].at <= at; batches = batches[1:] {
			for _, s := range sides {
				group.Go(func() error { return s.begin(batches[0]) })
			}
			require.NoError(r, group.Wait())
		}
		require.NoError(r, group.Wait())
		if tick%20 == 0 {
			for _, s := range sides {
				r.Logf("%-14s %4.0f s  %2d replicas  %-18s %2d instances, %2d pods pending", l.name,
					(tick * step).Seconds(), replicas,
					s.contender.name, s.ledger.instancesNow(), s.ledger.pendingNow())
			}
		}
	}
	r.wait(time.Until(begin.Add(loadTime / compress)))
}

// wait lets time pass, unless the benchmark ends.
func (r *rivals) wait(d time.Duration) {
	r.Helper()
	select {
	case <-time.After(d):
	case <-shared.Done():
		require.NoError(r, context.Cause(shared))
	}
}

func (r *rivals) newSide(l load, c contender) *side {
	r.Helper()
	s := &side{
		contender: c, TB: r.TB, objects: r.objects, name: l.name + "-" + c.name, process: "foresail",
		maxNodes: l.maxNodes(), compressed: r.compressed,
	}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.ledger = newLedger(s.TB, s.name)
	s.pool(s)
	s.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(l.pods(0))),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: l.template(s.pod("web", nil)),
		},
	})
	return s
}

func (s *side) create(o client.Object) {
	s.Helper()
	require.NoError(s, s.objects.Create(s.Context(), o))
}

// pod is one that takes a fourth of a node of the side's own.
func (s *side) pod(app string, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{s.label: s.name}, TerminationGracePeriodSeconds: new(int64(1)),
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "app", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
				}}},
		},
	}
}

// scale has a Deployment have so many pods.
func (s *side) scale(replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	deployments := shared.stack.Cluster.Client().AppsV1().Deployments(s.name)
	_, err := deployments.Patch(s.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	return err
}

// begin begins a Job. As its pods are not to be begun anew elsewhere, no autoscaler may move them.
func (s *side) begin(of batch) error {
	pod := s.pod("job", map[string]string{
		"test.foresail.dev/runs-for": (of.runs / compress).String(), "karpenter.sh/do-not-disrupt": "true",
	})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return s.objects.Create(s.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "job-", Namespace: s.name},
		Spec:       batchv1.JobSpec{Parallelism: new(int32(of.pods)), Completions: new(int32(of.pods)), Template: pod},
	})
}

// settle waits until the pods that a load begins with run, and the side knows what its autoscaler
// needs to know.
func (s *side) settle() {
	s.Helper()
	eventually(s.TB, startOfNode+2*time.Minute, s.name+" runs", func(c *assert.CollectT) {
		assert.Zero(c, s.ledger.pendingNow())
		var list corev1.PodList
		require.NoError(c, s.objects.List(shared, &list, client.InNamespace(s.name)))
		assert.NotEmpty(c, list.Items)
		if s.label == workerPoolLabel {
			var pool v1alpha1.WorkerPool
			require.NoError(c, s.objects.Get(shared, client.ObjectKey{Name: s.name}, &pool))
			assert.True(c, meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionForecasting))
		}
	})
}

// nodePool has Karpenter start nodes, by its defaults.
func (s *side) nodePool() {
	require.NoError(s, shared.karpenter.ApplyPool(s.Context(),
		karpenter.Pool{Name: s.name, NodeStart: startOfNode, MaxNodes: s.maxNodes}))
	s.process = "karpenter"
	s.ledger.watchNodeClaims(s.TB, s.name)
}

// workerPool has Foresail start nodes, of its simulated cloud, by its defaults.
func (s *side) workerPool() {
	spec := v1alpha1.WorkerPoolSpec{Min: 1, Max: int32(s.maxNodes), DeletionPolicy: v1alpha1.DeletionPolicyOrphan}
	spec.Template.Labels = map[string]string{s.label: s.name}
	spec.Provider.Simulated = &v1alpha1.SimulatedProvider{
		JoinDelay: &metav1.Duration{Duration: startOfNode}, Zones: []string{"a"}, Namespace: s.name + "-instances",
		Shape: map[string]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"),
			"pods": resource.MustParse("110")},
	}
	spec.Default()
	if s.compressed {
		spec.Provider.Simulated.JoinDelay.Duration *= compress // which is undone
		shorten(reflect.ValueOf(&spec))
	}
	s.create(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: spec})
	s.ledger.watchInstances(s.TB, s.name+"-instances")
}

// shorten divides all times in a value.
func shorten(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if d, ok := reflect.TypeAssert[*metav1.Duration](v); ok && d != nil {
			d.Duration /= compress
		} else if !v.IsNil() {
			shorten(v.Elem())
		}
	case reflect.Struct:
		if _, ok := reflect.TypeAssert[resource.Quantity](v); ok {
			return
		}
		for _, field := range v.Fields() {
			shorten(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			shorten(v.Index(i))
		}
	}
}

// leave removes pods, pool and nodes. A WorkerPool lets its nodes go at once, as one whose drain
// has failed would be waited for.
func (s *side) leave() {
	s.Helper()
	s.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	if s.label != workerPoolLabel {
		require.NoError(s, shared.karpenter.DeletePool(s.Context(), s.name))
		return
	}
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	s.delete(pool)
	eventually(s.TB, time.Minute, s.name+" is gone", func(c *assert.CollectT) {
		assert.True(c, apierrors.IsNotFound(s.objects.Get(shared, client.ObjectKeyFromObject(pool), pool)))
	})
	require.NoError(s, s.objects.DeleteAllOf(s.Context(), &corev1.Node{}, client.MatchingLabels{s.label: s.name}))
	s.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-instances"}})
}

func (s *side) delete(o client.Object) {
	s.Helper()
	require.NoError(s, s.objects.Delete(s.Context(), o))
}

// usage is what a process takes while it is watched.
type usage struct {
	cpu  time.Duration
	peak uint64 // bytes that are resident
	stop func()
}

// watchUsage looks once a second: a process keeps its peak for all of its life only.
func (r *rivals) watchUsage(pid int) *usage {
	r.Helper()
	before, err := foresail.UsageOf(pid)
	require.NoError(r, err)
	u := &usage{peak: before.Resident}
	see := func() error {
		now, err := foresail.UsageOf(pid)
		u.cpu, u.peak = now.CPU-before.CPU, max(u.peak, now.Resident)
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			if err := see(); err != nil {
				cancel()
			}
		}
	})
	u.stop = sync.OnceFunc(func() {
		cancel()
		watching.Wait()
		require.NoError(r, see())
	})
	return u
}

// idleCores is for how many seconds the cores of this machine have been idle, all together.
func (r *rivals) idleCores() float64 {
	r.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(r, err)
	stat, err := fs.Stat()
	require.NoError(r, err)
	return stat.CPUTotal.Idle + stat.CPUTotal.Iowait
}

func report(b *testing.B, f figures, u *usage, idle float64) {
	b.ReportMetric(0, "ns/op") // a load takes as long as it is told to
	b.ReportMetric(float64(f.pods), "pods")
	b.ReportMetric(f.pending.Seconds(), "pending-pod-seconds")
	b.ReportMetric(f.quantile(0.5).Seconds(), "pending-s-p50")
	b.ReportMetric(f.quantile(0.9).Seconds(), "pending-s-p90")
	b.ReportMetric(f.nodes.Seconds(), "node-seconds")
	b.ReportMetric(float64(f.launches), "launches")
	b.ReportMetric(float64(f.removals), "removals")
	b.ReportMetric(u.cpu.Seconds(), "cpu-seconds")
	b.ReportMetric(float64(u.peak)/(1<<20), "MiB-peak")
	b.ReportMetric(idle, "idle-cores")
}
