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
	got := replay(t, newSet(t, defaults()), Requests, 5, func(int, time.Time) Observation {
		return Observation{Workers: workers(3, 2000), Expected: 3}
	})
	for _, s := range got[:3] {
		assert.False(t, s.Known)
		assert.Equal(t, errWarmingUp.Error(), s.Err)
	}
	for _, s := range got[3:] {
		assert.Equal(t, plan.Signal{
			Name: Requests, WithPending: true, Known: true, Needs: 3, Now: 0.5, Predicted: 0.5,
			Threshold: 0.7, Margin: 0.3, Horizon: 144 * time.Second,
			Desired: 3, Fits: 3,
		}, s)
	}
}

// A pod that is pending, bound, evicted by a drain and pending again is the same demand all the time.
func TestDemandIsConstantWhilePodsMove(t *testing.T) {
	unready := func(n cluster.Node) cluster.Node { n.Ready = false; return n }
	later := func(n cluster.Node, now time.Time) cluster.Node { n.ReadySince = now; return n }
	const moving = 2400 // of 12,000 milli-CPU on six nodes
	tests := map[string]func(i int, others []cluster.Node) Observation{
		"pending, then on an existing node": func(i int, others []cluster.Node) Observation {
			if i < 20 {
				return Observation{
					Workers: append(others, worker("x", start.Add(-time.Hour), 0)),
					Demand:  nodes(float64(moving) / node),
				}
			}
			return Observation{Workers: append(others, worker("x", start.Add(-time.Hour), moving))}
		},
		"pending, then on a new node": func(i int, others []cluster.Node) Observation {
			if i < 20 {
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			}
			return Observation{Workers: append(others, worker("x", start.Add(20*interval-7*time.Second), moving))}
		},
		"on a leaving node, then on another": func(i int, others []cluster.Node) Observation {
			switch x := worker("x", start.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: others, Leaving: []cluster.Node{x}}
			case i < 25:
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			default:
				return Observation{Workers: append(others, worker("y", start.Add(25*interval-time.Second), moving))}
			}
		},
		"on a node that is not Ready for a while": func(i int, others []cluster.Node) Observation {
			switch x := worker("x", start.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: append(others, unready(x))}
			default:
				return Observation{Workers: append(others, later(x, start.Add(20*interval-time.Second)))}
			}
		},
		"on a node that was not Ready between two observations": func(i int, others []cluster.Node) Observation {
			x := worker("x", start.Add(-time.Hour), moving)
			if i >= 20 {
				x = later(x, start.Add(20*interval-4*time.Second))
			}
			return Observation{Workers: append(others, x)}
		},
	}
	for name, at := range tests {
		t.Run(name, func(t *testing.T) {
			got := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
				o := at(i, workers(5, 2400))
				o.Expected = 6
				return o
			})
			for i, s := range got[5:] {
				require.True(t, s.Known, s.Err)
				require.Equal(t, 6, s.Desired, i)
				require.InDelta(t, 0.6, s.Predicted, 1e-9, i)
				require.Equal(t, 7, s.Fits, i)
			}
		})
	}
}

// Many observations within an interval, as during an action, change neither the forecast nor the memory bound.
func TestFrequentObservations(t *testing.T) {
	s := newSet(t, defaults())
	for i := range 1000 {
		now := start.Add(time.Duration(i) * 2 * time.Second)
		o := Observation{Now: now, Workers: workers(5, 2400), Expected: 6}
		switch {
		case i%100 < 30:
			o.Demand = nodes(0.6)
		case i%100 < 50:
			o.Workers = append(o.Workers, worker("x", start.Add(-time.Hour), 2400))
		default:
			o.Leaving = []cluster.Node{worker("x", start.Add(-time.Hour), 2400)}
		}
		if got := named(t, s.Observe(t.Context(), o), Requests); i > 30 {
			assert.InDelta(t, 0.6, got.Predicted, 1e-9, i)
		}
	}
	log := s.sources[0].(*requests).log
	assert.LessOrEqual(t, len(log.times), 160)
	assert.LessOrEqual(t, len(s.nodes.periods), 16)
}

// rise returns the requests in nodes, from 40% of four nodes to twice as many as four.
func rise(now time.Time) float64 {
	return 4 * (0.4 + 1.6*min(1, max(0, now.Sub(start).Minutes()-10)/30))
}

