package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// dice makes snapshots in which rare things are not rare.
type dice struct{ *rand.Rand }

func (d dice) chance(share float64) bool { return d.Float64() < share }

func (d dice) upTo(n int) int { return d.IntN(n + 1) }

// past is mostly a while ago, now and then never or in the future.
func (d dice) past() time.Time {
	switch {
	case d.chance(0.4):
		return time.Time{}
	case d.chance(0.1):
		return noon.Add(time.Duration(d.Int64N(int64(2 * time.Hour))))
	}
	return noon.Add(-time.Duration(d.Int64N(int64(30 * time.Minute))))
}

func random(seed uint64) plan.Snapshot {
	d := dice{rand.New(rand.NewPCG(seed, 1))}
	zones := []string{"a", "b", "c"}[:1+d.IntN(3)]
	low := d.upTo(6)
	s := plan.Snapshot{
		Now: noon,
		Pool: plan.Pool{
			Name: "workers", Min: low, Max: max(1, low+d.upTo(12)), MaxBatchUp: d.upTo(4), MaxBatchDown: d.upTo(4),
			PendingFor: 30 * time.Second, Idle: plan.Idle{For: time.Duration(d.upTo(10)) * time.Minute, CPU: 0.3, Memory: 0.5},
			CooldownUp: time.Duration(d.upTo(5)) * time.Minute, CooldownDown: time.Duration(d.upTo(10)) * time.Minute,
			SpotRatio: float64(d.upTo(10)) / 10, OnDemandBase: d.upTo(3),
		},
		Offers: offers(zones...),
	}
	if d.chance(0.2) {
		s.Pool.Mode = plan.All
	}
	if d.chance(0.3) {
		s.Pool.RemovalOrder = []plan.Scorer{plan.Oldest, plan.FullestZone}
	}
	if d.chance(0.05) {
		s.WorkersErr = "the cloud does not answer"
	}
	s.Disruption = plan.Disruption{Nodes: d.upTo(3), Why: "the budget", Paused: d.chance(0.1)}
	s.Pool.Consolidate = d.chance(0.5)
	d.workers(&s, zones)
	d.demand(&s)
	d.state(&s, zones)
	if d.chance(0.3) {
		s.Prices = map[fleet.Offer]fleet.Price{}
		for _, o := range s.Offers {
			if d.chance(0.8) { // the others are not known
				s.Prices[o] = fleet.Price{OnDemand: new(float64(d.upTo(3))), Spot: new(float64(d.upTo(3)))}
			}
		}
	}
	return s
}

func (d dice) workers(s *plan.Snapshot, zones []string) {
	s.Instances = workersIn(make([]string, d.upTo(16))...)
	underRepair := d.Float64() * d.Float64()
	old := d.Float64() * float64(d.upTo(1))
	for i := range s.Instances {
		w := &s.Instances[i]
		w.Zone = zones[d.IntN(len(zones))]
		if d.chance(0.4) {
			w.Market = fleet.OnDemand
		}
		w.Pods, w.Utilisation = d.upTo(3), float64(d.upTo(4))/10
		w.Launched = noon.Add(-time.Duration(d.upTo(3)) * time.Hour)
		w.Leaving, w.Failed = d.chance(0.08), d.chance(0.04)
		if d.chance(old) {
			w.Outdated = "its launch template is old"
		}
		w.Node.Ready, w.Known = !d.chance(underRepair), !d.chance(0.05)
		if !w.Ready() && d.chance(0.5) {
			w.Node.Name = ""
		}
		if d.chance(0.15) {
			w.Blocked = "it runs kube-system/coredns"
		}
		if d.chance(0.03) {
			s.Record.Interruptions = append(s.Record.Interruptions, interruptions(w.ID)...)
		}
	}
}

