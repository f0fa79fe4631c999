package share

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ending is the time that a holder takes to end a lease that was called back.
const ending = 10 * time.Millisecond

// hog takes leases of a tenant until the context ends: it holds each as long as it may, and lets
// some of them grow.
func hog(ctx context.Context, p *Pool, tenant string, random *rand.Rand, hold time.Duration) {
	for ctx.Err() == nil {
		lease, recall := context.WithCancel(ctx)
		if hold > 0 {
			lease, recall = context.WithTimeout(ctx, hold)
		}
		l := p.Lease(tenant, recall)
		for range 1 + random.IntN(3) {
			if l.Take(lease, 1+random.Int64N(max(1, p.Total()/4))) != nil {
				break
			}
			time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
		}
		<-lease.Done()
		time.Sleep(ending)
		l.End()
		recall()
	}
}

// A tenant gets its equal part of slots and of bytes at once, whatever the others do.
func TestEqualPartIsThereAtOnce(t *testing.T) {
	const seeds = 60
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, seed))
			total, hogs := int64(8+random.IntN(200)), 1+random.IntN(6)
			p := NewPool(total, 0)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i := range hogs {
				for range 1 + random.IntN(40) {
					own := rand.New(rand.NewPCG(seed, random.Uint64()))
					all.Go(func() { hog(ctx, p, fmt.Sprint("hog-", i), own, 0) })
				}
			}
			part := total / int64(hogs+1)
			var longest time.Duration
			for range 20 {
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				longest = max(longest, takeAll(t, p, part, random))
			}
			// Each lease that is called back returns 1 at least, once its holder has noticed and
			// ended it, and that goes to a tenant that has no more than the victim.
			assert.LessOrEqual(t, longest, time.Duration(total)*(ending+5*time.Millisecond),
				"seed %d: %d of %d, %d others", seed, part, total, hogs)
			assert.LessOrEqual(t, p.InUse(), total)
			cancel()
			all.Wait()
			assert.Zero(t, p.InUse(), "seed %d", seed)
			assert.Empty(t, p.tenants, "seed %d", seed)
		})
	}
}

// takeAll takes a part by leases of random sizes at the same time, and returns how long that took.
func takeAll(t *testing.T, p *Pool, part int64, random *rand.Rand) time.Duration {
	began := time.Now()
	var wait sync.WaitGroup
	var leases []*Lease
	for part > 0 {
		n := 1 + random.Int64N(part)
		part -= n
		l := p.Lease("victim", func() { t.Error("the victim's part was called back") })
		leases = append(leases, l)
		wait.Go(func() { assert.NoError(t, l.Take(t.Context(), n)) })
	}
	wait.Wait()
	took := time.Since(began)
	for _, l := range leases {
		l.End()
	}
	return took
}

// With more tenants than slots each waits for one lease of every other at most.
func TestTenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, hogs, hold = 8, 40, time.Second
		p := NewPool(slots, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range hogs {
			for n := range 5 {
				all.Go(func() { hog(ctx, p, fmt.Sprint("hog-", i), rand.New(rand.NewPCG(uint64(i), uint64(n))), hold) })
			}
		}
		time.Sleep(10 * time.Second)
		for range 20 {
			began := time.Now()
			l := p.Lease("victim", nil)
			require.NoError(t, l.Take(ctx, 1))
			assert.LessOrEqual(t, time.Since(began), (hogs/slots+1)*(hold+ending))
			l.End()
		}
		cancel()
		all.Wait()
		assert.Zero(t, p.InUse())
	})
}

// Leases that all wait for more do not wait for each other for ever.
func TestGrowingLeasesGoOn(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(2, seed))
			p := NewPool(100, 0)
			var all sync.WaitGroup
			var done atomic.Int64
			for i := range 50 {
				tenants := 1 + seed%4
				size := 1 + random.Int64N(int64(100/tenants))
				all.Go(func() {
					for !grow(t.Context(), p, fmt.Sprint(uint64(i)%tenants), size) {
					}
					done.Add(1)
				})
			}
			all.Wait()
			assert.EqualValues(t, 50, done.Load())
			assert.Zero(t, p.InUse())
		})
	}
}