// Pods arrive at a steady rate; those that do not fit are pending.
func TestRequestsAreAheadOfARise(t *testing.T) {
	firstRise := func(disabled bool) int {
		o := defaults()
		o.Forecast.Disabled = disabled
		got := replay(t, newSet(t, o), Requests, 160, func(_ int, now time.Time) Observation {
			placed := min(rise(now), 4)
			return Observation{Workers: workers(4, int64(placed*node/4)), Expected: 4, Demand: nodes(rise(now) - placed)}
		})
		for i, s := range got {
			if s.Desired > 4 {
				return i
			}
		}
		return len(got)
	}
	crossing := 0
	for rise(start.Add(time.Duration(crossing)*interval)) <= 4*0.7 {
		crossing++
	}
	ahead, present := firstRise(false), firstRise(true)
	assert.LessOrEqual(t, ahead, crossing-4)
	assert.InDelta(t, crossing, present, 1)
	t.Logf("above the threshold at tick %d: the forecast rises at %d, the present load at %d", crossing, ahead, present)
}

// The resource that needs the most workers decides.
func TestScarcestResourceDecides(t *testing.T) {
	scarce := map[string]Observation{
		"CPU":       {Demand: scheduling.Result{CPU: 3, Memory: 1, Slots: 1}},
		"memory":    {Demand: scheduling.Result{CPU: 1, Memory: 3, Slots: 1}},
		"pod slots": {Demand: scheduling.Result{CPU: 1, Memory: 1, Slots: 3}},
	}
	for name, o := range scarce {
		t.Run(name, func(t *testing.T) {
			o.Workers, o.Expected = workers(2, 0), 2
			got := replay(t, newSet(t, defaults()), Requests, 70, func(int, time.Time) Observation { return o })
			last := got[len(got)-1]
			assert.Equal(t, 5, last.Desired, "3 / 0.7")
			assert.Equal(t, 6, last.Fits, "3 / 0.7 with the margin")
			assert.InDelta(t, 1.5, last.Now, 1e-9)
		})
	}
}

func TestRequestsOfAPoolWithoutWorkers(t *testing.T) {
	got := replay(t, newSet(t, defaults()), Requests, 100, func(i int, _ time.Time) Observation {
		if i < 50 {
			return Observation{Demand: nodes(1.2)}
		}
		return Observation{}
	})
	assert.Equal(t, []int{2, 2}, []int{got[49].Desired, got[49].Fits - 1})
	assert.True(t, got[99].Known)
	got = replay(
		t,
		newSet(t, defaults()),
		Requests,
		70,
		func(int, time.Time) Observation { return Observation{Workers: workers(3, 0), Expected: 3} },
	)
	assert.Equal(t, []int{0, 0}, []int{got[69].Desired, got[69].Fits}, "no load needs them")
}

// The load of workers that are all gone is pending, and the forecast continues.
func TestAllWorkersGone(t *testing.T) {
	got := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
		if i < 30 {
			return Observation{Workers: workers(3, 2400), Expected: 3}
		}
		return Observation{Expected: 3, Demand: nodes(1.8)}
	})
	for i, s := range got[5:] {
		require.True(t, s.Known, "%d: %s", i, s.Err)
		require.InDelta(t, 0.6, s.Predicted, 1e-9, i)
	}
}

// Since is the first of consecutive ticks that recommend more workers.
func TestSince(t *testing.T) {
	o := defaults()
	o.Forecast.Disabled = true
	expected := func(i int) int {
		if i == 40 {
			return 4
		}
		return 3
	}
	got := replay(t, newSet(t, o), Requests, 60, func(i int, _ time.Time) Observation {
		milli := int64(2000)
		if i >= 20 {
			milli = 3000
		}
		return Observation{Workers: workers(3, milli), Expected: expected(i)}
	})
	first := got[21].Since
	assert.True(t, got[19].Since.IsZero())
	assert.WithinRange(t, first, start.Add(20*interval), start.Add(21*interval))
	assert.Equal(t, first, got[39].Since)
	assert.Equal(t, 4, got[39].Desired)
	assert.True(t, got[40].Since.IsZero(), "the recommended workers exist")
	assert.Equal(t, start.Add(41*interval), got[41].Since)
}

