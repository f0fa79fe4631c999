package nodepool

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/provider"
)

// inBubble runs a pool in the virtual time of a bubble, and ends it when do returns.
func inBubble(t *testing.T, prepare, do func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.clock.real = true
		prepare(r)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.pool.Run(ctx) }()
		synctest.Wait()
		do(r)
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, r.record().Owner, "the lease is given back")
		require.Empty(t, r.world.violations)
	})
}

// sleepFor lets time pass until everything due has happened. The locks tell the race detector that
// the pool may write what the test has read.
func (r *rig) sleepFor(d time.Duration) {
	for _, mu := range []*sync.Mutex{&r.mu, &r.world.mu, &r.notices.mu} {
		mu.Lock()
		//nolint:staticcheck // An empty section is all that it takes.
		mu.Unlock()
	}
	time.Sleep(d)
	synctest.Wait()
}

// ticks returns the start times of cycles, relative to the first.
func (r *rig) ticks() []time.Duration {
	out := make([]time.Duration, len(r.cycles))
	for i, at := range r.cycles {
		out[i] = at.Sub(r.cycles[0])
	}
	return out
}

func TestRunKeepsTheInterval(t *testing.T) {
	inBubble(t, func(*rig) {}, func(r *rig) {
		r.sleepFor(time.Minute)
		require.Equal(t, []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute}, r.ticks())
	})
}

func TestRunStepsWhileAnActionIsOpen(t *testing.T) {
	inBubble(t, func(r *rig) { r.spec.Plan.Min = 1 }, func(r *rig) {
		r.sleepFor(10 * time.Second)
		require.Equal(t, []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second,
			10 * time.Second}, r.ticks())
		r.sleepFor(2 * time.Minute)
		require.Equal(t, 1, r.count(journal.EventScaledUp))
		n := len(r.cycles)
		r.sleepFor(15 * time.Second)
		require.Len(t, r.cycles, n+1)
	})
}

func TestRunIsWoken(t *testing.T) {
	inBubble(t, func(*rig) {}, func(r *rig) {
		r.sleepFor(5 * time.Second)
		r.world.wakes <- struct{}{}
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 5 * time.Second}, r.ticks(), "at once")
		r.world.wakes <- struct{}{}
		r.sleepFor(100 * time.Millisecond)
		require.Len(t, r.cycles, 2, "not again within a second")
		r.sleepFor(time.Second)
		require.Len(t, r.cycles, 3)
	})
}

func TestRunStartsACycleWhenAPodIsDue(t *testing.T) {
	inBubble(t, func(*rig) {}, func(r *rig) {
		r.sleepFor(7 * time.Second)
		r.world.mu.Lock()
		r.pend(1)
		r.world.mu.Unlock()
		r.world.wakes <- struct{}{}
		r.sleepFor(30 * time.Second)
		require.Contains(t, r.ticks(), 37*time.Second)
		require.Equal(t, 1, r.world.launches)
	})
}

func TestRunReceivesInterruptions(t *testing.T) {
	inBubble(t, func(r *rig) { r.world.add(1) }, func(r *rig) {
		r.sleepFor(21 * time.Second)
		r.notices.mu.Lock()
		r.notices.messages = []provider.Message{{InstanceID: "i-old0", Kind: provider.MessageInterruption,
			Deadline: time.Now().Add(2 * time.Minute)}}
		r.notices.mu.Unlock()
		r.sleepFor(20 * time.Second)
		require.Equal(t, 1, r.count(journal.EventInterrupted))
		require.Len(t, r.notices.done, 1)
	})
}

func TestRunBacksOff(t *testing.T) {
	inBubble(t, func(r *rig) { r.world.listErr = errors.New("down") }, func(r *rig) {
		r.sleepFor(10 * time.Minute)
		ticks := r.ticks()
		require.Greater(t, len(ticks), 40)
		require.Less(t, len(ticks), 90)
		for i := range ticks[1:] {
			require.LessOrEqual(t, ticks[i+1]-ticks[i], 15*time.Second)
		}
		r.world.mu.Lock()
		r.world.listErr = nil
		r.world.mu.Unlock()
		r.sleepFor(time.Minute)
		require.NoError(t, r.last.Health)
	})
}

func TestRunHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.clock.real = true
		r.setSpec(func(s *config.Spec) { s.Plan.Min = 2 })
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		other := r.process("other", r.clock.now)
		go func() { ended <- r.pool.Run(first) }()
		synctest.Wait()
		go func() { ended <- other.Run(second) }()
		r.sleepFor(5 * time.Second)
		cancelFirst()
		require.NoError(t, <-ended)
		r.sleepFor(15 * time.Second)
		require.Equal(t, "other", r.record().Owner)
		r.sleepFor(time.Minute)
		require.Nil(t, r.record().Action)
		require.Equal(t, 2, r.world.launches)
		cancelSecond()
		require.NoError(t, <-ended)
	})
}

// The back-off after lasting errors delays neither an open drain nor a pod that is due.
func TestBackOffDelaysNothingUrgent(t *testing.T) {
	q := &brokenNotices{}
	setup := func(r *rig) {
		r.setSpec(func(s *config.Spec) { s.Interval = 5 * time.Minute })
		q.fakeNotices = r.notices
		q.down.Store(true)
		r.change(func(o *Options) { o.Notices = q })
	}
	gaps := func(r *rig, from int) {
		ticks := r.ticks()
		require.Greater(r, len(ticks), from+10)
		for i := from; i+1 < len(ticks); i++ {
			require.LessOrEqual(r, ticks[i+1]-ticks[i], stepsInTrouble*2*time.Second)
		}
	}
	t.Run("a drain", func(t *testing.T) {
		inBubble(t, func(r *rig) { setup(r); draining(r) }, func(r *rig) {
			r.sleepFor(4 * time.Minute)
			require.ErrorIs(r, r.last.Health, errDown)
			require.NotNil(r, r.record().Action)
			gaps(r, 2)
		})
	})
	t.Run("a notice", func(t *testing.T) {
		inBubble(t, setup, func(r *rig) {
			r.while(func() { r.world.listErr = errDown })
			r.sleepFor(25 * time.Minute)
			from := len(r.cycles)
			r.pool.Notify(provider.Message{InstanceID: "i-other", Kind: provider.MessageInterruption})
			r.sleepFor(10 * time.Minute)
			require.Less(r, len(r.cycles)-from, 200, "and it is not queried all the time")
			gaps(r, from)
		})
	})
	t.Run("a pod", func(t *testing.T) {
		inBubble(t, setup, func(r *rig) {
			r.sleepFor(25 * time.Minute)
			require.ErrorIs(r, r.last.Health, errDown)
			ticks := r.ticks()
			require.Greater(r, ticks[len(ticks)-1]-ticks[len(ticks)-2], time.Minute, "nothing is in a hurry")
			r.while(func() { r.pend(1) })
			r.pool.wake()
			r.sleepFor(r.spec.Plan.PendingFor + 5*time.Second)
			require.Equal(r, 1, r.world.launches)
		})
	})
}

func TestSpecThatCannotBeRead(t *testing.T) {
	r := wanting(t, 1)
	broken := r.pool.options.Spec
	r.pool.options.Spec = func() (config.Spec, error) { return config.Spec{}, errLost }
	r.tick()
	require.ErrorIs(t, r.health, errLost)
	require.Zero(t, r.record().Version, "an unknown configuration changes nothing")
	r.pool.options.Spec = broken
	r.tick()
	require.Equal(t, 1, r.world.launches)
	r.pool.options.Spec = func() (config.Spec, error) { return config.Spec{}, errLost }
	r.until("it goes on by the one before", 2*time.Minute, func() bool { return r.count(journal.EventScaledUp) == 1 })
	require.ErrorIs(t, r.health, errLost, "and reports it")
}
