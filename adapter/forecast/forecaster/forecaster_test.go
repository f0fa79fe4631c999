package forecaster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// fleet is a Fleet whose pods the test starts and ends.
type fleet struct {
	all         []podtracker.Instance
	startupTime time.Duration
	waited      time.Duration // for a node, of that
	lost        time.Time
}

func (f *fleet) Lost() (time.Time, error) {
	if f.lost.IsZero() {
		return f.lost, nil
	}
	return f.lost, errors.New("connection refused")
}

func (f *fleet) Instances(since time.Time) []podtracker.Instance {
	var out []podtracker.Instance
	for _, i := range f.all {
		if i.End.IsZero() || !i.End.Before(since) {
			out = append(out, i)
		}
	}
	return out
}

func (f *fleet) Ready() int {
	n := 0
	for _, i := range f.all {
		if i.End.IsZero() {
			n++
		}
	}
	return n
}

func (f *fleet) StartupsMeasured() int { return 0 }

func (f *fleet) StartupTime(_ pipeline.Method, initial time.Duration) time.Duration {
	if f.startupTime > 0 {
		return f.startupTime
	}
	return initial
}

func (f *fleet) StartupTimeOnNode(m pipeline.Method, initial time.Duration) time.Duration {
	return f.StartupTime(m, initial) - f.waited
}

func (f *fleet) start(at time.Time) string {
	id := fmt.Sprintf("pod-%d", len(f.all))
	f.all = append(f.all, podtracker.Instance{ID: id, Pod: types.NamespacedName{Namespace: "shop", Name: id},
		Start: at})
	return id
}

var key = types.NamespacedName{Namespace: "shop", Name: "checkout"}

func config() Config {
	p := pipeline.HoltParams()
	p.Threshold, p.Max = 0.7, 20
	return Config{Params: p, MeasureStartup: true, Source: "pods", Interval: time.Second,
		TargetKind: "Deployment", TargetName: "checkout"}
}

// world is a forecaster with one feed and the pods behind it; each second reads every pod but the silent ones.
type world struct {
	*testing.T
	forecaster *Forecaster
	feed       *Feed
	fleet      *fleet
	silent     map[string]bool
	load       func(at time.Time) float64 // of all pods together
	now        func() time.Time
}

func newWorld(t *testing.T, pods int, load func(time.Time) float64) *world {
	return newWorldAt(t, time.Now, pods, load)
}

// newWorldAt returns a world with a clock of its own.
func newWorldAt(t *testing.T, now func() time.Time, pods int, load func(time.Time) float64) *world {
	f := New(now, prometheus.NewRegistry(), Options{})
	feed, err := f.Set(key, config())
	require.NoError(t, err)
	w := &world{T: t, forecaster: f, feed: feed, fleet: &fleet{}, silent: map[string]bool{}, load: load, now: now}
	for range pods {
		w.fleet.start(now().Add(-time.Hour))
	}
	feed.SetPods(w.fleet)
	feed.SetReplicas(pods)
	return w
}

// pass lets time go by, a second at a time.
func (w *world) pass(d time.Duration, each func(snapshot.Snapshot)) {
	for range int(d / time.Second) {
		time.Sleep(time.Second) // virtual time
		active := w.fleet.Ready()
		for _, i := range w.fleet.all {
			if i.End.IsZero() && !w.silent[i.ID] {
				w.feed.Append(i.ID, pipeline.Sample{T: w.now().UnixMilli(), V: w.load(w.now()) / float64(active)})
			}
		}
		w.forecaster.runAll()
		if each != nil {
			each(w.get())
		}
	}
}

func (w *world) get() snapshot.Snapshot {
	s, ok := w.forecaster.Get(key)
	require.True(w, ok)
	return s
}

func (w *world) reason() snapshot.Reason {
	var u *snapshot.Unavailable
	if !errors.As(w.get().Err, &u) {
		return ""
	}
	return u.Reason
}

func steady(load float64) func(time.Time) float64 { return func(time.Time) float64 { return load } }

func TestServesAfterWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
		w.pass(5*time.Second, nil)
		assert.Equal(t, snapshot.WarmingUp, w.reason())
		w.pass(10*time.Second, nil)
		s := w.get()
		require.NoError(t, s.Err)
		assert.InDelta(t, 2, s.Forecast.ServedLoad, 1e-9)
		assert.Equal(t, 4, s.Ready)
		assert.Equal(t, 4, s.Forecast.Target)
		assert.Equal(t, time.Now(), s.NewestSample)
		assert.InDelta(t, 4, s.SamplesPerSecond, 0.5)
	})
}

// Reading one pod of a fleet after the other must not look like a rising load.
func TestPartOfAFleetIsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10, steady(5))
		for i := 3; i < 10; i++ {
			w.silent[fmt.Sprintf("pod-%d", i)] = true
		}
		w.pass(4*time.Second, nil)
		assert.Equal(t, snapshot.WaitingForSamples, w.reason())
		clear(w.silent)
		served := 0
		w.pass(60*time.Second, func(s snapshot.Snapshot) {
			if s.Err == nil {
				served++
				assert.InDelta(t, 5, s.Forecast.ServedLoad, 1e-6)
			}
		})
		assert.Greater(t, served, 40)
	})
}

func TestUnreadablePodGetsTheMeanOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.silent["pod-3"] = true
		w.feed.Fail("pod-3", errors.New("connection refused"))
		w.pass(200*time.Second, nil)
		s := w.get()
		require.NoError(t, s.Err)
		assert.InDelta(t, 2, s.Forecast.ServedLoad, 1e-6)
		require.Len(t, s.Failing, 1)
		assert.Equal(t, "pod-3", s.Failing[0].Pod)

		w.silent["pod-2"], w.silent["pod-1"] = true, true
		w.pass(100*time.Second, nil)
		assert.Equal(t, snapshot.PodsUnreadable, w.reason())
		clear(w.silent)
		w.pass(5*time.Second, nil)
		require.NoError(t, w.get().Err)
		assert.Empty(t, w.get().Failing)
	})
}

func TestStaleDataIsUnavailableAndRecoveryDoesNotJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(2))
		w.pass(60*time.Second, nil)
		for id := range 4 {
			w.silent[fmt.Sprintf("pod-%d", id)] = true
		}
		w.pass(29*time.Second, nil)
		require.NoError(t, w.get().Err)
		w.pass(3*time.Second, nil)
		assert.Equal(t, snapshot.Stale, w.reason())
		w.pass(120*time.Second, nil)
		assert.NotEmpty(t, w.reason())

		w.load = steady(2.4)
		for id := range 4 { // one pod after the other comes back
			delete(w.silent, fmt.Sprintf("pod-%d", id))
			w.pass(2*time.Second, func(s snapshot.Snapshot) { assert.Error(t, s.Err) })
		}
		w.pass(60*time.Second, func(s snapshot.Snapshot) {
			if s.Err == nil {
				assert.InDelta(t, 2.4, s.Forecast.ServedLoad, 1e-6)
			}
		})
		require.NoError(t, w.get().Err)
	})
}

func TestNoReadyPodIsNoForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(30*time.Second, nil)
		require.NoError(t, w.get().Err)
		for i := range w.fleet.all {
			w.fleet.all[i].End = time.Now()
		}
		w.pass(time.Second, nil)
		assert.Equal(t, snapshot.NoReadyPods, w.reason())
		assert.Zero(t, w.get().Ready)
	})
}

// A rolling update replaces every pod, one at a time, under a constant load.
func TestRollingUpdateIsNoSpike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, steady(3))
		w.pass(60*time.Second, nil)
		highest := 0.0
		for i := range 6 {
			w.fleet.start(time.Now())
			w.pass(5*time.Second, func(s snapshot.Snapshot) { highest = max(highest, s.Forecast.ServedLoad) })
			w.fleet.all[i].End = time.Now()
			w.pass(5*time.Second, func(s snapshot.Snapshot) { highest = max(highest, s.Forecast.ServedLoad) })
		}
		w.pass(120*time.Second, func(s snapshot.Snapshot) { highest = max(highest, s.Forecast.ServedLoad) })
		assert.Less(t, highest, 3*1.1, "the forecast of a constant load while its pods are replaced")
		assert.InDelta(t, 3, w.get().Forecast.ServedLoad, 0.1)
	})
}

func TestTwoReplicasAnswerAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ramp := func(at time.Time) float64 { return 2 + at.Sub(begun).Seconds()*0.02 }
		a := newWorld(t, 5, ramp)
		b := newWorld(t, 5, ramp)
		b.fleet = a.fleet
		b.feed.SetPods(a.fleet)
		a.pass(40*time.Second, nil)
		for range 120 { // b starts later; both see the same samples from then on
			a.pass(time.Second, func(snapshot.Snapshot) {
				for _, i := range a.fleet.all {
					b.feed.Append(i.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: ramp(time.Now()) / 5})
				}
				b.forecaster.runAll()
			})
		}
		assert.Equal(t, a.get().Forecast, b.get().Forecast)
	})
}

func TestScaleDownWaitsForRequestedReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, steady(0.4))
		w.pass(4*time.Minute, nil) // past the cooldown after the newest start
		assert.Equal(t, 1, w.get().Decision.Desired)
		w.feed.SetReplicas(8)
		w.pass(time.Second, nil)
		assert.Equal(t, pipeline.ScaleUpPending, w.get().Decision.Reason)
		assert.Equal(t, 8, w.get().Decision.Desired)
		w.pass(61*time.Second, nil)
		assert.Equal(t, 1, w.get().Decision.Desired)
		w.feed.SetReplicas(4)
		w.pass(time.Second, nil)
		assert.Equal(t, pipeline.CoolingDown, w.get().Decision.Reason)
	})
}

func TestLearnedStartupTimeMakesTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.fleet.startupTime = 30 * time.Second
		w.pass(20*time.Second, nil)
		assert.Equal(t, 51*time.Second, w.get().Forecast.Horizon) // 1.2 × 30 s + 15 s
		c := config()
		c.MeasureStartup = false
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(time.Second, nil)
		assert.Equal(t, 45*time.Second, w.get().Forecast.Horizon) // 1.2 × 25 s + 15 s
	})
}

