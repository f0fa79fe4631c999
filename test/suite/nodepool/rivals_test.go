package nodepool

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const rivalRounds = 40

// TestRivals has two processes tick at once, their calls in any order, while time passes between
// calls: leases are lost in the middle of actions. Neither launches for a slot that the other has
// launched for, and no work is lost. A run depends on nothing but its seed, the last word of the
// name of the subtest.
func TestRivals(t *testing.T) { testRivals(t, 0, 1) }

func testRivals(t *testing.T, from, to uint64) {
	for _, in := range places() {
		for _, sc := range progressing() {
			for seed := from; seed < to; seed++ {
				t.Run(fmt.Sprintf("%s %s %d", in.name, sc.name, seed), func(t *testing.T) {
					t.Parallel()
					s := newStage(t, sc, in.make)
					rival(s, seed, 0)
					s.finish()
					s.check()
				})
			}
		}
	}
}

// TestRivalsWithAWrongClock has the clock of one of them be an hour ahead or behind, in turns;
// TestRivalsWithTheOtherClock has the other one. What waits for a time may then be over at once, or
// start anew; but nothing is launched twice, and nothing is terminated with pods on it.
func TestRivalsWithAWrongClock(t *testing.T) { testWrongClock(t, 0) }

func testWrongClock(t *testing.T, turn int) {
	for _, in := range places() {
		for _, sc := range progressing() {
			skew := []time.Duration{-time.Hour, time.Hour}[turn%2]
			turn++
			t.Run(fmt.Sprintf("%s %s %s", in.name, sc.name, skew), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, sc, in.make)
				rival(s, 1, skew)
				s.finish()
				s.checkCalls()
				assert.Empty(t, s.violations)
			})
		}
		turn++ // what one place has with a clock that is behind, the next has with one that is ahead
	}
}

// progressing are the scenarios that depend on nothing being done between two calls.
func progressing() []scenario {
	return []scenario{scaleUp(), scaleDown(), interruption(), joinFailure()}
}

// rival has two processes work at the same time, one of them with a clock that is wrong by skew.
func rival(s *stage, seed uint64, skew time.Duration) {
	random := rand.New(rand.NewPCG(seed, 7))
	order := newTurns(s.clock, rand.New(rand.NewPCG(seed, 8)), func() time.Duration {
		// Mostly none, rarely more than a lease lasts: a tick makes some twenty calls.
		switch n := random.IntN(120); {
		case n == 0:
			return 70 * time.Second
		case n == 1:
			return 30 * time.Second
		case n < 6:
			return 3 * time.Second
		}
		return 0
	})
	defer func() { s.t.Logf("the lease was taken %d times", s.leaders.Load()) }()
	both := []*process{s.start("one", nil, 0), s.start("two", nil, skew)}
	for _, p := range both {
		p.wire.turn = order.wait
	}
	for range rivalRounds {
		var ticks sync.WaitGroup
		for range both {
			order.begin()
		}
		for _, p := range both {
			ticks.Go(func() {
				defer order.end()
				p.tick(s.t.Context())
			})
		}
		ticks.Wait()
		s.step(time.Duration(random.IntN(8)) * time.Second)
		s.checkCalls()
		requireAtMost(s, int(s.scenario.spec.Max)+s.scenario.launch)
	}
}

// finish has a third process bring the pool to rest.
func (s *stage) finish() {
	s.t.Helper()
	p := s.start("three", nil, 0)
	require.True(s.t, s.drive(p))
	require.True(s.t, s.linger(p))
}

func requireAtMost(s *stage, most int) {
	s.t.Helper()
	require.LessOrEqual(s.t, len(s.living()), max(most, s.scenario.workers), "instances that live")
}