// A scale-up in progress is not recommended again, and the recommendation does not fall while its workers join.
func TestJoiningWorkers(t *testing.T) {
	joins := 40
	got := replay(t, newSet(t, defaults()), Requests, 90, func(i int, _ time.Time) Observation {
		switch {
		case i < 20:
			return Observation{Workers: workers(3, 2400), Expected: 3}
		case i < joins:
			return Observation{Workers: workers(3, 2400), Expected: 5, Demand: nodes(1.2)}
		default:
			return Observation{
				Workers: append(
					workers(3, 2400),
					worker("a", start.Add(39*interval+time.Second), 2400),
					worker("b", start.Add(39*interval+time.Second), 2400),
				),
				Expected: 5,
			}
		}
	})
	for i, s := range got[60:] {
		require.Equal(t, 5, s.Desired, i)
		require.InDelta(t, 0.6, s.Predicted, 0.02, i)
	}
}

// Pods move between random nodes that join, leave and are not Ready, with observations at random times: the sum of
// requests is constant, and so is the forecast.
func TestForecastIsConstantWhilePodsMove(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, now, total := newSet(t, defaults()), start, int64(6*2400)
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
			if got := named(t, s.Observe(t.Context(), o), Requests); got.Known {
				require.InDelta(t, 0.6, got.Predicted, 1e-9, "seed %d, step %d", seed, i)
			} else {
				require.Less(t, now.Sub(start), 80*time.Second, got.Err)
			}
		}
	}
}

// arrival returns the recommendation and the requests of each tick, in nodes, for pods that request two nodes until
// tick 40 and arriving afterwards.
func arrival(t *testing.T, arriving func(after int) float64) (recommended []int, requested []float64) {
	t.Helper()
	o := OptionsOf(&v1alpha1.WorkerPoolSpec{Max: 100})
	got := replay(t, newSet(t, o), Requests, 90, func(i int, _ time.Time) Observation {
		in := 2.
		if i >= 40 {
			in = arriving(i - 40)
		}
		requested = append(requested, in)
		return Observation{Workers: workers(2, node), Expected: 2, Demand: nodes(in - 2)}
	})
	for _, s := range got {
		recommended = append(recommended, s.Desired)
	}
	return recommended, requested
}

// Pods that arrive together are no trend, even within two ticks: no more nodes are recommended than they need.
func TestArrivalIsNoTrend(t *testing.T) {
	for name, arriving := range map[string]func(int) float64{
		"at once":          func(int) float64 { return 10 },
		"within two ticks": func(after int) float64 { return min(10, 6+4*float64(after)) },
		"leaving again":    func(after int) float64 { return map[bool]float64{true: 10, false: 2}[after < 5] },
		"one by one":       func(after int) float64 { return min(10, 2+float64(after/4+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			recommended, requested := arrival(t, arriving)
			for i := 5; i < len(recommended); i++ {
				require.LessOrEqual(t, recommended[i], int(math.Ceil(max(requested[i], requested[i-1]))), i)
			}
			require.Equal(t, int(requested[89]), recommended[89])
		})
	}
}

// Nodes that are completely full are enough.
func TestFullNodesAreEnough(t *testing.T) {
	got := replay(
		t,
		newSet(t, OptionsOf(&v1alpha1.WorkerPoolSpec{Max: 100})),
		Requests,
		90,
		func(i int, _ time.Time) Observation {
			pods, all := min(48, 20+i), workers(13, node)
			all[12] = worker("w12", start.Add(-time.Hour), int64(max(0, pods-48))*node/4)
			for k := range all[:12] {
				all[k] = worker(fmt.Sprint("w", k), start.Add(-time.Hour), int64(min(4, max(0, pods-4*k)))*node/4)
			}
			return Observation{Workers: all, Expected: 13}
		},
	)
	assert.Equal(t, []int{12, 12, 12}, []int{got[89].Desired, got[89].Fits, got[89].Needs})
}

// A steady rise is extrapolated to the horizon of launches.
func TestARiseIsATrend(t *testing.T) {
	recommended, requested := arrival(t, func(after int) float64 { return 2 + 0.5*float64(after+1) })
	for i := 43; i < len(recommended); i++ {
		ahead := 1.2 * time.Minute.Seconds() / interval.Seconds() * 0.5
		require.InDelta(t, requested[i]+ahead, float64(recommended[i]), 1.5, i)
	}
}
