package forecaster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// bounds are the least and the largest load served.
type bounds struct{ low, high float64 }

func (b *bounds) see(s snapshot.Snapshot) {
	if s.Err != nil {
		return
	}
	if b.low == 0 || s.Forecast.ServedLoad < b.low {
		b.low = s.Forecast.ServedLoad
	}
	b.high = max(b.high, s.Forecast.ServedLoad)
}

// A rolling update to a version that does not expose the metric must end in an error, not in a load of nothing.
func TestRollingUpdateToUnreadablePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, steady(3))
		w.pass(60*time.Second, nil)
		var seen bounds
		for i := range 6 {
			w.silent[w.fleet.start(time.Now())] = true
			w.pass(10*time.Second, seen.see)
			w.fleet.all[i].End = time.Now()
			w.pass(10*time.Second, seen.see)
		}
		assert.Greater(t, seen.low, 3*0.65, "served while pods that can be read give way to others")
		assert.NotEmpty(t, w.reason())
	})
}

// Pods that are first read a while after they are ready neither lower the load before nor raise it after.
func TestLateFirstSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, steady(5))
		w.pass(60*time.Second, nil)
		for range 3 {
			w.silent[w.fleet.start(time.Now())] = true
		}
		var seen bounds
		w.pass(20*time.Second, seen.see)
		clear(w.silent)
		w.pass(120*time.Second, seen.see)
		assert.Greater(t, seen.low, 5*0.7)
		assert.Less(t, seen.high, 5*1.1)
	})
}

func TestPodIsFirstReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.silent["pod-3"] = true
		var seen bounds
		w.pass(200*time.Second, seen.see)
		clear(w.silent)
		w.pass(120*time.Second, seen.see)
		assert.InDelta(t, 2, seen.low, 0.01)
		assert.InDelta(t, 2, seen.high, 0.01)
	})
}

// The load of a fleet most of which cannot be read any more is unknown as soon as their data is stale, however long the
// window is.
func TestMostPodsBecomeUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, steady(5))
		w.pass(60*time.Second, nil)
		for i := range 9 {
			w.silent[fmt.Sprintf("pod-%d", i)] = true
		}
		var seen bounds
		w.pass(32*time.Second, seen.see)
		assert.Equal(t, snapshot.PodsUnreadable, w.reason())
		w.pass(200*time.Second, seen.see)
		assert.Equal(t, snapshot.PodsUnreadable, w.reason())
		assert.InDelta(t, 5, seen.low, 0.01)
	})
}

// Sources that read seldom, or whose interval is unknown, are served as well as those that read each second.
func TestSlowSources(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second} {
		for _, pods := range []int{1, 2, 20, -1, -2, -20} {
			t.Run(fmt.Sprintf("%d pods every %s", pods, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := config()
					c.Interval, c.Params.StaleAfter = every, 3*every
					pods := pods
					if pods < 0 {
						pods, c.Interval = -pods, 0
					}
					f := New(time.Now, prometheus.NewRegistry(), Options{})
					feed, err := f.Set(key, c)
					require.NoError(t, err)
					fleet := &fleet{}
					for range pods {
						fleet.start(time.Now().Add(-time.Hour))
					}
					feed.SetPods(fleet)
					var seen bounds
					served := 0
					for second := range 600 {
						time.Sleep(time.Second) // virtual time
						for i, x := range fleet.all {
							if (second+i*7)%int(every/time.Second) == 0 { // each at its own moment
								feed.Append(x.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: 0.5})
							}
						}
						f.runAll()
						s, _ := f.Get(key)
						seen.see(s)
						if s.Err == nil {
							served++
						}
					}
					assert.Greater(t, served, 500)
					s, _ := f.Get(key)
					assert.InDelta(t, every.Seconds(), s.SampleInterval.Seconds(), 0.01)
					assert.InDelta(t, 0.5*float64(pods), seen.low, 0.01)
					assert.InDelta(t, 0.5*float64(pods), seen.high, 0.01)
				})
			})
		}
	}
}

func TestSamplesFromTheFutureAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.silent["pod-3"] = true
		for range 60 {
			w.feed.Append("pod-3", pipeline.Sample{T: time.Now().Add(time.Hour).UnixMilli(), V: 9})
			w.pass(time.Second, nil)
		}
		s := w.get()
		require.NoError(t, s.Err)
		assert.InDelta(t, 2, s.Forecast.ServedLoad, 0.01)
		assert.Equal(t, time.Now(), s.NewestSample)
		require.Len(t, s.Failing, 1)
		assert.ErrorContains(t, s.Failing[0].Err, "in the future")
	})
}

// Late samples of an old source do not mix with those of the new one.
func TestAnotherSourceIsAnotherFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(30*time.Second, nil)
		c := config()
		c.Origin = "another metric"
		fresh, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		require.NotSame(t, w.feed, fresh)
		w.pass(30*time.Second, nil) // appends to the old feed
		assert.Equal(t, snapshot.NoReadyPods, w.reason(), "the pods of the target are unknown")
		fresh.SetPods(w.fleet)
		w.pass(30*time.Second, nil)
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
	})
}

func TestRejectedSpecIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(30*time.Second, nil)
		w.forecaster.Reject(key, config(), fmt.Errorf("spec.threshold: 0"))
		w.pass(time.Second, nil)
		assert.Equal(t, snapshot.InvalidSpec, w.reason())
		assert.ErrorContains(t, w.get().Err, "spec.threshold: 0")
		_, err := w.forecaster.Set(key, config())
		require.NoError(t, err, "another spec makes it good")
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
	})
}

// A new replica assumes a recent scale-up: pods that are still starting must not look superfluous.
func TestRestartWhilePodsAreStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(1))
		fresh := New(time.Now, prometheus.NewRegistry(), Options{})
		feed, err := fresh.Set(key, config())
		require.NoError(t, err)
		feed.SetPods(w.fleet)
		feed.SetReplicas(8)
		w.forecaster, w.feed = fresh, feed
		w.pass(30*time.Second, nil)
		assert.Equal(t, 8, w.get().Decision.Desired)
		assert.Equal(t, pipeline.ScaleUpPending, w.get().Decision.Reason)
	})
}

// With backfill the first forecast is served at once, pods that have just started included.
func TestBackfillIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		young := w.fleet.start(time.Now().Add(-3 * time.Second))
		for s := 90; s >= 0; s-- {
			at := time.Now().Add(-time.Duration(s) * time.Second)
			for _, i := range w.fleet.all {
				if at.After(i.Start) {
					load := 0.5
					if s < 3 {
						load = 0.4
					}
					w.feed.Append(i.ID, pipeline.Sample{T: at.UnixMilli(), V: load})
				}
			}
		}
		w.forecaster.runAll()
		s := w.get()
		require.NoError(t, s.Err, "%s has been read from its start on", young)
		assert.InDelta(t, 2, s.Forecast.ServedLoad, 0.05)
		w.silent[w.fleet.start(time.Now())] = true
		w.pass(5*time.Second, nil)
		require.NoError(t, w.get().Err)
	})
}

// Memory stays bounded whatever is pushed, and samples from before the window are ignored.
func TestSamplesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, steady(1))
		now := time.Now().UnixMilli()
		for i := range int64(2 * minReadings) {
			w.feed.Append("pod-0", pipeline.Sample{T: now - 2*minReadings + i, V: 1})
		}
		w.feed.Append("pod-0", pipeline.Sample{T: now - 3600_000, V: 9})
		w.forecaster.runAll()
		assert.Equal(t, 2*minReadings, w.feed.predictor.readings.series["pod-0"].Len())
		assert.Empty(t, w.get().Failing)
		w.feed.Append("pod-0", pipeline.Sample{T: now, V: 1})
		w.forecaster.runAll()
		require.Len(t, w.get().Failing, 1)
		assert.ErrorContains(t, w.get().Failing[0].Err, "more than 2000 samples within the window")
		for i := range int64(10 * minReadings) {
			w.feed.Append("pod-0", pipeline.Sample{T: now - i, V: 1})
		}
		assert.Len(t, w.feed.inbox.arrivals["pod-0"].samples, 2*minReadings, "nor does more wait for the next forecast")
	})
}

