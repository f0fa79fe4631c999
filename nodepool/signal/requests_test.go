package signal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/world"
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
			Name: Requests, Known: true, Now: 0.5, Predicted: 0.5, Threshold: 0.7, Horizon: 144 * time.Second,
			Want: 3, Fits: 3,
		}, s)
	}
}

// A pod that is pending, is placed, is evicted as its node is drained, and pends again is one demand all the time.
func TestDemandDoesNotChangeAsPodsMove(t *testing.T) {
	unready := func(n world.Node) world.Node { n.Ready = false; return n }
	later := func(n world.Node, now time.Time) world.Node { n.ReadySince = now; return n }
	const moving = 2400 // of 12,000 milli-CPU on six nodes
	tests := map[string]func(i int, now time.Time, others []world.Node) Observation{
		"pending, then on a node that was there": func(i int, now time.Time, others []world.Node) Observation {
			if i < 20 {
				return Observation{Workers: append(others, worker("x", began.Add(-time.Hour), 0)), Demand: nodes(float64(moving) / node)}
			}
			return Observation{Workers: append(others, worker("x", began.Add(-time.Hour), moving))}
		},
		"pending, then on a node that has just come": func(i int, now time.Time, others []world.Node) Observation {
			if i < 20 {
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			}
			return Observation{Workers: append(others, worker("x", began.Add(20*interval-7*time.Second), moving))}
		},
		"on a node that leaves, then on another": func(i int, now time.Time, others []world.Node) Observation {
			switch x := worker("x", began.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: others, Leaving: []world.Node{x}}
			case i < 25:
				return Observation{Workers: others, Demand: nodes(float64(moving) / node)}
			default:
				return Observation{Workers: append(others, worker("y", began.Add(25*interval-time.Second), moving))}
			}
		},
		"on a node that is not Ready for a while": func(i int, now time.Time, others []world.Node) Observation {
			switch x := worker("x", began.Add(-time.Hour), moving); {
			case i < 15:
				return Observation{Workers: append(others, x)}
			case i < 20:
				return Observation{Workers: append(others, unready(x))}
			default:
				return Observation{Workers: append(others, later(x, began.Add(20*interval-time.Second)))}
			}
		},
		"on a node that has not been Ready between two looks": func(i int, now time.Time, others []world.Node) Observation {
			x := worker("x", began.Add(-time.Hour), moving)
			if i >= 20 {
				x = later(x, began.Add(20*interval-4*time.Second))
			}
			return Observation{Workers: append(others, x)}
		},
	}
	for name, at := range tests {
		t.Run(name, func(t *testing.T) {
			said := replay(t, newSet(t, defaults()), Requests, 90, func(i int, now time.Time) Observation {
				o := at(i, now, workers(5, 2400))
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
			o.Leaving = []world.Node{worker("x", began.Add(-time.Hour), 2400)}
		}
		if said := named(t, s.Observe(t.Context(), o), Requests); i > 30 {
			assert.InDelta(t, 0.6, said.Predicted, 1e-9, i)
		}
	}
	ledger := s.voices[0].(*requests).ledger
	assert.LessOrEqual(t, len(ledger.times), 160)
	assert.LessOrEqual(t, len(s.roster.spells), 16)
}