func TestReconfiguring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(20*time.Second, nil)
		c := config()
		c.Params.Threshold = math.NaN()
		_, err := w.forecaster.Set(key, c)
		require.ErrorContains(t, err, "threshold: NaN: must be")
		w.pass(time.Second, nil)
		assert.InDelta(t, 0.7, w.get().Threshold, 0, "a rejected configuration changes nothing")

		c = config()
		c.Params.Threshold = 0.5
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(time.Second, nil)
		require.NoError(t, w.get().Err, "another threshold keeps the samples")
		assert.InDelta(t, 2, w.get().Forecast.Required, 1e-6)

		c.Origin = "another metric"
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(time.Second, nil)
		assert.NotEmpty(t, w.reason(), "samples of another source are worthless")

		w.forecaster.Remove(key)
		_, ok := w.forecaster.Get(key)
		assert.False(t, ok)
		assert.Empty(t, w.forecaster.List("shop"))
		assert.Zero(t, testutil.CollectAndCount(&collector{w.forecaster}))
	})
}

func TestRunMakesForecastsOnceAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		f := New(time.Now, registry, Options{})
		feed, err := f.Set(key, config())
		require.NoError(t, err)
		pods := &fleet{}
		id := pods.start(time.Now())
		feed.SetPods(pods)
		go func() { _ = f.Run(t.Context()) }()
		for range 30 {
			time.Sleep(time.Second)
			feed.Append(id, pipeline.Sample{T: time.Now().UnixMilli(), V: 0.5})
		}
		synctest.Wait()
		runs := testutil.ToFloat64(f.telemetry.runs.WithLabelValues("ok")) +
			testutil.ToFloat64(f.telemetry.runs.WithLabelValues(string(snapshot.WarmingUp))) +
			testutil.ToFloat64(f.telemetry.runs.WithLabelValues(string(snapshot.WaitingForSamples)))
		assert.InDelta(t, 30, runs, 1)
		require.NoError(t, f.List("shop")[0].Err)
	})
}

// Forecasts are spread over a part of each second, and each is made once a second. The pauses are not work.
func TestForecastsAreSpreadOverASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(time.Now, prometheus.NewRegistry(), Options{})
		var feeds []*Feed
		for i := range 3 * chunkSize {
			c := config()
			c.TargetName = fmt.Sprintf("app-%02d", i)
			feed, err := f.Set(types.NamespacedName{Namespace: "shop", Name: c.TargetName}, c)
			require.NoError(t, err)
			feeds = append(feeds, feed)
		}
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		defer cancel()
		go func() { ended <- f.Run(ctx) }()
		for second := range 3 {
			round := time.Duration(second+2) * time.Second // the first second is waited for
			time.Sleep(time.Until(begun.Add(round + 900*time.Millisecond)))
			for i, feed := range feeds {
				want := round + time.Duration(i/chunkSize)*Period/4
				require.Equal(t, want, feed.Snapshot().At.Sub(begun), "%s", feed.key)
			}
		}
		var m dto.Metric
		require.NoError(t, f.telemetry.round.Write(&m))
		assert.Equal(t, uint64(3), m.GetHistogram().GetSampleCount())
		assert.Zero(t, m.GetHistogram().GetSampleSum())

		time.Sleep(time.Until(begun.Add(5*time.Second + time.Millisecond)))
		before := time.Now()
		cancel()
		require.NoError(t, <-ended)
		assert.Zero(t, time.Since(before), "the rest of a round is made at once")
	})
}

// A feed makes the farther forecast only if it is requested, and while someone says how long a node takes.
func TestFartherForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := time.Minute
		w := newWorld(t, 4, steady(2))
		w.feed.target.nodes = func() time.Duration { return nodes }
		beyond := func() time.Duration {
			w.pass(20*time.Second, nil)
			s := w.get()
			require.NoError(t, s.Err)
			if s.Forecast.NodeForecast.Horizon == 0 {
				return 0
			}
			return s.Forecast.NodeForecast.Horizon - s.Forecast.Horizon
		}
		w.fleet.startupTime, w.fleet.waited = 80*time.Second, 60*time.Second
		assert.Zero(t, beyond(), "not asked for")
		assert.Equal(t, 80*time.Second, w.get().StartupTime, "with the wait for a node")
		c := config()
		c.NodeForecast = true
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		assert.Equal(t, time.Minute, beyond())
		assert.Equal(t, 20*time.Second, w.get().StartupTime, "the farther forecast has the wait for a node")
		nodes = 0
		assert.Zero(t, beyond(), "no one says how long a node takes")
		c.NodeStartupTime = 3 * time.Minute
		_, err = w.forecaster.Set(key, c)
		require.NoError(t, err)
		assert.Equal(t, 3*time.Minute, beyond(), "the user says so")
	})
}

// runAll makes a round at once.
func (f *Forecaster) runAll() { f.round(func(float64) time.Duration { return 0 }) }
