package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
)

func TestRequestsWarmUp(t *testing.T) {
	said := replay(t, newSet(t, defaults()), Requests, 5, func(int, time.Time) Observation {
		return Observation{Workers: workers(3, 2000), Expected: 3}
	})
	for _, s := range said[:3] {
		assert.False(t, s.Known)
		assert.Equal(t, errWarmingUp.Error(), s.Err)
	}
	for _, s := range said[3:] {
		assert.Equal(t, plan.Signal{
			Name: Requests, WithPending: true, Known: true, Needs: 3, Now: 0.5, Predicted: 0.5, Threshold: 0.7, Margin: 0.3, Horizon: 144 * time.Second,
			Want: 3, Fits: 3,
		}, s)
	}
}

// A pod that is pending, is placed, is evicted as its node is drained, and pends again is one demand all the time.
func TestDemandDoesNotChangeAsPodsMove(t *testing.T) {
	unready := func(n cluster.Node) cluster.Node { n.Ready = false; return n }
	later := func(n cluster.Node, now time.Time) cluster.Node { n.ReadySince = now; return n }
	const moving = 2400 // of 12,000 milli-CPU on six nodes
	tests := map[string]func(i int, others []cluster.Node) Observation{
		"pending, then on a node that was there": func(i int, others []cluster.Node) Observation {
			if i < 20 {
				return Observation{Workers: append(others, worker("x", began.Add(-time.Hour), 0)), Demand: nodes(float64(moving) / node)}
			}
			return Observation{Workers: append(others, worker("x", began.Add(-time.Hour), moving))}
		},
		"pending, then on a node that has just come": func(i int, others []cluster.Node) Observation {
			if i < 20 {
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			}
			return Observation{Workers: append(others, worker("x", began.Add(20*interval-7*time.Second), moving))}
		},
		"on a node that leaves, then on another": func(i int, others []cluster.Node) Observation {
			switch x := worker("x", began.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: others, Leaving: []cluster.Node{x}}
			case i < 25:
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			default:
				return Observation{Workers: append(others, worker("y", began.Add(25*interval-time.Second), moving))}
			}
		},
		"on a node that is not Ready for a while": func(i int, others []cluster.Node) Observation {
			switch x := worker("x", began.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: append(others, unready(x))}
			default:
				return Observation{Workers: append(others, later(x, began.Add(20*interval-time.Second)))}
			}
		},
		"on a node that has not been Ready between two looks": func(i int, others []cluster.Node) Observation {
			x := worker("x", began.Add(-time.Hour), moving)
			if i >= 20 {
				x = later(x, began.Add(20*interval-4*time.Second))
			}
			return Observation{Workers: append(others, x)}
		},
	}
	for name, at := range tests {
		t.Run(name, func(t *testing.T) {
			said := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
				o := at(i, workers(5, 2400))
				o.Expected = 6
				return o
			})
			for i, s := range said[5:] {
				require.True(t, s.Known, s.Err)
				require.Equal(t, 6, s.Want, i)
				require.InDelta(t, 0.6, s.Predicted, 1e-9, i)
				require.Equal(t, 7, s.Fits, i)
			}
		})
	}
}

// Many looks within an interval, as while an action is open, change nothing but how much is kept.
func TestLooksInQuickSuccession(t *testing.T) {
	s := newSet(t, defaults())
	for i := range 1000 {
		now := began.Add(time.Duration(i) * 2 * time.Second)
		o := Observation{Now: now, Workers: workers(5, 2400), Expected: 6}
		switch {
		case i%100 < 30:
			o.Demand = nodes(0.6)
		case i%100 < 50:
			o.Workers = append(o.Workers, worker("x", began.Add(-time.Hour), 2400))
		default:
			o.Leaving = []cluster.Node{worker("x", began.Add(-time.Hour), 2400)}
		}
		if said := named(t, s.Observe(t.Context(), o), Requests); i > 30 {
			assert.InDelta(t, 0.6, said.Predicted, 1e-9, i)
		}
	}
	ledger := s.voices[0].(*requests).ledger
	assert.LessOrEqual(t, len(ledger.times), 160)
	assert.LessOrEqual(t, len(s.roster.spells), 16)
}

// rise is what pods request of four nodes, from 40% to twice what they have.
func rise(now time.Time) float64 {
	return 4 * (0.4 + 1.6*min(1, max(0, now.Sub(began).Minutes()-10)/30))
}

