package forecaster

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// configured returns a world of so many pods with these parameters.
func configured(t *testing.T, pods int, p pipeline.Params) *world {
	c := config()
	c.Params = p
	f := New(time.Now, prometheus.NewRegistry(), Options{})
	feed, err := f.Set(key, c)
	require.NoError(t, err)
	w := &world{T: t, forecaster: f, feed: feed, fleet: &fleet{}}
	for range pods {
		w.fleet.start(time.Now().Add(-time.Hour))
	}
	feed.SetPods(w.fleet)
	feed.SetReplicas(pods)
	return w
}

// reads lets time go by, in each second of which every pod has the reading of a function.
func (w *world) reads(seconds int, reading func(pod, second int) float64, each func(second int, s snapshot.Snapshot)) {
	for second := range seconds {
		time.Sleep(time.Second) // virtual time
		for i, x := range w.fleet.all {
			w.feed.Append(x.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: reading(i, second)})
		}
		w.forecaster.runAll()
		if each != nil {
			each(second, w.get())
		}
	}
}

// methods are the parameters of both, with a threshold of 0.7.
func methods() map[string]pipeline.Params {
	all := map[string]pipeline.Params{"Holt": pipeline.HoltParams(), "Adaptive": pipeline.AdaptiveParams()}
	for name, p := range all {
		p.Threshold, p.Max = 0.7, 1000
		all[name] = p
	}
	return all
}

// TestOneAbsurdReadingOrdersNothing has one pod read far too much once.
func TestOneAbsurdReadingOrdersNothing(t *testing.T) {
	for name, p := range methods() {
		for _, pods := range []int{1, 2, 3, 10} {
			for _, factor := range []float64{3, 5, 10, 100, 1e6, 1e12, 1e300} {
				t.Run(fmt.Sprintf("%s of %d pods, %g times the threshold", name, pods, factor), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := configured(t, pods, p)
						served := 0.0
						w.reads(400, func(pod, second int) float64 {
							if pod == 0 && second == 100 {
								return 0.7 * factor
							}
							return 0.5
						}, func(second int, s snapshot.Snapshot) {
							if second < 99 {
								served = s.Forecast.ServedLoad
								return
							}
							require.NoError(t, s.Err, second)
							require.InDelta(t, served, s.Forecast.ServedLoad, 1e-6*float64(pods), second)
							require.InDelta(t, 0.5*float64(pods), s.Forecast.Level, 1e-6*float64(pods), second)
							require.LessOrEqual(t, s.Decision.Desired, pods, second)
							if second == 102 {
								require.Equal(t, 1, s.Refused)
							}
						})
					})
				})
			}
		}
	}
}

// TestOneLowReadingIsNoFall has a load read as nothing once, after which its rise would order the maximum.
func TestOneLowReadingIsNoFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := 400.0
		w := newWhole(t, 8, func(time.Time) float64 { return load })
		w.measure(2 * time.Minute)
		served := w.get().Decision.Desired
		for range 10 {
			load = 0
			w.measure(time.Second)
			load = 400
			for range 20 {
				assert.Equal(t, served, w.get().Decision.Desired)
				assert.InDelta(t, 400, w.get().Forecast.Level, 1e-6)
				w.measure(time.Second)
			}
		}
		assert.ErrorContains(t, w.get().SourceErr, "is far below the ones before and after it")
		load = 0
		w.measure(2 * time.Second)
		assert.Less(t, w.get().Forecast.Level, 350.0, "a fall that is read twice is one")
	})
}

// TestAbsurdReadingIsNamed has the status say which pod reads what.
func TestAbsurdReadingIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := configured(t, 3, methods()["Adaptive"])
		w.reads(102, func(pod, second int) float64 {
			if pod == 1 && second == 100 {
				return 70
			}
			return 0.5
		}, nil)
		s := w.get()
		require.Len(t, s.Failing, 1)
		assert.Equal(t, "pod-1", s.Failing[0].Pod)
		assert.ErrorContains(t, s.Failing[0].Err, "the reading 70 of ")
		assert.ErrorContains(t, s.Failing[0].Err, "is 100 times as high as the threshold")
		said := s.Failing[0].Err.Error()
		w.reads(4, func(pod, second int) float64 { return 0.5 + 99*float64(pod*second%2) }, nil)
		assert.EqualError(t, s.Failing[0].Err, said, "a snapshot does not change")
		w.reads(40, func(int, int) float64 { return 0.5 }, nil)
		assert.Empty(t, w.get().Failing)
	})
}

