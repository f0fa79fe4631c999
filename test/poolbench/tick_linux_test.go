package poolbench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
)

// changesPerTick is how many pods of a cluster change between two ticks.
const changesPerTick = 200

// BenchmarkTick is one tick of a pool that has all nodes of a cluster, with the watch of that cluster beside it: the cloud
// is listed, 100 pods that no node takes are packed, a window of 15 minutes is forecast from, and the journal is written.
// The pool is at its maximum, so that nothing comes of it. Between ticks pods change, which is not in the time.
func BenchmarkTick(b *testing.B) {
	for _, nodes := range []int{100, 300, 1000, 3000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", nodes, nodes*podsOnNode), func(b *testing.B) { benchmarkTick(b, nodes) })
	}
}

func benchmarkTick(b *testing.B, nodes int) {
	before := heap()
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	c := crowd{nodes: nodes, pending: 100, born: at.Add(-time.Hour)}
	client, changes := c.client()
	watcher := clusterstate.NewWatcher(client, clusterstate.WithClock(func() time.Time { return at }))
	ctx, cancel := context.WithCancel(b.Context())
	var watching sync.WaitGroup
	watching.Go(func() { _ = watcher.Run(ctx) })
	defer watching.Wait()
	defer cancel()
	pool := crowdedPool(b, c, watcher, func() time.Time { return at })
	awaitSync(b, watcher)
	turn := 0
	tick := func() plan.Decision {
		d, err := pool.Tick(ctx)
		require.NoError(b, err)
		return d
	}
	next := func() {
		at = at.Add(15 * time.Second)
		turn++
		stir(c, watcher, changes, turn)
	}
	for range 65 { // fills the window
		tick()
		next()
	}
	d := tick()
	require.Equal(b, plan.AtMaximum, d.Reason, d.Message)
	held := heap() - before
	var processor time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		next()
		began := processorTime(b)
		b.StartTimer()
		tick()
		b.StopTimer()
		processor += processorTime(b) - began
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(processor.Nanoseconds())/float64(b.N), "cpu-ns/op") // what the others on this machine do leaves it alone
	b.ReportMetric(held/mebibyte, "MiB-held")
	b.ReportMetric(resident(b)/mebibyte, "MiB-resident")
	runtime.KeepAlive(pool)
}

func crowdedPool(b *testing.B, c crowd, watcher *clusterstate.Watcher, now func() time.Time) *nodepool.Pool {
	b.Helper()
	spec := v1alpha1.WorkerPoolSpec{Min: 2, Max: int32(c.nodes), Signals: []v1alpha1.PoolSignal{{Name: signal.Requests, Threshold: resource.MustParse("700m")}}}
	set, err := signal.New(signal.OptionsOf(&spec))
	require.NoError(b, err)
	pool, err := nodepool.New(nodepool.Options{
		Name: poolName, Owner: "this", Spec: func() (nodepool.Spec, error) { return nodepool.SpecOf(poolName, spec), nil },
		Store: &memory{}, Provider: c.cloud(), Observer: watcher, Signals: set, Drainer: &play{}, Labeler: &play{}, Now: now, Seed: 1,
	})
	require.NoError(b, err)
	return pool
}

func awaitSync(b *testing.B, watcher *clusterstate.Watcher) {
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

// stir has pods change and waits until the watcher has seen it: the last change is of a pod that no node takes, which
// wakes it.
func stir(c crowd, watcher *clusterstate.Watcher, changes *watch.RaceFreeFakeWatcher, turn int) {
	const batch = 50 // that the fake watch holds
	select {
	case <-watcher.Wake():
	default:
	}
	for k := range changesPerTick {
		changes.Modify(c.bound((turn*changesPerTick+k)%(c.nodes*podsOnNode), turn))
		if k%batch == batch-1 {
			last := c.waiting(c.pending + turn*changesPerTick + k)
			changes.Add(last)
			<-watcher.Wake()
			changes.Delete(last)
		}
	}
	last := c.waiting(c.pending + turn*changesPerTick + changesPerTick)
	changes.Add(last)
	<-watcher.Wake()
	changes.Delete(last)
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

// resident is the memory of this process, the cluster that it is told of left out as far as the runtime has given it back.
func resident(b *testing.B) float64 {
	b.Helper()
	p, err := procfs.NewProc(os.Getpid())
	require.NoError(b, err)
	status, err := p.NewStatus()
	require.NoError(b, err)
	return float64(status.VmRSS)
}