func (d dice) demand(s *plan.Snapshot) {
	busy := d.chance(0.4)
	n := len(s.Instances)
	for i, name := range []string{"cpu", "memory", "queue"} {
		signal := plan.Signal{Name: name, Known: !d.chance(0.04), Threshold: 0.7, Margin: 0.3,
			For: time.Duration(d.upTo(3)) * time.Minute, CPU: i == 0, Memory: i == 1, InformsOnly: d.chance(0.2)}
		switch {
		case !signal.Known:
			signal.Err = "the server does not answer"
		case busy && d.chance(0.6):
			signal.Now, signal.Desired, signal.Fits, signal.Needs, signal.Since = 0.8, n+d.upTo(5), n, n, d.past()
		default:
			signal.Now, signal.Desired, signal.Fits, signal.Needs = 0.1, d.upTo(n), d.upTo(n), d.upTo(n)
			if d.chance(0.1) {
				signal.Now = 0.6 // not idle, and more workers than it takes
			}
		}
		if d.chance(0.1) {
			signal.Down = 0.15
		}
		s.Signals = append(s.Signals, signal)
	}
	s.Pending.Known = !d.chance(0.04)
	if busy && d.chance(0.5) {
		s.Pending.Pods = d.upTo(20)
		s.Pending.Due = d.upTo(s.Pending.Pods)
		s.Pending.Nodes = min(s.Pending.Due, d.upTo(5))
	}
	if d.chance(0.2) {
		s.Seasonal = &plan.Seasonal{Known: d.chance(0.8), Nodes: d.upTo(8), Confidence: d.Float64()}
	}
}

func (d dice) state(s *plan.Snapshot, zones []string) {
	r := &s.Record
	r.LastUp, r.LastDown, r.LastSwap, r.IdleSince, r.SpareSince = d.past(), d.past(), d.past(), d.past(), d.past()
	r.DrainBackoff = map[string]time.Time{}
	if d.chance(0.2) {
		r.Action = opened([]state.ActionKind{state.ActionUp, state.ActionDown}[d.IntN(2)], make([]state.Slot, d.IntN(3))...)
		if d.chance(0.75) { // it takes more
			r.Action.Started = noon
		}
	}
	if d.chance(0.15) {
		s.Record.Failures, s.Record.FailedAt = 1+d.upTo(7), d.past()
	}
	if d.chance(0.3) {
		s.DecidedAt = d.past()
	}
	for range d.upTo(3) {
		s.Record.Cooling = append(s.Record.Cooling, fleet.Cooling{
			Zone: zones[d.IntN(len(zones))], InstanceType: []string{"", "t3.medium", "t3.large"}[d.IntN(3)],
			Market: []fleet.Market{"", fleet.Spot, fleet.OnDemand}[d.IntN(3)], Until: d.past().Add(10 * time.Minute),
		})
	}
	for _, w := range s.Instances {
		if d.chance(0.05) {
			s.Record.DrainBackoff[w.ID] = d.past().Add(10 * time.Minute)
		}
	}
}

// Whatever a pool looks like, check holds for its decision, and equal pools have equal decisions, in
// whatever order the workers are listed, and its input is not changed.
func TestDecisionsOfRandomPools(t *testing.T) {
	reasons := map[plan.Reason]int{}
	steps := map[plan.Step]int{}
	const pools = 10_000
	for seed := range uint64(pools) {
		s := random(seed)
		d := plan.Decide(s)
		reasons[d.Reason]++
		steps[d.Step]++
		check(t, s, d)
		require.Equal(t, random(seed), s, "seed %d: the snapshot was changed", seed)
		require.Equal(t, d, plan.Decide(s), "seed %d: decided again", seed)
		slices.Reverse(s.Instances)
		slices.Reverse(s.Record.Interruptions)
		require.Equal(t, d, plan.Decide(s), "seed %d: with the workers in another order", seed)
		if t.Failed() {
			t.Fatalf("seed %d: %+v\n%+v", seed, s, d)
		}
	}
	for _, r := range []plan.Reason{
		plan.BelowMinimum, plan.PodsPending, plan.LoadPredicted, plan.SeasonalFloor, plan.Interrupted, plan.PoolIdle,
		plan.AboveMaximum, plan.Outdated, plan.Underutilized,
		plan.NothingToDo, plan.AtMaximum, plan.AtMinimum, plan.ActionOpen, plan.CoolingDown, plan.NotSustained,
		plan.SignalsDisagree, plan.InsufficientCapacity,
		plan.BackingOff, plan.WorkersUnknown, plan.MetricsUnknown, plan.TooManyUnready, plan.NoRemovableNode,
		plan.BlockedByPendingPods, plan.NotIdle, plan.LoadAfterRemoval,
	} {
		assert.Positive(t, reasons[r], "no pool led to %s", r)
	}
	assert.Greater(t, steps[plan.ScaleUp], pools/20)
	assert.Greater(t, steps[plan.ScaleDown], pools/200)
}