// TestReadingsAboveTheDeclaredMaximumAreUnknown has a pod read more than saturation permanently, which no repetition
// makes possible.
func TestReadingsAboveTheDeclaredMaximumAreUnknown(t *testing.T) {
	for name, p := range methods() {
		p.Saturation = pipeline.Saturation{Enabled: true, Max: 1, Zone: 0.02}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := configured(t, 4, p)
				w.reads(300, func(pod, second int) float64 {
					if pod == 2 && second > 60 {
						return 1.5
					}
					return 0.5
				}, func(second int, s snapshot.Snapshot) {
					if second > 20 {
						require.NoError(t, s.Err)
						require.InDelta(t, 2, s.Forecast.Level, 1e-6, second)
					}
				})
				s := w.get()
				require.Len(t, s.Failing, 1)
				assert.EqualError(t, s.Failing[0].Err, "a reading is 1.5: must be at most saturation (1); "+
					"raise that, or leave it out, if the metric can be higher")
				assert.Positive(t, s.Refused)
			})
		})
	}
}

// TestNegativeReadingsOfAPodAreUnknown has one pod of ten read less than nothing, which must not cancel the load of the
// others.
func TestNegativeReadingsOfAPodAreUnknown(t *testing.T) {
	for name, p := range methods() {
		for _, v := range []float64{-1, -100, -1e300} {
			t.Run(fmt.Sprint(name, " ", v), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := configured(t, 10, p)
					w.reads(300, func(pod, second int) float64 {
						if pod == 3 && second > 60 {
							return v
						}
						return 0.5
					}, func(second int, s snapshot.Snapshot) {
						if second > 20 {
							require.NoError(t, s.Err)
							require.InDelta(t, 5, s.Forecast.Level, 1e-6, second)
						}
					})
					require.Len(t, w.get().Failing, 1)
					assert.ErrorContains(t, w.get().Failing[0].Err,
						"must be 0 or more, as a negative load is taken for unknown")
				})
			})
		}
	}
}

func TestWhatARecordingRuleMakesOfZeroIsZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := configured(t, 1, methods()["Adaptive"])
		w.reads(30, func(int, int) float64 { return -1e-15 }, nil)
		s := w.get()
		require.NoError(t, s.Err)
		assert.Zero(t, s.Forecast.Level)
		assert.Empty(t, s.Failing)
	})
}

// TestNegativeLoadOfTheTargetIsUnknown has a queue's exporter report -1 once it does not know, which must not scale to
// zero.
func TestNegativeLoadOfTheTargetIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := 400.0
		w := newWhole(t, 8, func(time.Time) float64 { return load })
		w.measure(time.Minute)
		require.NoError(t, w.get().Err)
		load = -1
		for range 29 {
			w.measure(time.Second)
			s := w.get()
			require.NoError(t, s.Err)
			assert.GreaterOrEqual(t, s.Decision.Desired, 8)
			require.ErrorContains(t, s.SourceErr, "a reading is -1: must be 0 or more")
		}
		w.measure(2 * time.Second)
		assert.Equal(t, snapshot.Stale, w.reason())
	})
}

func TestNegativeLoadFromTheStartIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWhole(t, 1, steady(-1))
		w.measure(time.Minute)
		assert.Equal(t, snapshot.SourceFailing, w.reason())
		assert.ErrorContains(t, w.get().Err, "the load of the target cannot be read: a reading is -1")
	})
}

