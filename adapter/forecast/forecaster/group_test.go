package forecaster

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// manyOfOneTarget is a forecaster with so many PredictedMetrics of one target.
func manyOfOneTarget(t testing.TB, n int) *Forecaster {
	f := New(time.Now, prometheus.NewRegistry(), Options{})
	for i := range n {
		feed, err := f.Set(types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("m%04d", i)}, config())
		require.NoError(t, err)
		feed.SetReplicas(3)
	}
	f.runAll()
	return f
}

// A read costs the same however many PredictedMetrics others have made of the target.
func TestReadsOfOneDoNotPayForTheOthers(t *testing.T) {
	first := types.NamespacedName{Namespace: "shop", Name: "m0000"}
	alone, among := manyOfOneTarget(t, 1), manyOfOneTarget(t, 1500)
	s, _ := among.Get(first)
	assert.Equal(t, 1500, s.Combined.Metrics)
	assert.Len(t, s.Combined.Undecided, 1500)
	cost := func(f *Forecaster) float64 {
		return testing.AllocsPerRun(100, func() { f.Get(first) })
	}
	assert.LessOrEqual(t, cost(among), cost(alone))
	listed := testing.AllocsPerRun(10, func() { among.List("shop") })
	assert.Less(t, listed, 100.0, "of all of them")
}

func BenchmarkGet(b *testing.B) {
	first := types.NamespacedName{Namespace: "shop", Name: "m0000"}
	for _, n := range []int{1, 1500} {
		b.Run(fmt.Sprintf("metrics=%d", n), func(b *testing.B) {
			f := manyOfOneTarget(b, n)
			for b.Loop() {
				f.Get(first)
			}
		})
	}
}

// A probe must not wait for what is being done to feeds.
func TestReadyTakesNoLock(t *testing.T) {
	f := manyOfOneTarget(t, 2)
	now := time.Now()
	f.readiness.startedAt.Store(&now)
	locks := []sync.Locker{&f.feeds.mu}
	for _, feed := range f.feeds.all() {
		locks = append(locks, &feed.mu, &feed.group.mu)
	}
	for _, l := range locks[:3] {
		l.Lock()
		defer l.Unlock()
	}
	done := make(chan error, 1)
	go func() { done <- f.Ready() }()
	require.NoError(t, <-done)
}

// After a start, readiness waits for data of every PredictedMetric there is, also of those added since the last round.
func TestReadyWaitsForTheFirstData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		assert.ErrorContains(t, w.forecaster.Ready(), "has not started")
		go func() { _ = w.forecaster.Run(t.Context()) }()
		synctest.Wait()
		assert.ErrorContains(t, w.forecaster.Ready(), "not every PredictedMetric", "before the first round")
		w.pass(5*time.Second, nil)
		assert.ErrorContains(t, w.forecaster.Ready(), "1 PredictedMetrics wait for their first data")
		late, err := w.forecaster.Set(types.NamespacedName{Namespace: "shop", Name: "late"}, config())
		require.NoError(t, err)
		late.SetPods(w.fleet)
		assert.ErrorContains(t, w.forecaster.Ready(), "not every PredictedMetric", "one has been added")
		w.pass(10*time.Second, nil)
		assert.ErrorContains(t, w.forecaster.Ready(), "1 PredictedMetrics wait for their first data")
		w.pass(46*time.Second, nil)
		assert.NoError(t, w.forecaster.Ready(), "but for no longer than a minute")
	})
}

// A PredictedMetric whose scale has not been read yet may have a load: a replica that serves
// without it would answer its HPA with an error.
func TestReadyWaitsForScales(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(time.Now, prometheus.NewRegistry(), Options{})
		feed, err := f.Set(key, config())
		require.NoError(t, err)
		go func() { _ = f.Run(t.Context()) }()
		time.Sleep(5 * time.Second)
		assert.ErrorContains(t, f.Ready(), "1 PredictedMetrics wait for their first data")
		feed.LoseReplicas()
		time.Sleep(2 * time.Second)
		assert.NoError(t, f.Ready(), "a target that cannot be read is not waited for")
	})
}