// Pods come at a steady rate; those that do not fit pend.
func TestRequestsAskAheadOfARise(t *testing.T) {
	asks := func(disabled bool) int {
		o := defaults()
		o.Forecast.Disabled = disabled
		said := replay(t, newSet(t, o), Requests, 160, func(_ int, now time.Time) Observation {
			placed := min(rise(now), 4)
			return Observation{Workers: workers(4, int64(placed*node/4)), Expected: 4, Demand: nodes(rise(now) - placed)}
		})
		for i, s := range said {
			if s.Want > 4 {
				return i
			}
		}
		return len(said)
	}
	crossing := 0
	for rise(began.Add(time.Duration(crossing)*interval)) <= 4*0.7 {
		crossing++
	}
	ahead, present := asks(false), asks(true)
	assert.LessOrEqual(t, ahead, crossing-4)
	assert.InDelta(t, crossing, present, 1)
	t.Logf("above the threshold at tick %d: the forecast asks at %d, the present at %d", crossing, ahead, present)
}

// The dimension that wants most workers speaks.
func TestTheScarcestResourceSpeaks(t *testing.T) {
	scarce := map[string]Observation{
		"CPU":       {Demand: scheduling.Result{CPU: 3, Memory: 1, Slots: 1}},
		"memory":    {Demand: scheduling.Result{CPU: 1, Memory: 3, Slots: 1}},
		"pod slots": {Demand: scheduling.Result{CPU: 1, Memory: 1, Slots: 3}},
	}
	for name, o := range scarce {
		t.Run(name, func(t *testing.T) {
			o.Workers, o.Expected = workers(2, 0), 2
			said := replay(t, newSet(t, defaults()), Requests, 70, func(int, time.Time) Observation { return o })
			last := said[len(said)-1]
			assert.Equal(t, 5, last.Want, "3 / 0.7")
			assert.Equal(t, 6, last.Fits, "3 / 0.7 with the margin")
			assert.InDelta(t, 1.5, last.Now, 1e-9)
		})
	}
}

func TestRequestsOfAPoolWithoutWorkers(t *testing.T) {
	said := replay(t, newSet(t, defaults()), Requests, 100, func(i int, _ time.Time) Observation {
		if i < 50 {
			return Observation{Demand: nodes(1.2)}
		}
		return Observation{}
	})
	assert.Equal(t, []int{2, 2}, []int{said[49].Want, said[49].Fits - 1})
	assert.True(t, said[99].Known)
	said = replay(t, newSet(t, defaults()), Requests, 70, func(int, time.Time) Observation { return Observation{Workers: workers(3, 0), Expected: 3} })
	assert.Equal(t, []int{0, 0}, []int{said[69].Want, said[69].Fits}, "nobody needs them")
}

// What workers carried who are all gone pends; the forecast goes on.
func TestAllWorkersGo(t *testing.T) {
	said := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
		if i < 30 {
			return Observation{Workers: workers(3, 2400), Expected: 3}
		}
		return Observation{Expected: 3, Demand: nodes(1.8)}
	})
	for i, s := range said[5:] {
		require.True(t, s.Known, "%d: %s", i, s.Err)
		require.InDelta(t, 0.6, s.Predicted, 1e-9, i)
	}
}

// The time from which on it has asked is that of the first tick in a row.
func TestSinceWhenItAsks(t *testing.T) {
	o := defaults()
	o.Forecast.Disabled = true
	expected := func(i int) int {
		if i == 40 {
			return 4
		}
		return 3
	}
	said := replay(t, newSet(t, o), Requests, 60, func(i int, _ time.Time) Observation {
		milli := int64(2000)
		if i >= 20 {
			milli = 3000
		}
		return Observation{Workers: workers(3, milli), Expected: expected(i)}
	})
	first := said[21].Since
	assert.True(t, said[19].Since.IsZero())
	assert.WithinRange(t, first, began.Add(20*interval), began.Add(21*interval))
	assert.Equal(t, first, said[39].Since)
	assert.Equal(t, 4, said[39].Want)
	assert.True(t, said[40].Since.IsZero(), "it has what it asked for")
	assert.Equal(t, began.Add(41*interval), said[41].Since)
}

// A scale-up that is on its way is not asked for twice, and the want does not fall while it joins.
func TestWorkersOnTheirWay(t *testing.T) {
	joins := 40
	said := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
		switch {
		case i < 20:
			return Observation{Workers: workers(3, 2400), Expected: 3}
		case i < joins:
			return Observation{Workers: workers(3, 2400), Expected: 5, Demand: nodes(1.2)}
		default:
			return Observation{Workers: append(workers(3, 2400), worker("a", began.Add(39*interval+time.Second), 2400), worker("b", began.Add(39*interval+time.Second), 2400)), Expected: 5}
		}
	})
	for i, s := range said[60:] {
		require.Equal(t, 5, s.Want, i)
		require.InDelta(t, 0.6, s.Predicted, 0.02, i)
	}
}