// TestJumpsCount has a jump of half of the pods count at once, and one of fewer with their second reading.
func TestJumpsCount(t *testing.T) {
	for name, p := range methods() {
		for _, test := range []struct {
			pods, jumping int
			after         int // readings that are needed
		}{{10, 10, 1}, {10, 5, 1}, {2, 2, 1}, {10, 1, 2}, {1, 1, 2}, {10, 4, 2}} {
			t.Run(fmt.Sprintf("%s: %d of %d pods", name, test.jumping, test.pods), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := configured(t, test.pods, p)
					steady := 0.0
					w.reads(110, func(pod, second int) float64 {
						if pod < test.jumping && second >= 100 {
							return 35
						}
						return 0.5
					}, func(second int, s snapshot.Snapshot) {
						switch {
						case second == 99:
							steady = s.Forecast.Level
						case second >= 100 && second < 100+test.after-1:
							assert.InDelta(t, steady, s.Forecast.Level, 1e-9, second)
						case second == 100+test.after-1:
							assert.Greater(t, s.Forecast.Level, steady+0.1, second)
						}
					})
					assert.Empty(t, w.get().Failing)
					assert.Zero(t, w.get().Refused)
				})
			})
		}
	}
}

// TestFirstReadingsMayBeHigh has pods that read far above the threshold from the start.
func TestFirstReadingsMayBeHigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := configured(t, 1, methods()["Adaptive"])
		w.reads(30, func(int, int) float64 { return 70 }, nil)
		s := w.get()
		require.NoError(t, s.Err)
		assert.InDelta(t, 70, s.Forecast.Level, 1e-6)
		assert.Zero(t, s.Refused)
	})
}

// TestReplicasThatStartedLaterAnswerAlike has two forecasters, one of which knows no more than the window.
func TestReplicasThatStartedLaterAnswerAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := methods()["Holt"]
		first, second := configured(t, 3, p), configured(t, 3, p)
		for at := range 400 {
			time.Sleep(time.Second) // virtual time
			for i, x := range first.fleet.all {
				v := 0.5
				if i == at/7%3 && at%7 == 0 {
					v = 50
				}
				first.feed.Append(x.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: v})
				if at > 200 {
					second.feed.Append(x.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: v})
				}
			}
			first.forecaster.runAll()
			second.forecaster.runAll()
		}
		require.NoError(t, second.get().Err)
		assert.InDelta(t, first.get().Forecast.ServedLoad, second.get().Forecast.ServedLoad, 0)
	})
}

// TestNewestSamplesAreKept has a sender push more than is kept, of a load that has risen since.
func TestNewestSamplesAreKept(t *testing.T) {
	for name, atOnce := range map[string]int{"one by one": 1, "many at once": 20_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := configured(t, 1, methods()["Adaptive"])
				begin := time.Now()
				time.Sleep(100 * time.Second) // virtual time
				var batch []pipeline.Sample
				for at := begin; at.Before(begin.Add(100 * time.Second)); at = at.Add(10 * time.Millisecond) {
					batch = append(batch, pipeline.Sample{T: at.UnixMilli(), V: at.Sub(begin).Seconds() / 100})
					if len(batch) == atOnce {
						w.feed.Append("pod-0", batch...)
						batch = batch[:0]
					}
				}
				w.feed.Append("pod-0", batch...)
				w.forecaster.runAll()
				s := w.get()
				require.NoError(t, s.Err)
				assert.InDelta(t, 1, s.Forecast.Level, 0.05)
				require.Len(t, s.Failing, 1)
				assert.ErrorContains(t, s.Failing[0].Err, "of which the oldest are dropped")
			})
		})
	}
}

// TestLargestPossibleReadings has sums that are finite in float32, in which loads are kept.
func TestLargestPossibleReadings(t *testing.T) {
	for _, threshold := range []float64{1e-100, 1, 1e29} {
		p := pipeline.AdaptiveParams()
		p.Threshold, p.Max = threshold, 1000
		synctest.Test(t, func(t *testing.T) {
			w := configured(t, 20, p)
			w.reads(60, func(int, int) float64 { return min(1e30, threshold*math.MaxInt32) }, nil)
			s := w.get()
			require.NoError(t, s.Err)
			assert.False(t, math.IsInf(float64(float32(s.Forecast.Level)), 0))
		})
	}
}
