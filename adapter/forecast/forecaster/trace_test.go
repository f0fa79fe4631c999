package forecaster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

func (w *world) trace() *snapshot.Trace {
	t, ok := w.forecaster.Trace(key)
	require.True(w, ok)
	return t
}

// A forecast is traced from the second one on that someone asks for, and no longer once no one does.
func TestForecastsAreTracedWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 14, func(time.Time) float64 { return 7 })
		w.pass(time.Minute, nil)
		assert.Nil(t, w.trace())
		w.pass(time.Second, nil)
		got := w.trace()
		require.NotNil(t, got)
		s := w.get()
		assert.Equal(t, s.Forecast, got.Forecast)
		assert.True(t, got.At.Equal(s.At))
		assert.Equal(t, 14, got.AllPods)
		assert.Len(t, got.Pods, snapshot.MaxTracedPods)
		require.Len(t, got.Stages.Instances, len(got.Pods))
		for i, pod := range got.Pods {
			assert.Equal(t, got.Stages.Instances[i].ID, pod.Name, "in these tests both are the same")
			require.NotEmpty(t, pod.Samples)
			newest := pod.Samples[len(pod.Samples)-1]
			assert.Equal(t, time.Now().UnixMilli(), newest.T)
			assert.InDelta(t, 0.5, newest.V, 1e-9)
		}
		assert.InDelta(t, 7, got.Stages.Sum[len(got.Stages.Sum)-1], 1e-9)

		w.pass(watchedFor-time.Second, nil)
		assert.NotNil(t, w.feed.watch.trace.Load())
		w.pass(2*time.Second, nil)
		assert.Nil(t, w.feed.watch.trace.Load(), "it takes no memory")

		_, ok := w.forecaster.Trace(types.NamespacedName{Namespace: "shop", Name: "none"})
		assert.False(t, ok)
	})
}

// What came about before is no longer shown where there is no forecast.
func TestWithoutAForecastThereIsNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, func(time.Time) float64 { return 1 })
		w.trace()
		w.pass(time.Minute, nil)
		w.trace()
		w.pass(time.Second, nil)
		require.NotNil(t, w.trace())
		w.silent = map[string]bool{"pod-0": true, "pod-1": true}
		w.pass(time.Minute, func(snapshot.Snapshot) { w.trace() })
		require.Error(t, w.get().Err)
		assert.Nil(t, w.trace())
	})
}

func TestTraceOfALoadAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, 3, func(time.Time) float64 { return 120 })
		w.measure(time.Minute)
		w.trace()
		w.measure(time.Second)
		got := w.trace()
		require.NotNil(t, got)
		require.Len(t, got.Pods, 1)
		assert.Empty(t, got.Pods[0].Name)
		assert.NotEmpty(t, got.Pods[0].Samples)
		assert.Equal(t, 120.0, got.Stages.Instances[0].Values[len(got.Stages.Load)-1])
	})
}

// What is put in for pods that were never read is no sample, and is imputed.
func TestTraceHasWhatWasReadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, func(time.Time) float64 { return 5 })
		w.silent["pod-3"] = true
		w.pass(2*time.Minute, nil)
		w.trace()
		w.pass(time.Second, nil)
		got := w.trace()
		require.NotNil(t, got)
		for i, pod := range got.Pods {
			x := got.Stages.Instances[i]
			if pod.Name == "pod-3" {
				assert.Empty(t, pod.Samples)
				assert.Equal(t, x.AlignedFrom, x.AlignedTo)
			} else {
				assert.NotEmpty(t, pod.Samples)
				assert.Greater(t, x.AlignedTo, x.AlignedFrom)
			}
		}
	})
}

func TestFewAreTracedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(time.Now, prometheus.NewRegistry(), Options{})
		watched := func() (n int) {
			for _, feed := range f.feeds.all() {
				if feed.watch.until.Load() > time.Now().UnixMilli() {
					n++
				}
			}
			return n
		}
		ask := func(i int) {
			_, ok := f.Trace(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)})
			require.True(t, ok)
		}
		for i := range maxWatched + 5 {
			_, err := f.Set(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, config())
			require.NoError(t, err)
			ask(i)
		}
		assert.Equal(t, maxWatched, watched())
		time.Sleep(watchedFor)
		assert.Zero(t, watched())
		ask(maxWatched + 4)
		assert.Equal(t, 1, watched())
	})
}
