package plan_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// simulation is a pool whose launches join after a while and whose removals take a while, in its own time. Its load is
// shared by the ready workers; what they cannot carry is unschedulable.
type simulation struct {
	plan.Snapshot
	demand   func(time.Time) float64 // in workers
	join     time.Duration
	drain    time.Duration
	asked    map[string]time.Time // instance → when it was launched
	targets  []string
	drained  time.Time
	overflow time.Time // since when not all is schedulable
	launched int
	log      []string
}

const podsPerWorker = 10

func (s *simulation) ready() int {
	n := 0
	for _, w := range s.Instances {
		if w.Ready() && w.Counts() {
			n++
		}
	}
	return n
}

func (s *simulation) counting() int { return len(staying(s.Snapshot)) }

// observe sets the measured values, with the line through the last minute as the forecast.
func (s *simulation) observe(horizon time.Duration) {
	load := s.demand(s.Now)
	ahead := max(0, load+(load-s.demand(s.Now.Add(-time.Minute)))*horizon.Minutes())
	n, ready := s.counting(), float64(max(1, s.ready()))
	for i := range s.Signals {
		signal := &s.Signals[i]
		was := signal.Desired > n
		signal.Known, signal.Now, signal.Predicted, signal.Horizon = true, min(1, load/ready), ahead/ready, horizon
		signal.Desired = int(math.Ceil(ahead/signal.Threshold - 1e-9))
		signal.Fits = int(math.Ceil(max(load, ahead)*(1+signal.Margin)/signal.Threshold - 1e-9))
		switch {
		case signal.Desired <= n:
			signal.Since = time.Time{}
		case !was || signal.Since.IsZero():
			signal.Since = s.Now
		}
	}
	excess := load - float64(s.ready())
	if excess <= 1e-9 {
		s.overflow, s.Pending = time.Time{}, plan.Pending{Known: true}
		return
	}
	if s.overflow.IsZero() {
		s.overflow = s.Now
	}
	s.Pending = plan.Pending{Known: true, Pods: int(math.Ceil(excess * podsPerWorker))}
	if since := s.Now.Sub(s.overflow); since >= s.Pool.PendingFor {
		s.Pending.Due, s.Pending.OldestFor = s.Pending.Pods, since
		s.Pending.Nodes = max(0, int(math.Ceil(excess))-(n-s.ready()))
	}
}

// settle lets launches join and removals end.
func (s *simulation) settle() {
	open := false
	for i := range s.Instances {
		w := &s.Instances[i]
		at, ours := s.asked[w.ID]
		switch {
		case !ours:
		case s.Now.Sub(at) < s.join:
			open = true
		default:
			w.Node.Name, w.Node.Ready, w.Known = "node-"+w.ID, true, true
			delete(s.asked, w.ID)
		}
	}
	if s.Record.ActionKind() == state.ActionUp && !open {
		s.Record.Action, s.Record.LastUp = nil, s.Now
	}
	if s.Record.ActionKind() == state.ActionDown && !s.Now.Before(s.drained) {
		s.Instances = slices.DeleteFunc(s.Instances, func(w plan.Instance) bool { return slices.Contains(s.targets, w.ID) })
		s.Record.Action, s.Record.LastDown, s.targets = nil, s.Now, nil
	}
}

// tick makes a decision and begins what it says.
func (s *simulation) tick(t *testing.T) plan.Decision {
	t.Helper()
	d := plan.Decide(s.Snapshot)
	check(t, s.Snapshot, d)
	s.Record.IdleSince, s.DecidedAt = d.IdleSince, d.At
	if d.Step != plan.Hold {
		s.log = append(s.log, fmt.Sprintf("%s %s %s: %d → %d (%s)", s.Now.Format("15:04:05"), d.Step, d.Reason,
			d.Workers, d.Desired, d.Message))
	}
	switch d.Step {
	case plan.ScaleUp:
		s.Record.Action = opened(state.ActionUp)
		for _, p := range d.Placements {
			s.launched++
			id := fmt.Sprintf("new-%d", s.launched)
			s.asked[id] = s.Now
			s.Instances = append(s.Instances, launched(id, p, s.Now))
		}
		if d.Reason == plan.Interrupted {
			s.take()
		}
	case plan.ScaleDown:
		s.Record.Action, s.drained = opened(state.ActionDown), s.Now.Add(s.drain)
		s.targets = ids(d.Targets)
		for i := range s.Instances {
			s.Instances[i].Leaving = s.Instances[i].Leaving || slices.Contains(s.targets, s.Instances[i].ID)
		}
	}
	return d
}

// take lets the cloud reclaim the announced instances, after replacements have been decided.
func (s *simulation) take() {
	for _, n := range s.Record.Interruptions {
		s.Instances = slices.DeleteFunc(s.Instances, func(w plan.Instance) bool { return w.ID == n.InstanceID })
	}
	s.Record.Interruptions = nil
}

