package controller

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/test/env/controlplane"
)

var apiServer *controlplane.Cluster // an API server that all tests share

func TestMain(m *testing.M) {
	controlplane.MainBorrowing(m, func(ctx context.Context, c *controlplane.Cluster) error {
		apiServer = c
		return c.ApplyFiles(ctx, "../../manifests/crds/foresail.dev_workerpools.yaml")
	})
}

// fake is a pool that does nothing.
type fake struct {
	options nodepool.Options
	end     chan error // what Run returns before its context ends
	ended   chan struct{}
}

func (f *fake) Run(ctx context.Context) error {
	defer close(f.ended)
	select {
	case <-ctx.Done():
		return nil
	case err := <-f.end:
		return err
	}
}

// bench is a controller under test.
type bench struct {
	*testing.T
	client client.Client
	reader client.Reader // past all caches
	made   chan *fake    // pools, as they are made
	told   chan nodepool.CycleReport
	wake   chan struct{}
	forgot chan string // pools

	mu     sync.Mutex
	broken error // what Build returns
	denied error // what patches return
}

// narrow is a client with limited rights.
type narrow struct {
	client.Client
	b *bench
}

func (n narrow) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	n.b.mu.Lock()
	err := n.b.denied
	n.b.mu.Unlock()
	if err != nil {
		return err
	}
	return n.Client.Patch(ctx, o, p, options...)
}

// parts of pools that nothing is asked of.
type (
	noStore    struct{ state.Store }
	noProvider struct{ provider.Provider }
	noSignals  struct{ forecast.Signals }
)

func (b *bench) Report(_ context.Context, t nodepool.CycleReport) { b.told <- t }
func (b *bench) Observe(context.Context) (*cluster.Cluster, error) {
	return nil, cluster.ErrUnsynced
}
func (b *bench) Wake() <-chan struct{} { return b.wake }
func (b *bench) breakBuild(err error)  { b.mu.Lock(); defer b.mu.Unlock(); b.broken = err }
func (b *bench) build(context.Context, *v1alpha1.WorkerPool) (Parts, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Parts{Store: noStore{}, Provider: noProvider{}, Signals: noSignals{}, Reporter: b}, b.broken
}

func newBench(t *testing.T) *bench {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	skip := true
	mgr, err := ctrl.NewManager(apiServer.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip}, // each test has one of the name
	})
	require.NoError(t, err)
	b := &bench{T: t, client: mgr.GetClient(), reader: mgr.GetAPIReader(), made: make(chan *fake, 10),
		told: make(chan nodepool.CycleReport, 10), wake: make(chan struct{}), forgot: make(chan string, 10)}
	c := New(Options{
		Client: narrow{mgr.GetClient(), b}, Build: b.build, Observer: b, Labeler: Labeler{Client: apiServer.Client()},
		Drainer: &drain.Drainer{Client: apiServer.Client(), Now: time.Now}, Kubernetes: apiServer.Client(),
		Forget: func(pool string) { b.forgot <- pool }, Owner: "test", Now: time.Now,
	})
	c.retry = 100 * time.Millisecond
	c.newPool = func(o nodepool.Options) (runner, error) {
		f := &fake{options: o, end: make(chan error, 1), ended: make(chan struct{})}
		b.made <- f
		return f, nil
	}
	require.NoError(t, c.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.True(t, mgr.GetCache().WaitForCacheSync(t.Context()))
	return b
}

// create creates a WorkerPool that is deleted with the test.
func (b *bench) create(name string) *v1alpha1.WorkerPool {
	b.Helper()
	return b.createPool(&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WorkerPoolSpec{
		Max: 5, Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}},
		DeletionPolicy: v1alpha1.DeletionPolicyOrphan,
	}})
}

func (b *bench) createPool(pool *v1alpha1.WorkerPool) *v1alpha1.WorkerPool {
	b.Helper()
	require.NoError(b, b.client.Create(b.Context(), pool))
	b.Cleanup(func() {
		assert.NoError(b, client.IgnoreNotFound(b.client.Delete(context.WithoutCancel(b.Context()), pool)))
		b.patch(pool.Name, `{"metadata":{"finalizers":null}}`) // nothing of it was there
	})
	return pool
}

// update changes the spec of a WorkerPool.
func (b *bench) update(pool *v1alpha1.WorkerPool, change func(*v1alpha1.WorkerPoolSpec)) {
	b.Helper()
	before := pool.DeepCopy()
	change(&pool.Spec)
	require.NoError(b, b.client.Patch(b.Context(), pool, client.MergeFrom(before)))
}

// next waits for the next value.
func next[T any](b *bench, from <-chan T) T {
	b.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		require.Fail(b, "it did not come")
		panic("unreachable")
	}
}

func (b *bench) eventually(what func() bool) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); !what(); time.Sleep(20 * time.Millisecond) {
		require.True(b, time.Now().Before(deadline), "not within half a minute")
	}
}

