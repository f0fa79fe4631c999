package extender

import (
	"bytes"
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/objectcache"
)

// told are forecasts and pools as a test tells them.
type told struct {
	loads  atomic.Pointer[snapshot.NodeLoads]
	intent atomic.Pointer[PoolIntent]
}

func (t *told) NodeLoads() *snapshot.NodeLoads { return t.loads.Load() }
func (t *told) PoolIntent() *PoolIntent        { return t.intent.Load() }

func newTold() *told {
	t := &told{}
	t.loads.Store(&snapshot.NodeLoads{})
	t.intent.Store(&PoolIntent{})
	return t
}

func TestRejectsOptions(t *testing.T) {
	good := Options{
		Client: fake.NewClientset(), Forecasts: newTold(), RemovalMark: removalMark, Rules: DefaultRules(),
		Registry: prometheus.NewRegistry(),
	}
	_, err := New(good)
	require.NoError(t, err)
	for want, change := range map[string]func(o *Options){
		`Client is "": want one that`:                     func(o *Options) { o.Client = nil },
		`Forecasts is "": want forecasts`:                 func(o *Options) { o.Forecasts = nil },
		`RemovalMark is "": want the key`:                 func(o *Options) { o.RemovalMark = "" },
		`MemoryLimit is "1.5": want a share from 0`:       func(o *Options) { o.Rules.MemoryLimit = 1.5 },
		`CPULimit is "-1": want a share from 0`:           func(o *Options) { o.Rules.CPULimit = -1 },
		`Target is "1": want a share above 0 and below 1`: func(o *Options) { o.Rules.Target = 1 },
		`Target is "NaN"`:                                 func(o *Options) { o.Rules.Target = math.NaN() },
		`WarmUp is "-1ns": want 0s or more`:               func(o *Options) { o.Rules.WarmUp = -1 },
		`StaleAfter is "0s": want 1s or more`:             func(o *Options) { o.Rules.StaleAfter = 0 },
		`MaxWait is "-1s": want 0s or more`:               func(o *Options) { o.Rules.MaxWait = -time.Second },
		`AssumeTimeout is "-1s": want 0s or more`:         func(o *Options) { o.Rules.AssumeTimeout = -time.Second },
		"Target is \"0\": want a share above 0 and below 1\nWarm": func(o *Options) {
			o.Rules.Target, o.Rules.WarmUp = 0, -1
		},
	} {
		o := good
		o.Registry = prometheus.NewRegistry()
		change(&o)
		_, err := New(o)
		assert.ErrorContains(t, err, want)
	}
}

// bubble is an Extender on a fake API, for a test in virtual time.
type bubble struct {
	*Extender
	*told
	api *fake.Clientset
}

