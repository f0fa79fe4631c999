package workload

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newPod(t *testing.T, model Model) *Pod {
	t.Helper()
	p, err := NewPod("test/pod", model, 1)
	require.NoError(t, err)
	return p
}

// arrivals sends count requests, one every interval, and returns what came of each and after how long.
func arrivals(p *Pod, count int, every, patience time.Duration) (errs []error, took []time.Duration) {
	errs, took = make([]error, count), make([]time.Duration, count)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			begin := time.Now()
			errs[i] = p.Do(ctx)
			took[i] = time.Since(begin)
		})
		pass(every)
	}
	all.Wait()
	return errs, took
}

// pass lets time go by, in a bubble of synctest only.
func pass(d time.Duration) { <-time.After(d) }

func TestPodUtilizationFollowsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, Model{ServiceTime: 20 * ms, QueueLimit: 10})
		assert.Zero(t, p.Usage().Utilization)

		errs, took := arrivals(p, 60, time.Second/30, time.Second)
		for i := range errs {
			require.NoError(t, errs[i])
			assert.Equal(t, 20*ms, took[i])
		}
		usage := p.Usage()
		assert.InDelta(t, 0.6, usage.Utilization, 1e-6)
		assert.Equal(t, 1200*ms, usage.Busy)
		assert.EqualValues(t, 60, usage.Received)
		assert.EqualValues(t, 60, usage.Served)

		pass(2 * time.Second)
		assert.Zero(t, p.Usage().Utilization)
	})
}

func TestPodUtilizationIsThatOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, Model{ServiceTime: 400 * ms, QueueLimit: 10})
		go func() { _ = p.Do(context.Background()) }()
		synctest.Wait()
		pass(100 * ms)
		assert.InDelta(t, 0.1, p.Usage().Utilization, 1e-9, "a request in service counts as far as it has come")
		assert.Equal(t, 1, p.Usage().Length)
		pass(400 * ms)
		assert.InDelta(t, 0.4, p.Usage().Utilization, 1e-9)
		pass(700 * ms)
		assert.InDelta(t, 0.2, p.Usage().Utilization, 1e-9, "half of it is more than a second ago")
	})
}

func TestSaturatedPodIsBusyThroughout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, Model{ServiceTime: 20 * ms, Jitter: 0.5, QueueLimit: 1000})
		var all sync.WaitGroup
		all.Go(func() { arrivals(p, 300, 10*ms, 500*ms) })
		pass(2500 * ms)
		usage := p.Usage()
		assert.Equal(t, 1.0, usage.Utilization)
		assert.Equal(t, 2500*ms, usage.Busy)
		assert.InDelta(t, 2.5/0.02, float64(usage.Served), 10, "a server of 20 ms works off 50 a second")
		assert.InDelta(t, 100*0.5, usage.Length, 10, "of 100 a second, those of the last 500 ms are still there")

		all.Wait()
		pass(time.Second)
		usage = p.Usage()
		assert.EqualValues(t, 300, usage.Served+usage.Abandoned)
		assert.Zero(t, usage.Length)
	})
}

func TestPodRefusesBeyondItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPod(t, Model{ServiceTime: 100 * ms, QueueLimit: 3})
		errs, _ := arrivals(p, 5, 0, time.Minute)
		refused := 0
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, ErrQueueFull)
				refused++
			}
		}
		assert.Equal(t, 2, refused)
		assert.EqualValues(t, 2, p.Usage().Rejected)
		assert.Equal(t, 300*ms, p.Usage().Busy)
	})
}

func TestServiceTimesFollowSeedAndName(t *testing.T) {
	busy := func(name string, seed uint64) (total time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			p, err := NewPod(name, DefaultModel(), seed)
			require.NoError(t, err)
			for range 1000 {
				require.NoError(t, p.Do(t.Context()))
			}
			total = p.Usage().Busy
		})
		return total
	}
	one := busy("a", 1)
	assert.InDelta(t, 20, one.Seconds(), 0.6, "20 ms on average")
	assert.Equal(t, one, busy("a", 1))
	assert.NotEqual(t, one, busy("b", 1))
	assert.NotEqual(t, one, busy("a", 2))
}

func TestModelValidate(t *testing.T) {
	require.NoError(t, DefaultModel().Validate())
	for name, change := range map[string]func(*Model){
		"service time": func(m *Model) { m.ServiceTime = 0 },
		"jitter":       func(m *Model) { m.Jitter = 1.1 },
		"queue limit":  func(m *Model) { m.QueueLimit = 0 },
	} {
		m := DefaultModel()
		change(&m)
		_, err := NewPod("p", m, 1)
		require.ErrorContains(t, err, name)
	}
}