func maxOf(t *testing.T, f *fake) int {
	spec, err := f.options.Spec()
	require.NoError(t, err)
	return spec.Plan.Max
}

func generationOf(t *testing.T, f *fake) int64 {
	spec, err := f.options.Spec()
	require.NoError(t, err)
	return spec.Generation
}

func TestAPoolRunsAsItsObjectSays(t *testing.T) {
	b := newBench(t)
	pool := b.create("runs")
	first := next(b, b.made)
	assert.Equal(t, "runs", first.options.Name)
	assert.Equal(t, "test", first.options.Owner)
	assert.Equal(t, 5, maxOf(t, first))

	b.update(pool, func(s *v1alpha1.WorkerPoolSpec) { s.Max = 7 })
	b.eventually(func() bool { return maxOf(t, first) == 7 })
	assert.Empty(t, b.made, "limits change while it runs")

	b.update(pool, func(s *v1alpha1.WorkerPoolSpec) { s.Provider.Simulated.Zones = []string{"c"} })
	second := next(b, b.made)
	next(b, first.ended)
	assert.Equal(t, 7, maxOf(t, second))

	require.NoError(t, b.client.Delete(t.Context(), pool))
	next(b, second.ended)
	assert.Empty(t, b.made)
}

func TestAPoolThatEndsIsStartedAgain(t *testing.T) {
	b := newBench(t)
	b.create("ends")
	first := next(b, b.made)
	first.end <- errors.New("broken")
	second := next(b, b.made)
	second.end <- nil
	next(b, b.made)
}

func TestAPoolThatCannotRunSaysWhy(t *testing.T) {
	b := newBench(t)
	b.breakBuild(errors.New("signals[0].prometheus: no server"))
	pool := b.create("invalid")
	b.eventually(func() bool {
		// not yet in the cache
		require.NoError(t, client.IgnoreNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)))
		return meta.IsStatusConditionFalse(pool.Status.Conditions, v1alpha1.ConditionHealthy)
	})
	condition := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionHealthy)
	assert.Equal(t, "InvalidSpec", condition.Reason)
	assert.Equal(t, "signals[0].prometheus: no server", condition.Message)
	assert.Empty(t, b.made)
	b.breakBuild(nil)
	next(b, b.made)
}

func TestAPoolGoesOnByTheSpecBefore(t *testing.T) {
	b := newBench(t)
	pool := b.create("goes-on")
	f := next(b, b.made)
	b.breakBuild(errors.New("no such zone"))
	b.update(pool, func(s *v1alpha1.WorkerPoolSpec) { s.Max, s.Provider.Simulated.Zones = 9, []string{"z"} })
	b.eventually(func() bool {
		f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "goes-on"})
		return next(b, b.told).Health != nil
	})
	f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "goes-on", Health: errors.New("the cloud is down")})
	health := next(b, b.told).Health
	require.ErrorContains(t, health, "no such zone")
	require.ErrorContains(t, health, "the cloud is down")
	assert.Equal(t, 5, maxOf(t, f))
	assert.EqualValues(t, 1, generationOf(t, f), "what it reports is of the spec before")

	b.update(pool, func(s *v1alpha1.WorkerPoolSpec) { s.Max, s.Provider.Simulated.Zones = 5, []string{"a", "b"} })
	b.eventually(func() bool {
		f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "goes-on"})
		return next(b, b.told).Health == nil
	})
	assert.EqualValues(t, 3, generationOf(t, f))
	assert.Empty(t, b.made, "it is the pool that it was")
}

func TestAWakeReachesEveryPool(t *testing.T) {
	b := newBench(t)
	b.create("wakes-1")
	b.create("wakes-2")
	one, other := next(b, b.made), next(b, b.made)
	b.wake <- struct{}{}
	next(b, one.options.Observer.Wake())
	next(b, other.options.Observer.Wake())
	assert.NotEqual(t, one.options.Seed, other.options.Seed, "retries of theirs do not come together")
}

func TestNodesAreLabelled(t *testing.T) {
	nodes := apiServer.Client().CoreV1().Nodes()
	_, err := nodes.Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "labelled"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l := Labeler{Client: apiServer.Client()}
	for range 2 {
		require.NoError(t, l.Label(t.Context(), "labelled", map[string]string{cluster.LabelPool: "workers", "team": "web"}))
	}
	require.NoError(t, l.Label(t.Context(), "gone", map[string]string{cluster.LabelPool: "workers"}))
	node, err := nodes.Get(t.Context(), "labelled", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "workers", node.Labels[cluster.LabelPool])
	assert.Equal(t, "web", node.Labels["team"])
}

// The parts that commands build have the interfaces that pools need.
var (
	_ observe.Cluster  = (*cluster.Watcher)(nil)
	_ act.Drainer      = (*drain.Drainer)(nil)
	_ forecast.Signals = (*signal.Set)(nil)
)