// However pods move, pend, and are placed again on nodes that come, go, leave, and are not Ready, and however often
// somebody looks: what is requested in all stays, and so does the forecast.
func TestWhateverMovesTheLoadStays(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, now, total := newSet(t, defaults()), began, int64(6*2400)
		for i := range 150 {
			now = now.Add(time.Duration(1+random.IntN(20_000)) * time.Millisecond)
			o, rest := Observation{Now: now, Expected: 6}, total
			for x := range 8 {
				part := min(rest, int64(random.IntN(40))*100)
				n := worker(fmt.Sprint("w", x), now.Add(-time.Duration(random.IntN(100))*time.Second), part)
				switch random.IntN(6) {
				case 0:
					continue
				case 1:
					o.Leaving = append(o.Leaving, n)
				case 2:
					n.Ready = false
					fallthrough
				default:
					o.Workers = append(o.Workers, n)
				}
				rest -= part
			}
			o.Demand = nodes(float64(rest) / node)
			if said := named(t, s.Observe(t.Context(), o), Requests); said.Known {
				require.InDelta(t, 0.6, said.Predicted, 1e-9, "seed %d, step %d", seed, i)
			} else {
				require.Less(t, now.Sub(began), 80*time.Second, said.Err)
			}
		}
	}
}

// wantsOf is what requests want at each tick where pods ask for so many nodes from tick 40 on, and for two before.
func wantsOf(t *testing.T, asked func(after int) float64) (want []int, ask []float64) {
	t.Helper()
	o := OptionsOf(&v1alpha1.WorkerPoolSpec{Max: 100})
	said := replay(t, newSet(t, o), Requests, 90, func(i int, _ time.Time) Observation {
		in := 2.
		if i >= 40 {
			in = asked(i - 40)
		}
		ask = append(ask, in)
		return Observation{Workers: workers(2, node), Expected: 2, Demand: nodes(in - 2)}
	})
	for _, s := range said {
		want = append(want, s.Want)
	}
	return want, ask
}

// Pods that arrive at once are no trend, though they may come within two ticks: no node is launched that they do not need.
func TestAnArrivalIsNoTrend(t *testing.T) {
	for name, asked := range map[string]func(int) float64{
		"at once":          func(int) float64 { return 10 },
		"within two ticks": func(after int) float64 { return min(10, 6+4*float64(after)) },
		"and go again":     func(after int) float64 { return map[bool]float64{true: 10, false: 2}[after < 5] },
		"one by one":       func(after int) float64 { return min(10, 2+float64(after/4+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			want, ask := wantsOf(t, asked)
			for i := 5; i < len(want); i++ {
				require.LessOrEqual(t, want[i], int(math.Ceil(max(ask[i], ask[i-1]))), i)
			}
			require.Equal(t, int(ask[89]), want[89])
		})
	}
}

// Nodes that are full to the last pod are enough, and one more is too many.
func TestFullNodesAreEnough(t *testing.T) {
	said := replay(t, newSet(t, OptionsOf(&v1alpha1.WorkerPoolSpec{Max: 100})), Requests, 90, func(i int, _ time.Time) Observation {
		pods, all := min(48, 20+i), workers(13, node)
		all[12] = worker("w12", began.Add(-time.Hour), int64(max(0, pods-48))*node/4)
		for k := range all[:12] {
			all[k] = worker(fmt.Sprint("w", k), began.Add(-time.Hour), int64(min(4, max(0, pods-4*k)))*node/4)
		}
		return Observation{Workers: all, Expected: 13}
	})
	assert.Equal(t, []int{12, 12, 12}, []int{said[89].Want, said[89].Fits, said[89].Needs})
}

// A rise that goes on is carried on as far as launches take.
func TestARiseIsATrend(t *testing.T) {
	want, ask := wantsOf(t, func(after int) float64 { return 2 + 0.5*float64(after+1) })
	for i := 43; i < len(want); i++ {
		ahead := 1.2 * time.Minute.Seconds() / interval.Seconds() * 0.5
		require.InDelta(t, ask[i]+ahead, float64(want[i]), 1.5, i)
	}
}
