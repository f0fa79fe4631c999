package forecaster

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/pipeline"
)

// tenants is PredictedMetrics with pods of their own, all of which are read each second.
type tenants struct {
	*Forecaster
	pods map[types.NamespacedName]*fleet
}

func (w *tenants) create(t *testing.T, namespace, name string, pods int) {
	t.Helper()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	c := config()
	c.Created, c.TargetName = time.Now(), name
	feed, err := w.Set(key, c)
	require.NoError(t, err)
	w.pods[key] = &fleet{}
	feed.SetPods(w.pods[key])
	feed.SetReplicas(pods)
	w.grow(key, pods)
	time.Sleep(time.Second)
}

func (w *tenants) grow(key types.NamespacedName, pods int) {
	for range pods {
		w.pods[key].start(time.Now())
	}
}

func (w *tenants) pass(seconds int) {
	for range seconds {
		time.Sleep(time.Second)
		for key, pods := range w.pods {
			for _, i := range pods.all {
				w.feeds.get(key).Append(i.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: 0.5})
			}
		}
		w.runAll()
	}
}

func (w *tenants) err(namespace, name string) error {
	s, _ := w.Get(types.NamespacedName{Namespace: namespace, Name: name})
	return s.Err
}

// Namespaces that do not fit into the memory together share it: what is older goes on, and the
// newest are refused with the numbers. A namespace that keeps little loses nothing.
func TestNamespacesFitIntoMemoryTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config()
		window := int64(c.Params.WindowFor(c.Params.StartupTime) / c.every()) // samples of a pod
		w := &tenants{New(time.Now, prometheus.NewRegistry(), Options{MaxSamples: 17 * window}),
			map[types.NamespacedName]*fleet{}}
		w.create(t, "small", "first", 2)
		for _, namespace := range []string{"bank", "casino", "den"} {
			w.create(t, namespace, "first", 4)
			w.create(t, namespace, "second", 6)
		}
		w.pass(20)
		require.NoError(t, w.err("small", "first"))
		for _, namespace := range []string{"bank", "casino", "den"} {
			require.NoError(t, w.err(namespace, "first"))
			require.ErrorContains(t, w.err(namespace, "second"),
				fmt.Sprintf("the forecast takes the memory of %d samples, next to that of %d "+
					"for older PredictedMetrics in the namespace: must be at most %d together, its share of the %d that fit into the memory limit", 6*window, 4*window, 5*window, 17*window))
		}
		assert.True(t, w.feeds.get(types.NamespacedName{Namespace: "bank", Name: "second"}).Refuses(),
			"nothing is read for it")
	})
}

// What a large forecast is made in is memory too, about as much as its samples.
func TestLargeForecastCountsWhatItIsMadeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, window = 60, 36_000 // more than largeRun together
		f := New(time.Now, prometheus.NewRegistry(), Options{MaxSamples: 2*pods*window - 1})
		w := &tenants{f, map[types.NamespacedName]*fleet{}}
		w.create(t, "bank", "first", pods)
		key := types.NamespacedName{Namespace: "bank", Name: "first"}
		c := w.feeds.get(key).settings.Load().Config
		c.Params.Interval, c.Params.Window, c.Interval = 100*time.Millisecond, time.Hour, 100*time.Millisecond
		_, err := w.Set(key, c)
		require.NoError(t, err)
		w.pass(1)
		require.ErrorContains(t, w.err("bank", "first"),
			fmt.Sprintf("takes the memory of %d samples, next to that of 0", 2*pods*window))
		w.budget.maxSamples++
		w.pass(1)
		assert.NotContains(t, w.err("bank", "first").Error(), "memory")
	})
}

// A PredictedMetric that is refused for what it kept follows the message: with a shorter window it
// is served. Without one, as where a sender has sent too often, it is tried again once nothing of
// that would be left.
func TestRefusedForWhatItKept(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"shorter window": func(c *Config) { c.Params.Window = c.Params.Window / 4 },
		"no change":      func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &tenants{New(time.Now, prometheus.NewRegistry(), Options{MaxSamples: 600}),
					map[types.NamespacedName]*fleet{}}
				w.create(t, "bank", "first", 2)
				key := types.NamespacedName{Namespace: "bank", Name: "first"}
				flood := func(seconds int) {
					for range 10 * seconds {
						time.Sleep(100 * time.Millisecond)
						for _, i := range w.pods[key].all {
							w.feeds.get(key).Append(i.ID, pipeline.Sample{T: time.Now().UnixMilli(), V: 0.5})
						}
					}
					w.runAll()
				}
				for range 60 {
					flood(1)
				}
				require.ErrorContains(t, w.err("bank", "first"), "must be at most 600 together")
				c := w.feeds.get(key).settings.Load().Config
				window := int(c.Params.WindowFor(c.Params.StartupTime).Seconds())
				change(&c)
				_, err := w.Set(key, c)
				require.NoError(t, err)
				wait := 2
				if name == "no change" {
					wait = window + 2
				}
				w.pass(wait + 20)
				assert.NoError(t, w.err("bank", "first"))
			})
		})
	}
}

func TestNamespaceHasABudgetOfReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &tenants{New(time.Now, prometheus.NewRegistry(), Options{MaxReadings: 10_000}),
			map[types.NamespacedName]*fleet{}}
		w.create(t, "shop", "z-first", 4)
		w.create(t, "shop", "second", 6)
		w.create(t, "bank", "first", 10)
		w.pass(20)
		require.NoError(t, errors.Join(w.err("shop", "z-first"), w.err("shop", "second"), w.err("bank", "first")))

		w.create(t, "shop", "a-third", 1)
		w.pass(20)
		assert.NoError(t, errors.Join(w.err("shop", "z-first"), w.err("shop", "second"), w.err("bank", "first")))
		var refused *snapshot.Unavailable
		require.ErrorAs(t, w.err("shop", "a-third"), &refused)
		assert.Equal(t, snapshot.InvalidSpec, refused.Reason)
		assert.Equal(t, "spec.sampleInterval: the forecast would keep 1000 readings (1000 of each of 1 pods), next to 10000 for older PredictedMetrics in the namespace: "+
			"must be at most 10000 together; a longer interval of the source needs fewer", refused.Message)

		w.grow(types.NamespacedName{Namespace: "shop", Name: "z-first"}, 1)
		w.pass(20)
		assert.NoError(t, w.err("shop", "z-first"), "the oldest goes on as its target grows")
		require.ErrorContains(t, w.err("shop", "second"), "6000 readings (1000 of each of 6 pods), next to 5000")
		assert.NoError(t, w.err("shop", "a-third"), "fits now")
		second := w.feeds.get(types.NamespacedName{Namespace: "shop", Name: "second"})
		assert.Empty(t, second.predictor.readings.series, "what is refused keeps nothing")
		assert.Empty(t, second.inbox.arrivals)

		gone := types.NamespacedName{Namespace: "shop", Name: "z-first"}
		w.Remove(gone)
		delete(w.pods, gone)
		w.pass(2)
		require.ErrorAs(t, w.err("shop", "second"), &refused)
		assert.Equal(t, snapshot.WarmingUp, refused.Reason, "starts again where there is room again")
		w.pass(20)
		assert.NoError(t, w.err("shop", "second"))
	})
}

// A window and an interval of one's own choice count, also with a source that reads more often than forecasts look.
func TestReadingsOfAWindow(t *testing.T) {
	c := config()
	assert.Equal(t, minReadings, c.readings(90*time.Second))
	assert.Equal(t, 3600, c.readings(time.Hour))
	c.Interval = 100 * time.Millisecond
	assert.Equal(t, 36_000, c.readings(time.Hour))
	c.Interval, c.Params.Interval = 15*time.Second, 500*time.Millisecond
	assert.Equal(t, 7200, c.readings(time.Hour))
}

// One tenant's long forecast must not hold up the readers of samples and the reconciler, who serve all.
func TestNobodyWaitsForAForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, steady(1))
		slow := &stuck{*w.fleet, make(chan struct{})}
		w.feed.SetPods(slow)
		go w.feed.run(time.Now(), &workspace{})
		synctest.Wait()
		w.feed.Append("pod-0", pipeline.Sample{T: time.Now().UnixMilli(), V: 1})
		w.feed.Fail("pod-0", errors.New("refused"))
		w.feed.SourceFailed(errors.New("down"))
		w.feed.SetReplicas(2)
		w.feed.LoseReplicas()
		_, err := w.forecaster.Set(key, config())
		require.NoError(t, err)
		_ = w.get()
		close(slow.release)

		w.forecaster.runAll()
		s := w.get()
		assert.EqualError(t, s.SourceErr, "down")
		assert.False(t, s.ReplicasLost.IsZero())
		require.Len(t, s.Failing, 1)
		assert.EqualError(t, s.Failing[0].Err, "refused")
	})
}

func TestLargeForecastsShareAWorkspace(t *testing.T) {
	w := newWorkspaces()
	var large, again, small *workspace
	w.run(largeRun, func(s *workspace) { large = s })
	w.run(2*largeRun, func(s *workspace) { again = s })
	w.run(largeRun-1, func(s *workspace) { small = s })
	assert.Same(t, large, again)
	assert.NotSame(t, large, small)
	w.endRound()
	assert.NotNil(t, w.large, "kept for the next round")
	w.endRound()
	assert.Nil(t, w.large, "no longer needed")
}
