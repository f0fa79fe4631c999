package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

func TestOneListServesAllOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serving("a", "b")
		registry := prometheus.NewRegistry()
		s := running(t, Options{Client: a, Registerer: registry})
		sinks := []*sourcetest.Recorder{sourcetest.NewRecorder(), sourcetest.NewRecorder(), sourcetest.NewRecorder()}
		memory := Config{Name: "memory", Interval: 15 * time.Second}
		now := time.Now()
		s.Set(key("cpu"), cpu(), sourcetest.NewFleet(started("a", now), started("b", now)), sinks[0])
		s.Set(key("memory"), memory, sourcetest.NewFleet(started("a", now)), sinks[1])
		elsewhere := types.NamespacedName{Namespace: "other", Name: "cpu"}
		s.Set(elsewhere, cpu(), sourcetest.NewFleet(), sinks[2])
		sourcetest.Pass(65 * time.Second)

		for _, namespace := range []string{"shop", "other"} {
			times := a.times(namespace)
			require.Greater(t, len(times), 4, "at once, then each 15 s")
			assert.Zero(t, times[0])
			for i := 2; i < len(times); i++ {
				assert.Equal(t, 15*time.Second, times[i]-times[i-1])
			}
		}
		assert.NotEqual(t, a.times("shop")[1], a.times("other")[1], "each namespace at a time of its own")
		lists := len(a.times("shop"))
		assert.Equal(t, slices.Repeat([]float64{.25}, lists), sinks[0].Values("uid-b"))
		assert.Equal(t, slices.Repeat([]float64{1 << 20}, lists), sinks[1].Values("uid-a"))
		assert.Empty(t, sinks[1].Values("uid-b"), "not of its fleet")
		assert.Equal(t, float64(lists+len(a.times("other"))),
			sourcetest.Gathered(t, registry, "foresail_resource_list_duration_seconds", "success"))
		assert.Len(t, s.pollers, 2)
	})
}

// A user who may create PredictedMetrics may choose their intervals; they must not multiply the requests.
func TestIntervalsOfANamespaceShareOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serving("a")
		registry := prometheus.NewRegistry()
		s := running(t, Options{Client: a, Registerer: registry})
		every := func(seconds int) Config {
			c := cpu()
			c.Interval = time.Duration(seconds) * time.Second
			return c
		}
		slow := sourcetest.NewRecorder()
		s.Set(key("slow"), every(60), sourcetest.NewFleet(started("a", time.Now())), slow)
		sourcetest.Pass(10 * time.Minute)
		assert.LessOrEqual(t, len(a.times("shop")), 11)
		for i := range 100 {
			s.Set(key(fmt.Sprint("pm-", i)), every(10+i), sourcetest.NewFleet(), sourcetest.NewRecorder())
		}
		before, taken := len(a.times("shop")), len(slow.Values("uid-a"))
		sourcetest.Pass(10 * time.Minute)
		assert.InDelta(t, 60, len(a.times("shop"))-before, 1, "as often as the most frequent of them asks for")
		assert.InDelta(t, 60, len(slow.Values("uid-a"))-taken, 1, "every reading serves all subscriptions")
		assert.Len(t, s.pollers, 1)
		for i := range 100 {
			s.Remove(key(fmt.Sprint("pm-", i)))
		}
		before = len(a.times("shop"))
		sourcetest.Pass(10 * time.Minute)
		assert.InDelta(t, 10, len(a.times("shop"))-before, 1)
	})
}

func TestSampleIsTakenOnceForEachTimestamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := newAPI(func(_ context.Context, now time.Time) ([]v1beta1.PodMetrics, error) {
			minute := now.Truncate(time.Minute)
			return []v1beta1.PodMetrics{metricsOf("a", minute,
				container("app", fmt.Sprint(minute.Minute()+1), "0"))}, nil
		})
		s, sink := running(t, Options{Client: a}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(started("a", began)), sink)
		sourcetest.Pass(150 * time.Second)
		var want []pipeline.Sample
		for i := range 3 {
			want = append(want, pipeline.Sample{T: began.Truncate(time.Minute).Add(time.Duration(i) * time.Minute).UnixMilli(),
				V: float64(i + 1)})
		}
		assert.Equal(t, want, sink.Samples("uid-a"))
		assert.Greater(t, len(a.times("shop")), 10)
		assert.Empty(t, sink.Failures("uid-a"))
	})
}

func TestPodWithoutMetricsFailsAfterAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sink := running(t, Options{Client: serving("other")}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(started("a", time.Now())), sink)
		sourcetest.Pass(3 * 15 * time.Second)
		assert.Empty(t, sink.Failures("uid-a"))
		sourcetest.Pass(15 * time.Second)
		require.Len(t, sink.Failures("uid-a"), 1)
		assert.Regexp(t, `^metrics.k8s.io has no metrics of the pod, which has been ready for (4[5-9]|5\d|60)s$|1m0s$`,
			sink.Failures("uid-a")[0])
		assert.Empty(t, sink.Values("uid-a"))
	})
}

// A reading after a failure is reported even if its timestamp has not changed, so that the failure ends.
func TestFailureEndsWithTheNextReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, lists := time.Now(), 0
		a := newAPI(func(context.Context, time.Time) ([]v1beta1.PodMetrics, error) {
			if lists++; lists == 2 {
				return []v1beta1.PodMetrics{metricsOf("a", at)}, nil
			}
			return []v1beta1.PodMetrics{metricsOf("a", at, container("app", "1", "0"))}, nil
		})
		s, sink := running(t, Options{Client: a}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(started("a", at)), sink)
		sourcetest.Pass(time.Minute)
		assert.Equal(t, []string{"its PodMetrics has no containers"}, sink.Failures("uid-a"))
		assert.Equal(t, []float64{1, 1}, sink.Values("uid-a"))
	})
}

func TestReadingBelongsToTheInstanceActiveAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		first, second := started("a", now.Add(-time.Hour)), started("a", now.Add(-5*time.Second))
		first.End, second.ID = now.Add(-10*time.Second), "uid-a/2"
		a := newAPI(func(_ context.Context, now time.Time) ([]v1beta1.PodMetrics, error) {
			return []v1beta1.PodMetrics{metricsOf("a", now.Add(-12*time.Second), container("app", "1", "0"))}, nil
		})
		s, sink := running(t, Options{Client: a}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(first, second), sink)
		sourcetest.Pass(40 * time.Second)
		require.NotEmpty(t, sink.Samples("uid-a"), "the first list is of the time before the second start")
		require.NotEmpty(t, sink.Samples("uid-a/2"))
		for _, x := range sink.Samples("uid-a") {
			assert.Less(t, x.T, second.Start.UnixMilli())
		}
		for _, x := range sink.Samples("uid-a/2") {
			assert.GreaterOrEqual(t, x.T, second.Start.UnixMilli())
		}
	})
}

func TestFleetIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := sourcetest.NewFleet(started("a", time.Now()))
		s, sink := running(t, Options{Client: serving("a", "b")}), sourcetest.NewRecorder()
		s.Set(key("pm"), cpu(), fleet, sink)
		synctest.Wait()
		ended := started("a", time.Now())
		ended.End = time.Now()
		fleet.Set(ended, started("b", time.Now()))
		sourcetest.Pass(31 * time.Second)
		assert.Len(t, sink.Values("uid-a"), 1)
		assert.GreaterOrEqual(t, len(sink.Values("uid-b")), 2)
	})
}

func TestNewSubscriptionTakesTheLastList(t *testing.T) {
	for name, failure := range map[string]error{"success": nil, "failure": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(func(_ context.Context, now time.Time) ([]v1beta1.PodMetrics, error) {
					return []v1beta1.PodMetrics{metricsOf("a", now, container("app", "1", "0"))}, failure
				})
				s := running(t, Options{Client: a, MaxBackoff: time.Second})
				s.Set(key("first"), cpu(), sourcetest.NewFleet(), sourcetest.NewRecorder())
				synctest.Wait()
				sink := sourcetest.NewRecorder()
				s.Set(key("second"), cpu(), sourcetest.NewFleet(started("a", time.Now())), sink)
				if failure == nil {
					require.Empty(t, sink.LastSourceError())
				} else {
					require.Contains(t, sink.LastSourceError(), failure.Error())
				}
				assert.Equal(t, failure == nil, len(sink.Values("uid-a")) == 1)
				assert.Len(t, a.times("shop"), 1)
			})
		})
	}
}

func TestSetIsIdempotentAndAChangeReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serving("a")
		registry := prometheus.NewRegistry()
		s := running(t, Options{Client: a, Registerer: registry})
		fleet, sink, other := sourcetest.NewFleet(started("a", time.Now())),
			sourcetest.NewRecorder(), sourcetest.NewRecorder()
		for range 3 {
			s.Set(key("pm"), cpu(), fleet, sink)
			synctest.Wait()
		}
		require.Len(t, a.times("shop"), 1)
		require.Len(t, sink.Values("uid-a"), 1)

		faster := cpu()
		faster.Interval = 5 * time.Second
		s.Set(key("pm"), faster, fleet, other)
		sourcetest.Pass(time.Minute)
		assert.Len(t, sink.Values("uid-a"), 1, "nothing since it was replaced")
		assert.GreaterOrEqual(t, len(other.Values("uid-a")), 12)
		assert.Len(t, s.pollers, 1)

		other = sourcetest.NewRecorder()
		s.Set(key("pm"), faster, fleet, other)
		s.Remove(key("pm"))
		s.Remove(key("pm"))
		before := other.Calls()
		listed := len(a.times("shop"))
		sourcetest.Pass(time.Minute)
		assert.Equal(t, before, other.Calls())
		assert.Len(t, a.times("shop"), listed)
		assert.Empty(t, s.pollers)
	})
}

func TestNothingIsListedBeforeOrAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serving("a")
		s := New(Options{Client: a})
		s.Set(key("pm"), cpu(), sourcetest.NewFleet(), sourcetest.NewRecorder())
		sourcetest.Pass(time.Minute)
		require.Empty(t, a.times("shop"))

		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		listed := len(a.times("shop"))
		require.GreaterOrEqual(t, listed, 3)
		other := types.NamespacedName{Namespace: "other", Name: "pm"}
		s.Set(other, cpu(), sourcetest.NewFleet(), sourcetest.NewRecorder())
		sourcetest.Pass(time.Minute)
		assert.Len(t, a.times("shop"), listed)
		assert.Empty(t, a.times("other"))
	})
}

func TestConcurrentListsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		a := newAPI(func(context.Context, time.Time) ([]v1beta1.PodMetrics, error) {
			defer inFlight.Add(-1)
			if n := inFlight.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-time.After(time.Second)
			return nil, nil
		})
		s := running(t, Options{Client: a, Concurrency: 1})
		for i := range 5 {
			k := types.NamespacedName{Namespace: fmt.Sprint("ns-", i), Name: "pm"}
			s.Set(k, cpu(), sourcetest.NewFleet(), sourcetest.NewRecorder())
		}
		sourcetest.Pass(6 * time.Second)
		assert.EqualValues(t, 1, most.Load())
		for i := range 5 {
			assert.NotEmpty(t, a.times(fmt.Sprint("ns-", i)))
		}
	})
}