// grow takes a size one by one, and reports whether it got all of it.
func grow(ctx context.Context, p *Pool, tenant string, size int64) bool {
	ctx, recall := context.WithCancel(ctx)
	l := p.Lease(tenant, recall)
	defer l.End()
	for range size {
		if l.Take(ctx, 1) != nil {
			time.Sleep(ending)
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return l.Fix()
}

func TestTakeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2, 1)
		assert.ErrorIs(t, p.Lease("a", nil).Take(t.Context(), 3), ErrTooMuch)
		l := p.Lease("a", nil)
		require.NoError(t, l.Take(t.Context(), 2))
		assert.ErrorIs(t, l.Take(t.Context(), 1), ErrTooMuch)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waiting := p.Lease("a", nil)
		go func() {
			time.Sleep(time.Millisecond)
			assert.ErrorIs(t, p.Lease("a", nil).Take(t.Context(), 1), ErrQueueFull)
		}()
		assert.ErrorIs(t, waiting.Take(ctx, 1), context.DeadlineExceeded)
		l.End()
		l.End()
		assert.ErrorIs(t, l.Take(t.Context(), 1), context.Canceled)
		assert.NoError(t, waiting.Take(t.Context(), 1), "it may ask again")
		waiting.End()
		assert.Empty(t, p.tenants)
	})
}

func TestEndEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2, 0)
		holder, waiting, growing := p.Lease("a", nil), p.Lease("b", nil), p.Lease("c", nil)
		require.NoError(t, holder.Take(t.Context(), 1))
		require.NoError(t, growing.Take(t.Context(), 1))
		for _, l := range []*Lease{waiting, growing} {
			result := make(chan error)
			go func() { result <- l.Take(t.Context(), 1) }()
			synctest.Wait()
			l.End()
			require.ErrorIs(t, <-result, context.Canceled, "it got nothing")
		}
		holder.End()
		assert.Zero(t, p.InUse())
		assert.Empty(t, p.tenants)
		assert.Zero(t, p.waiting)
	})
}

// A tenant whose limiter is dropped for being as good as new begins again with a whole burst: it
// must not have used any.
func TestRateCountsWhatItsSweepMeets(t *testing.T) {
	for range 20 {
		r, now := NewRate(1, 1), time.Unix(0, 0)
		for i := range 200 {
			require.Zero(t, r.Reserve(fmt.Sprint(i), now))
			require.NotZero(t, r.Reserve(fmt.Sprint(i), now), "the second of %d", i)
		}
	}
}

func TestRateOfATenant(t *testing.T) {
	r, now := NewRate(10, 2), time.Unix(0, 0)
	for _, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
		assert.Equal(t, want, r.Reserve("a", now))
	}
	assert.Zero(t, r.Reserve("b", now))
	for i := range 10_000 {
		now = now.Add(time.Millisecond)
		r.Reserve(fmt.Sprint(i), now)
	}
	assert.Less(t, len(r.limiters), 1000, "unused ones are dropped")
}

func TestOrderOfTurns(t *testing.T) {
	order := func(turns *Turns, items string) string {
		list := strings.Split(items, "")
		Order(turns, list, strings.ToLower)
		return strings.Join(list, "")
	}
	turns := &Turns{}
	assert.Equal(t, "abcaBaa", order(turns, "aaabBac"))
	turns.Take("a")
	assert.Equal(t, "bcaBaa", order(turns, "aabBac"))
	turns.Take("b")
	turns.Take("c")
	assert.Equal(t, "abcda", order(turns, "dabca"), "those that wait already come first")
	assert.Empty(t, order(turns, ""))
	assert.Empty(t, turns.last)
}

// Tenants that come and go do not overtake one that stays.
func TestTurnsOfTenantsThatComeAndGo(t *testing.T) {
	const newcomers, served = 10, 4
	turns := &Turns{}
	last := 0
	for check := range 100 {
		var list []string
		for i := range newcomers {
			list = append(list, fmt.Sprint(check%2, "-", i))
		}
		list = append(list, "victim")
		Order(turns, list, func(s string) string { return s })
		for _, tenant := range list[:served] {
			turns.Take(tenant)
			if tenant == "victim" {
				last = check
			}
		}
		require.LessOrEqual(t, check-last, 1+newcomers/served)
	}
}

func TestLevelOfDemands(t *testing.T) {
	assert.Equal(t, int64(5), Level(100, []int64{1, 5, 3}))
	assert.Equal(t, int64(48), Level(100, []int64{90, 4, 60}))
	assert.Equal(t, int64(10), Level(10, nil))
	random := rand.New(rand.NewPCG(3, 3))
	for range 10_000 {
		total, demands := random.Int64N(1000), make([]int64, 1+random.IntN(10))
		for i := range demands {
			demands[i] = random.Int64N(400)
		}
		level, sum, part := Level(total, demands), int64(0), total/int64(len(demands))
		for _, d := range demands {
			sum += min(d, level)
		}
		require.LessOrEqual(t, sum, total, "%d %v", total, demands)
		require.GreaterOrEqual(t, level, min(part, slices.Max(demands)), "%d %v", total, demands)
	}
}