// A larger recommendation never leads to fewer workers, and an unknown input never to a removal.
func TestDecisionsAreMonotonic(t *testing.T) {
	for seed := range uint64(5000) {
		s := random(seed)
		before := plan.Decide(s)

		more := random(seed)
		more.Pending.Pods++
		more.Pending.Due++
		more.Pending.Nodes++
		got := plan.Decide(more)
		if before.Reason != plan.Outdated { // pods come before what is replaced
			require.GreaterOrEqual(t, len(got.Placements), len(before.Placements), "seed %d: one more pending pod\n%s\n%s",
				seed, before.Message, got.Message)
		}
		if before.Step != plan.ScaleDown || before.Reason != plan.AboveMaximum {
			require.NotEqual(t, plan.ScaleDown, got.Step, "seed %d: one more pending pod\n%s", seed, got.Message)
		}
		for i := range s.Signals {
			blind := random(seed)
			blind.Signals[i] = plan.Signal{Name: blind.Signals[i].Name, CPU: blind.Signals[i].CPU,
				Memory: blind.Signals[i].Memory}
			require.NotEqual(t, plan.ScaleDown, plan.Decide(blind).Step, "seed %d: without %s", seed, s.Signals[i].Name)
		}
		blocked := random(seed)
		for i := range blocked.Instances {
			blocked.Instances[i].Blocked = "its annotation says so"
		}
		require.NotEqual(t, plan.ScaleDown, plan.Decide(blocked).Step, "seed %d: with all workers blocked", seed)
	}
}

// The desired number, computed in the simplest way.
func TestAskedIsAsPlainlySaid(t *testing.T) {
	for seed := range uint64(5000) {
		s := random(seed)
		if s.Pool.Mode == plan.All {
			continue
		}
		n := len(staying(s))
		asked := s.Pool.Min
		for _, signal := range s.Signals {
			held := !signal.Since.IsZero() && !s.Now.Before(signal.Since.Add(signal.For)) || signal.For == 0
			if signal.Known && !signal.InformsOnly && (signal.Desired <= n || held) {
				asked = max(asked, signal.Desired)
			}
		}
		if s.Pending.Known && s.Pending.Due > 0 {
			asked = max(asked, n+s.Pending.Nodes)
		}
		if s.Seasonal != nil && s.Seasonal.Known {
			asked = max(asked, s.Seasonal.Nodes)
		}
		require.Equal(t, asked, plan.Decide(s).Recommended, "seed %d", seed)
	}
}

// Absurd numbers break no rule either.
func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), 0.5, 0.5, 3, 3, 1, 1, int64(0), int64(time.Minute))
	f.Add(uint64(2), -1.0, 1e300, -5, 1<<62, 1<<62, -7, int64(-1<<63), int64(1<<62))
	f.Add(uint64(129), 0.06, 0.05, -4, -39, 3, -37, int64(-90), int64(time.Minute)) // fewer pods than none
	f.Fuzz(func(t *testing.T, seed uint64, now, ratio float64, want, fits, nodes, pending int, last, held int64) {
		s := random(seed)
		for i := range s.Signals {
			s.Signals[i].Now, s.Signals[i].Desired, s.Signals[i].Fits = now, want, fits
			s.Signals[i].For, s.Signals[i].Since = time.Duration(held), s.Now.Add(time.Duration(last))
		}
		s.Pending.Nodes, s.Pending.Due, s.Pending.Pods = nodes, pending, pending
		s.Pool.SpotRatio = ratio
		s.Record.LastUp = s.Now.Add(time.Duration(last))
		s.Record.FailedAt = s.Now.Add(time.Duration(held))
		d := plan.Decide(s)
		check(t, s, d)
		if t.Failed() {
			t.Logf("%+v\n%+v", s, d)
		}
	})
}
