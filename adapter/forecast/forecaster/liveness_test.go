package forecaster

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
)

// stuck is a fleet that does not answer until it is released.
type stuck struct {
	fleet
	release chan struct{}
}

func (s *stuck) Instances(since time.Time) []podtracker.Instance {
	<-s.release
	return s.fleet.Instances(since)
}

// probed calls Alive as a kubelet does for a while, and returns how long it was right.
func probed(f *Forecaster, every, span time.Duration) (alive time.Duration) {
	for begun := time.Now(); time.Since(begun) < span; {
		time.Sleep(every) // virtual time
		if f.Alive() != nil {
			return time.Since(begun)
		}
	}
	return span
}

func TestAliveFailsWhereForecastsHang(t *testing.T) {
	for name, every := range map[string]time.Duration{"as the manifests probe": 10 * time.Second,
		"often": 100 * time.Millisecond, "seldom": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := New(time.Now, prometheus.NewRegistry(), Options{})
				feed, err := f.Set(key, config())
				require.NoError(t, err)
				assert.Equal(t, time.Hour, probed(f, every, time.Hour), "it waits for the cluster")
				go func() { _ = f.Run(t.Context()) }()
				assert.Equal(t, time.Hour, probed(f, every, time.Hour), "there is no sample at all")
				pods := &stuck{release: make(chan struct{})}
				feed.SetPods(pods)
				hung := probed(f, every, time.Hour)
				assert.InDelta(t, hangLimit, hung, float64(2*every+Period))
				assert.ErrorContains(t, f.Alive(), "the forecaster hangs: no forecast was made for 3m")
				assert.Error(t, f.Ready())
				close(pods.release)
				assert.Equal(t, time.Hour, probed(f, every, time.Hour), "it has gone on")
			})
		})
	}
}

// A process that was stopped finds its last round long ago. It needs time to make another.
func TestAliveAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused atomic.Int64
		f := New(func() time.Time { return time.Now().Add(time.Duration(paused.Load())) },
			prometheus.NewRegistry(), Options{})
		feed, err := f.Set(key, config())
		require.NoError(t, err)
		go func() { _ = f.Run(t.Context()) }()
		require.Equal(t, time.Minute, probed(f, 10*time.Second, time.Minute))
		pods := &stuck{release: make(chan struct{})} // what the process does while it is paused: nothing
		feed.SetPods(pods)
		require.Equal(t, 10*time.Second, probed(f, 10*time.Second, 10*time.Second))
		paused.Store(int64(8 * time.Hour))
		require.NoError(t, f.Alive())
		assert.Equal(t, 2*time.Minute, probed(f, 10*time.Second, 2*time.Minute))
		close(pods.release)
		assert.Equal(t, time.Hour, probed(f, 10*time.Second, time.Hour))
	})
}

// slow is a fleet that takes minutes to answer.
type slow struct{ fleet }

func (s *slow) Instances(since time.Time) []podtracker.Instance {
	time.Sleep(2 * time.Minute) // virtual time
	return s.fleet.Instances(since)
}

// A round that takes minutes is slow, and a restart makes nothing faster.
func TestAliveWhileARoundIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(time.Now, prometheus.NewRegistry(), Options{})
		for _, name := range []string{"a", "b", "c"} {
			metric := key
			metric.Name = name
			feed, err := f.Set(metric, config())
			require.NoError(t, err)
			feed.SetPods(&slow{})
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		assert.Equal(t, time.Hour, probed(f, 10*time.Second, time.Hour))
		cancel()
		require.NoError(t, <-ended)
	})
}

// overload runs the forecaster until it is ready, and then has a target's pods hold up its round until end is called.
func (w *world) overload(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.forecaster.Run(ctx) }()
	time.Sleep(2 * time.Second) // virtual time
	require.NoError(t, w.forecaster.Ready())
	pods := &stuck{release: make(chan struct{})}
	other := key
	other.Name = "other"
	feed, err := w.forecaster.Set(other, config())
	require.NoError(t, err)
	feed.SetPods(pods)
	return func() {
		close(pods.release)
		cancel()
		require.NoError(t, <-ended)
	}
}

// Under overload a round takes longer than the forecaster may stall. Its snapshots are served
// meanwhile, for as long as they are valid.
func TestReadyUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		w.pass(30*time.Second, nil)
		end := w.overload(t)
		valid := time.Duration(0)
		for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(time.Second) { // virtual time
			s := w.get()
			usable := s.Usable(time.Now())
			require.Equal(t, usable, w.forecaster.Ready() == nil, "after %s", time.Since(begun))
			if usable {
				valid = time.Since(begun)
			}
		}
		assert.Greater(t, valid, 2*stallLimit)
		end()
	})
}

// TestOneLastingSnapshotDoesNotKeepAStalledForecasterReady has one owner say that samples may be a year old.
func TestOneLastingSnapshotDoesNotKeepAStalledForecasterReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, steady(1))
		c := config()
		c.Params.StaleAfter = 8760 * time.Hour
		_, err := w.forecaster.Set(key, c)
		require.NoError(t, err)
		w.pass(30*time.Second, nil)
		end := w.overload(t)
		time.Sleep(25 * time.Second) // virtual time
		require.NoError(t, w.forecaster.Ready(), "under overload it counts for a while")
		time.Sleep(10 * time.Second) // virtual time
		assert.ErrorContains(t, w.forecaster.Ready(), "no forecast for ")
		end()
	})
}

func TestValidityAfterTheClockWasSetBack(t *testing.T) {
	f := New(time.Now, prometheus.NewRegistry(), Options{})
	now := time.Now()
	f.readiness.extendValidity(now.Add(time.Hour), now)
	assert.True(t, f.readiness.anyValid(now.Add(maxCredit)))
	assert.False(t, f.readiness.anyValid(now.Add(maxCredit+time.Second)))
	before := now.Add(-time.Hour)
	assert.False(t, f.readiness.anyValid(before))
	f.readiness.extendValidity(before.Add(time.Second), before)
	assert.True(t, f.readiness.anyValid(before))
	assert.False(t, f.readiness.anyValid(before.Add(2*time.Second)))
}