// The resolution is measured on the samples: a server that is queried each second may have nothing newer.
func TestSampleResolutionShowsInTheSamples(t *testing.T) {
	for _, c := range []struct {
		every, late time.Duration
		coarse      bool // for the default horizon of 30 s + 15 s
	}{
		{time.Second, 0, false}, {time.Second, 5 * time.Second, false}, {5 * time.Second, 5 * time.Second, false},
		{time.Second, 21 * time.Second, true}, {15 * time.Second, 2 * time.Second, true},
	} {
		t.Run(fmt.Sprintf("every %s, %s late", c.every, c.late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, steady(1.5))
				w.silent = map[string]bool{"pod-0": true, "pod-1": true, "pod-2": true}
				for range 120 {
					at := time.Now().Add(-c.late).Truncate(c.every)
					for _, i := range w.fleet.all {
						w.feed.Append(i.ID, pipeline.Sample{T: at.UnixMilli(), V: 0.5})
					}
					w.pass(time.Second, nil)
				}
				s := w.get()
				require.NoError(t, s.Err)
				assert.InDelta(t, c.every.Seconds(), s.SampleInterval.Seconds(), 0.1)
				assert.InDelta(t, (c.late + c.every/2).Seconds(), s.SampleDelay.Seconds(), 1.5)
				shows, within := s.SampleResolution()
				assert.Equal(t, s.Forecast.Horizon/2, within)
				assert.Equal(t, c.coarse, shows > within, "%s of %s", shows, within)
			})
		})
	}
}

func TestSourceErrorIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(30*time.Second, nil)
		w.feed.SourceFailed(fmt.Errorf("connection refused"))
		w.pass(time.Second, nil)
		require.NoError(t, w.get().Err, "what has been read is still fresh")
		require.EqualError(t, w.get().SourceErr, "connection refused")
		w.feed.SourceFailed(nil)
		w.pass(time.Second, nil)
		assert.NoError(t, w.get().SourceErr)
	})
}

// Less than half of a fleet is no sample of the others: the one pod that answers may be the idle one.
func TestNoSubstitutesForMoreThanHalfOfThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, steady(0.5))
		for i := 1; i < 10; i++ {
			w.silent[fmt.Sprintf("pod-%d", i)] = true
		}
		w.pass(60*time.Second, func(s snapshot.Snapshot) { require.Error(t, s.Err) })
		assert.Equal(t, snapshot.PodsUnreadable, w.reason())
		for i := 1; i < 6; i++ {
			delete(w.silent, fmt.Sprintf("pod-%d", i))
		}
		w.pass(60*time.Second, nil)
		require.NoError(t, w.get().Err)
		assert.InDelta(t, 0.5, w.get().Forecast.ServedLoad, 0.01)
	})
}

// A clock that was ahead and is set back costs a warm-up, and not as long as it was ahead.
func TestClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := 2 * time.Hour
		f := New(func() time.Time { return time.Now().Add(ahead) }, prometheus.NewRegistry(), Options{})
		feed, err := f.Set(key, config())
		require.NoError(t, err)
		pods := &fleet{}
		id := pods.start(time.Now().Add(-time.Hour))
		feed.SetPods(pods)
		run := func(seconds int) snapshot.Snapshot {
			for range seconds {
				time.Sleep(time.Second) // virtual time
				feed.Append(id, pipeline.Sample{T: time.Now().Add(ahead).UnixMilli(), V: 0.5})
				f.runAll()
			}
			s, _ := f.Get(key)
			return s
		}
		require.NoError(t, run(30).Err)
		ahead = 0
		require.Error(t, run(5).Err)
		s := run(20)
		require.NoError(t, s.Err)
		assert.Equal(t, time.Now(), s.NewestSample)
	})
}
