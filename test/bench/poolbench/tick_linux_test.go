package poolbench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
)

// changesPerTick is how many pods of a cluster change between two cycles.
const changesPerTick = 200

// situations are what a cycle may find, each with the decision that must come of it, so that no
// change of a default makes the benchmark measure another one. All of them are dry runs, which come
// to the same decision at each cycle.
var situations = []situation{
	{
		// Nodes are full, the load is below the threshold, and no pod waits.
		name: "hold", step: plan.Hold, reason: plan.NotIdle,
	},
	{
		// 100 pods of five applications that no node takes are packed onto new nodes.
		name: "scale-up", pending: 100, step: plan.ScaleUp, reason: plan.PodsPending,
		set: func(s *v1alpha1.WorkerPoolSpec) { s.MaxBatchUp = new(int32) },
	},
	{
		// Nodes are nearly empty. Ten are chosen, and it is asked where their pods would run.
		name: "scale-down", light: true, step: plan.ScaleDown, reason: plan.PoolIdle,
		set: func(s *v1alpha1.WorkerPoolSpec) {
			s.Idle.For = &metav1.Duration{}
		},
	},
	{
		// Nodes are full and older than allowed. Ten are chosen, and it is asked whether new nodes
		// would be homes for their pods.
		name: "roll-out", step: plan.ScaleUp, reason: plan.Outdated,
		set: func(s *v1alpha1.WorkerPoolSpec) {
			s.MaxBatchUp, s.Disruption.ExpireAfter = new(int32(ofBatch)), &metav1.Duration{Duration: time.Minute}
		},
	},
}

// ofBatch is how many workers a scale-down and a roll-out choose.
const ofBatch = 10

type situation struct {
	name    string
	pending int
	light   bool
	set     func(*v1alpha1.WorkerPoolSpec)
	step    plan.Step
	reason  plan.Reason
}

// BenchmarkTick is one cycle of a pool that has all nodes of a cluster, with the watch of that
// cluster beside it: the cloud is listed, what changed of the cluster is joined with it, a window
// of 15 minutes is forecast from, and a decision is made. What is done about it is not in the time,
// nor are the changes of pods between two cycles.
func BenchmarkTick(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for _, s := range situations {
				t := &ticking{crowd: crowd{nodes: nodes, pending: s.pending, light: s.light, born: born}, situation: s,
					end: func() {}}
				b.Run(s.name, t.measure)
				t.end()
			}
		})
	}
}

// born is when all pods and nodes were made.
var born = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// ticking is a pool whose window is full. It is made by its first measurement, and serves all that follow.
type ticking struct {
	crowd
	situation
	at      time.Time
	turn    int
	watcher *cluster.Watcher
	changes *watch.RaceFreeFakeWatcher
	pool    *nodepool.Pool
	held    float64
	end     func()
}

func (t *ticking) begin(b *testing.B) {
	b.Helper()
	before := heap()
	t.at = born.Add(time.Hour)
	client, changes := t.client()
	now := func() time.Time { return t.at }
	t.watcher, t.changes = cluster.NewWatcher(client, cluster.WithClock(now)), changes
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var watching sync.WaitGroup
	watching.Go(func() { _ = t.watcher.Run(ctx) })
	t.end = func() { cancel(); watching.Wait() }
	t.pool = t.newPool(b, now)
	awaitSync(b, t.watcher)
	for range 65 { // fills the window
		t.tick(b)
		t.next()
	}
	d := t.tick(b)
	require.Equal(b, t.step, d.Step, d.Message)
	require.Equal(b, t.reason, d.Reason, d.Message)
	b.Logf("%d nodes, %s: %s", t.nodes, t.name, d.Message)
	t.held = heap() - before
}

func (t *ticking) tick(b *testing.B) plan.Decision {
	b.Helper()
	d, err := t.pool.Tick(b.Context())
	require.NoError(b, err)
	return d
}

// next has time pass and pods change until the next cycle.
func (t *ticking) next() {
	t.at = t.at.Add(15 * time.Second)
	t.turn++
	stir(t.crowd, t.watcher, t.changes, t.turn)
}

func (t *ticking) measure(b *testing.B) {
	if t.pool == nil {
		t.begin(b)
	}
	var processor time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		t.next()
		began := processorTime(b)
		b.StartTimer()
		d := t.tick(b)
		b.StopTimer()
		processor += processorTime(b) - began
		require.Equal(b, t.reason, d.Reason, d.Message)
		b.StartTimer()
	}
	b.StopTimer()
	// what the others on this machine do leaves it alone
	b.ReportMetric(float64(processor.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(t.held/mebibyte, "MiB-held")
}

func (t *ticking) newPool(b *testing.B, now func() time.Time) *nodepool.Pool {
	b.Helper()
	spec := v1alpha1.WorkerPoolSpec{
		Min: 2, Max: int32(2 * t.nodes), DryRun: true,
		// Just above what full nodes have, so that none is to spare.
		Signals: []v1alpha1.PoolSignal{{Name: signal.Requests, Threshold: resource.MustParse("944m")}},
	}
	if t.set != nil {
		t.set(&spec)
	}
	set, err := signal.New(signal.OptionsOf(&spec))
	require.NoError(b, err)
	pool, err := nodepool.New(nodepool.Options{
		Name: poolName, Owner: "this", Spec: func() (config.Spec, error) { return config.Of(poolName, spec), nil },
		Store: &memory{}, Provider: t.cloud(), Observer: t.watcher, Signals: set, Drainer: &play{}, Labeler: &play{},
		Now: now, Seed: 1,
	})
	require.NoError(b, err)
	return pool
}

func awaitSync(b *testing.B, watcher *cluster.Watcher) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err := watcher.Observe(ctx); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatal("the watch of the cluster has not begun within 2 minutes")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stir has pods change and waits until the watcher has seen it: the last change is of a pod that no
// node takes, which wakes it. It is promised to a node, so that it is no demand.
func stir(c crowd, watcher *cluster.Watcher, changes *watch.RaceFreeFakeWatcher, turn int) {
	const batch = 50 // that the fake watch holds
	select {
	case <-watcher.Wake():
	default:
	}
	for k := range changesPerTick {
		changes.Modify(c.bound((turn*changesPerTick+k)%(c.nodes*podsOnNode), turn))
		if k%batch == batch-1 {
			last := c.waiting(c.pending + turn*changesPerTick + k)
			last.Status.NominatedNodeName = c.node(0).Name
			// the last one's end may not have been seen at the next cycle
			last.Spec.Containers[0].Resources.Requests = nil
			changes.Add(last)
			<-watcher.Wake()
			changes.Delete(last)
		}
	}
}

const mebibyte = 1 << 20

// processorTime is what this process has had of the processors, its collection of garbage included.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what is held.
func heap() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