// pass has time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func newBubble(t *testing.T, objects ...runtime.Object) *bubble {
	t.Helper()
	b := &bubble{told: newTold(), api: fake.NewClientset(objects...)}
	e, err := New(Options{
		Client: b.api, Forecasts: b.told, Pools: b.told, RemovalMark: removalMark, Rules: testRules(), Now: time.Now,
		Registry: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	b.Extender = e
	return b
}

// start runs the Extender until the returned function is called.
func (b *bubble) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// boundNow is bound in the time of a bubble.
func boundNow(name, node string) *corev1.Pod {
	p := boundPod(name, node)
	p.CreationTimestamp = metav1.NewTime(time.Now())
	p.Status.Conditions = []corev1.PodCondition{since(corev1.PodScheduled, corev1.ConditionTrue, time.Now())}
	return p
}

func TestSnapshotsFollowTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := someNode("n", "1")
		made.CreationTimestamp = metav1.NewTime(time.Now())
		r := newBubble(t, made, boundNow("p", "n"))
		assert.True(t, r.snapshot().at.IsZero())
		require.ErrorContains(t, r.Ready(), "the extender has no nodes yet: nodes: not listed yet")
		defer r.start(t)()
		pass(2 * time.Second)
		require.NoError(t, r.Ready())
		v := r.snapshot()
		assert.Less(t, time.Since(v.at), Period+time.Nanosecond)
		n := v.nodes["n"]
		require.NotNil(t, n)
		assert.Equal(t, boundRequests(), n.requested.load())
		assert.Equal(t, boundEstimate(), n.assumed.load())

		pods := r.api.CoreV1().Pods("shop")
		_, err := pods.Create(t.Context(), boundNow("q", ""), metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		r.assume("uid-of-q", n, use{5, 6}, use{7, 8})
		assert.Equal(t, boundRequests().plus(use{5, 6}), n.requested.load(),
			"at once, also in snapshots that are there already")
		assert.Equal(t, boundEstimate().plus(use{7, 8}), n.assumed.load())
		r.forget("uid-of-q")
		assert.Equal(t, boundEstimate(), n.assumed.load())
		r.assume("uid-of-q", n, use{5, 6}, use{7, 8})
		pass(3 * time.Second)
		assert.Equal(t, boundRequests(), n.requested.load(), "it was never bound")
		assert.Equal(t, boundEstimate(), n.assumed.load())

		r.assume("uid-of-q", n, use{5, 6}, use{7, 8})
		_, err = pods.Update(t.Context(), boundNow("q", "n"), metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, boundRequests().plus(boundRequests()), n.requested.load(), "without waiting for a snapshot")
		assert.Equal(t, boundEstimate().plus(boundEstimate()), n.assumed.load())

		q := boundNow("q", "n")
		q.Status.ContainerStatuses = []corev1.ContainerStatus{ranSince(time.Now())}
		_, err = pods.UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
		require.NoError(t, err)
		reading := snapshot.Use{Sampled: time.Now().Add(30 * time.Second), Window: time.Minute,
			Now: 3, Predicted: 1, Upper: 2}
		r.loads.Store(&snapshot.NodeLoads{Nodes: map[string]snapshot.NodeLoad{"n": {CPU: reading, Memory: reading}}})
		r.intent.Store(&PoolIntent{Removing: map[string]string{"n": "pool"}})
		pass(time.Second)
		assert.Equal(t, boundEstimate().plus(use{425, 35 * mib}), n.assumed.load(), "half of it is in the sample")
		assert.InDelta(t, 3, r.snapshot().nodes["n"].cpu.Predicted, 0)
		assert.Equal(t, "pool", r.snapshot().nodes["n"].removing)
		assert.Same(t, n.slot, r.snapshot().nodes["n"].slot)

		require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
		synctest.Wait()
		assert.Equal(t, boundRequests(), n.requested.load())
		pass(assumedLife)
		assert.Equal(t, use{}, n.assumed.load())
		assert.InDelta(t, 1, r.snapshot().nodes["n"].cpu.Predicted, 0, "no pod is new to it any more")
	})
}

// lonely is an API of one Node that can be cut off: then a watch fails and a list does not return.
type lonely struct {
	mu    sync.Mutex
	off   chan struct{} // until it is closed
	watch *watch.FakeWatcher
}

// cut cuts the API off, until the function that it returns is called.
func (l *lonely) cut() (mend func()) {
	off := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = off
	if l.watch != nil {
		l.watch.Stop()
	}
	return func() { close(off) }
}

func (l *lonely) List(ctx context.Context, _ metav1.ListOptions) (*corev1.NodeList, error) {
	l.mu.Lock()
	off := l.off
	l.mu.Unlock()
	if off != nil {
		select {
		case <-off:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items: []corev1.Node{*someNode("n", "1")}}, nil
}

func (l *lonely) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewMethodNotSupported(corev1.Resource("nodes"), "watch-list")
	}
	select {
	case <-l.off:
	default:
		if l.off != nil {
			return nil, syscall.ECONNREFUSED
		}
	}
	l.watch = watch.NewFake()
	return l.watch, nil
}

func TestSnapshotsAgeWhileTheClusterIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e, err := New(Options{
			Client: fake.NewClientset(), Forecasts: newTold(), RemovalMark: removalMark, Rules: testRules(),
			Registry: prometheus.NewRegistry(),
		})
		require.NoError(t, err)
		require.NoError(t, e.cluster.pods.Replace(nil, ""))
		var api lonely
		mend := api.cut()
		ctx, cancel := context.WithCancel(t.Context())
		var reflector sync.WaitGroup
		reflector.Go(func() { objectcache.Reflect(ctx, nil, e.cluster.nodes, &corev1.Node{}, &api) })
		defer reflector.Wait()
		defer cancel()
		age := func(d time.Duration) time.Duration {
			for range d / Period {
				pass(Period)
				e.refresh(klog.NewContext(t.Context(), logTo(&log)))
			}
			return time.Since(e.snapshot().at)
		}
		age(time.Minute)
		assert.True(t, e.snapshot().at.IsZero())
		require.ErrorIs(t, e.Ready(), objectcache.ErrUnsynced)
		require.ErrorContains(t, e.Ready(), "the extender has no nodes yet: nodes: ")
		assert.Empty(t, log.String(), "it begins")
		mend()
		assert.Zero(t, age(time.Minute))
		require.NoError(t, e.Ready())

		mend = api.cut()
		assert.Zero(t, age(trusted), "a restart of the API is borne")
		assert.False(t, e.snapshot().blind(time.Now()))
		age(trusted + maxSnapshotAge)
		assert.True(t, e.snapshot().blind(time.Now()), "not for long")
		assert.Equal(t, time.Minute, age(time.Minute-trusted-maxSnapshotAge).Round(5*time.Second))
		require.NoError(t, e.Ready(), "it answers by what it knew")
		assert.Equal(t, 1, strings.Count(log.String(), "cannot be watched"), log.String())
		mend()
		assert.Zero(t, age(time.Minute))
		assert.Equal(t, 1, strings.Count(log.String(), "watched again"), log.String())
	})
}