// The first scenario, row by row: measured values are those of its table, the effect of launches and removals is the
// pool's own. The table counts CPU at its first reading above the threshold, and knows no duration of idleness.
func TestFlashSale(t *testing.T) {
	start := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
	s := simulation{Snapshot: readingsPolicy(), asked: map[string]time.Time{}, join: 150 * time.Second, drain: time.Minute}
	s.Signals[0].For = 0
	table := map[string]struct {
		cpu    float64
		pods   int
		step   plan.Step
		reason plan.Reason
		nodes  int
	}{
		"20:00": {0.35, 0, plan.Hold, plan.NotIdle, 0},
		"20:02": {0.65, 0, plan.Hold, plan.NotIdle, 0},
		"20:04": {0.82, 3, plan.ScaleUp, plan.LoadPredicted, 2},
		"20:06": {0.85, 8, plan.Hold, plan.ActionOpen, 0}, // the nodes have not joined yet
		"20:08": {0.78, 2, plan.Hold, plan.CoolingDown, 0},
		"20:10": {0.68, 0, plan.Hold, plan.NotIdle, 0},
		"20:30": {0.40, 0, plan.Hold, plan.NotIdle, 0},
		"20:40": {0.28, 0, plan.ScaleDown, plan.PoolIdle, 1},
	}
	row := table["20:00"]
	seen := 0
	for s.Now = start; !s.Now.After(start.Add(40 * time.Minute)); s.Now = s.Now.Add(2 * time.Minute) {
		s.settle()
		at := s.Now.Format("15:04")
		next, named := table[at]
		if named {
			row = next
			seen++
		}
		n := float64(s.counting())
		pods := float64(row.pods) / float64(s.Pool.PodsPerNode) // the external demand, in workers
		wants(&s.Snapshot, "cpu", row.cpu, int(math.Ceil((n*row.cpu+pods)/0.7)), 0)
		s.Signals[0].Fits = int(n*row.cpu*1.3/0.7) + 1
		wants(&s.Snapshot, "memory", 0.4, int(n), 0)
		s.Signals[1].Desired, s.Signals[1].Fits = 3, 3
		pends(&s.Snapshot, row.pods)
		d := s.tick(t)
		if named {
			assert.Equal(t, row.step, d.Step, "%s: %s", at, d.Message)
			assert.Equal(t, row.reason, d.Reason, "%s: %s", at, d.Message)
			assert.Equal(t, row.nodes, len(d.Placements)+len(d.Targets), at)
		} else {
			assert.Equal(t, plan.Hold, d.Step, "%s: %s", at, d.Message)
		}
	}
	assert.Equal(t, len(table), seen)
}

// A day with a flash sale, a Spot interruption in it, and a quiet night, with the defaults of the specification.
func TestDayAndNight(t *testing.T) {
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	points := []struct {
		hour   float64
		demand float64
	}{{0, 1.1}, {6, 1.1}, {9, 4}, {20, 4}, {20.25, 8}, {20.75, 8}, {21, 4}, {22, 1.1}, {30, 1.1}}
	s := simulation{
		Snapshot: steady(), asked: map[string]time.Time{}, join: 90 * time.Second, drain: time.Minute,
		demand: func(at time.Time) float64 {
			h := at.Sub(midnight).Hours()
			for i := 1; i < len(points); i++ {
				if a, b := points[i-1], points[i]; h <= b.hour {
					return a.demand + (b.demand-a.demand)*max(0, h-a.hour)/(b.hour-a.hour)
				}
			}
			return points[len(points)-1].demand
		},
	}
	s.Pool.Max = 14
	clock := func(hour float64) time.Time { return midnight.Add(time.Duration(hour * float64(time.Hour))) }
	var short time.Duration // duration with unschedulable pods
	fewest, most := math.MaxInt, 0
	changes := map[string]int{}
	for s.Now = midnight; s.Now.Before(clock(30)); s.Now = s.Now.Add(15 * time.Second) {
		s.settle()
		if s.Now.Equal(clock(20.5)) {
			s.Record.Interruptions = interruptions(s.Instances[0].ID)
		}
		s.observe(2 * time.Minute)
		before := s.counting() + len(s.Record.Interruptions)
		d := s.tick(t)
		if s.Now.Equal(clock(20.5)) {
			require.Equal(t, plan.Interrupted, d.Reason, d.Message)
			assert.GreaterOrEqual(t, s.counting(), before, "replaced at once")
		}
		if s.Pending.Pods > 0 {
			short += 15 * time.Second
		}
		fewest, most = min(fewest, s.counting()), max(most, s.counting())
		period := "day"
		if s.Now.Before(clock(6)) || !s.Now.Before(clock(23.5)) {
			period = "night"
		}
		if d.Step != plan.Hold {
			changes[period+" "+string(d.Step)]++
		}
		if s.Now.After(clock(10)) && s.Now.Before(clock(20)) {
			require.Equal(t, plan.Hold, d.Step, "the day is steady: %s", d.Message)
		}
	}
	told := strings.Join(s.log, "\n")
	assert.GreaterOrEqual(t, fewest, s.Pool.Min, told)
	assert.LessOrEqual(t, most, s.Pool.Max, told)
	assert.GreaterOrEqual(t, most, 12, "8 workers' load at 70%% need 12\n%s", told)
	assert.Zero(t, changes["night ScaleUp"], "nothing is launched at night\n%s", told)
	assert.LessOrEqual(t, changes["night ScaleDown"], 6, told)
	assert.Equal(t, 3, s.counting(), "1.1 with the margin need 3, and none is below 30%% then\n%s", told)
	assert.Zero(t, short, "the forecast keeps ahead of the sale\n%s", told)
}