// observer is a Pools that reads the assumed pods while a snapshot is made.
type observer struct {
	refresh func() use
	saw     use
}

func (o *observer) PoolIntent() *PoolIntent {
	o.saw = o.refresh()
	return nil
}

// As a sample shows a pod it leaves the assumed, but not before the snapshot has that sample.
func TestAssumedPodsAreDroppedOnceSampled(t *testing.T) {
	f, pools := newTold(), &observer{}
	e, err := New(Options{
		Client: fake.NewClientset(), Forecasts: f, Pools: pools, RemovalMark: removalMark, Rules: testRules(),
		Registry: prometheus.NewRegistry(),
		Now:      always(noon.Add(rampUpTime)),
	})
	require.NoError(t, err)
	reading := snapshot.Use{Sampled: noon.Add(rampUpTime), Now: 1, Predicted: 1, Upper: 1}
	f.loads.Store(&snapshot.NodeLoads{Nodes: map[string]snapshot.NodeLoad{"n": {CPU: reading, Memory: reading}}})
	p := boundPod("p", "n")
	p.Status.ContainerStatuses, p.Spec.Priority = []corev1.ContainerStatus{ranSince(noon)}, new(int32(7))
	require.NoError(t, e.cluster.nodes.Replace([]any{someNode("n", "1")}, ""))
	require.NoError(t, e.cluster.pods.Update(p))
	s := e.cluster.nodeInfos[unique.Make("n")].slot
	pools.refresh = s.assumed.load

	e.refresh(t.Context())
	assert.True(t, e.snapshot().at.IsZero(), "pods are not listed")
	assert.Equal(t, boundEstimate(), s.assumed.load(), "no snapshot has the sample")
	require.NoError(t, e.cluster.pods.Replace([]any{p}, ""))
	e.refresh(t.Context())
	assert.Equal(t, boundEstimate(), pools.saw, "none has yet")
	assert.Equal(t, reading, e.snapshot().nodes["n"].cpu)
	assert.EqualValues(t, 7, e.snapshot().lowest)
	assert.Equal(t, use{}, s.assumed.load())
}

// Answers are given while pods come and go: the race detector looks on.
func TestConcurrentReads(t *testing.T) {
	f := newTold()
	e, err := New(Options{
		Client: fake.NewClientset(), Forecasts: f, RemovalMark: removalMark, Rules: testRules(),
		Registry: prometheus.NewRegistry(), Now: always(noon),
	})
	require.NoError(t, err)
	require.NoError(t, e.cluster.nodes.Replace([]any{someNode("n", "1")}, ""))
	require.NoError(t, e.cluster.pods.Replace([]any{boundPod("r", "")}, ""))
	e.refresh(t.Context())
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				n := e.snapshot().nodes["n"]
				if u := n.requested.load().plus(n.assumed.load()); u.cpu < 0 {
					panic("less than nothing")
				}
				e.assume("uid-of-r", n, use{1, 1}, use{1, 1})
				e.forget("uid-of-r")
			}
		})
	}
	writers.Go(func() {
		for range 300 {
			e.refresh(t.Context())
		}
	})
	for _, name := range []string{"p", "q"} {
		writers.Go(func() {
			for range 300 {
				assert.NoError(t, e.cluster.pods.Update(boundPod(name, "n")))
				assert.NoError(t, e.cluster.pods.Delete(boundPod(name, "n")))
			}
		})
	}
	writers.Go(func() {
		for range 100 {
			assert.NoError(t, e.cluster.nodes.Update(someNode("n", "2")))
			assert.NoError(t, e.cluster.nodes.Update(someNode("n", "1")))
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
	e.refresh(t.Context())
	n := e.snapshot().nodes["n"]
	assert.Equal(t, [2]use{}, [2]use{n.requested.load(), n.assumed.load()})
}
