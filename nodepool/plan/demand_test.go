package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// bill is the cost of a load.
type bill struct {
	nodeHours float64
	waited    float64 // pod-hours without a node
}

// returning is a pool with the defaults of a WorkerPool under a load that needs eight workers for
// two minutes, once every period, and two in between.
func returning(period time.Duration, waitCost float64) *simulation {
	s := &simulation{
		Snapshot: steady(), asked: map[string]time.Time{}, join: 45 * time.Second, drain: 5 * time.Second,
		demand: func(at time.Time) float64 {
			if at.Sub(noon)%period < 2*time.Minute {
				return 7.5
			}
			return 1.5
		},
	}
	s.Pool.Max, s.Pool.MaxBatchUp, s.Pool.MaxBatchDown, s.Pool.PendingFor = 20, 0, 10, 0
	s.Pool.CooldownUp, s.Pool.CooldownDown, s.Pool.Consolidate = 0, 0, true
	s.Pool.Idle = plan.Idle{For: 15 * time.Second, CPU: 0.3, Memory: 0.5, WaitCost: waitCost}
	s.StartupTime = s.join
	for i := range s.Signals {
		s.Signals[i].Threshold, s.Signals[i].Margin, s.Signals[i].For = 1, 0, 0
	}
	return s
}

func (s *simulation) play(t *testing.T, lasts time.Duration) bill {
	t.Helper()
	const step = 5 * time.Second
	var out bill
	for end := s.Now.Add(lasts); s.Now.Before(end); s.Now = s.Now.Add(step) {
		s.settle()
		s.observe(0)
		d := s.tick(t)
		s.Record.SpareSince, s.Record.Demand = d.SpareSince, d.Demand
		out.nodeHours += float64(s.counting()) * step.Hours()
		out.waited += float64(s.Pending.Pods) * step.Hours()
	}
	return out
}

// A load that returns on a schedule finds its workers ready, for less than it costs to keep them in between.
func TestWorkersAreLaunchedBeforeALoadReturns(t *testing.T) {
	const period = 10 * time.Minute
	bills := map[float64]bill{}
	for _, waitCost := range []float64{0, 1} {
		s := returning(period, waitCost)
		s.play(t, 6*period)
		bills[waitCost] = s.play(t, 6*period)
		t.Logf("waitCost %g: %+v\n%v", waitCost, bills[waitCost], s.log[max(0, len(s.log)-6):])
	}
	const kept = 8 * 1.0 // node-hours of all workers for an hour
	assert.Less(t, bills[1].waited, bills[0].waited/10)
	assert.Less(t, bills[1].nodeHours, bills[0].nodeHours+(kept-bills[0].nodeHours)/2)
}

// The reason names what is known, and 0 turns it off.
func TestReturningLoadIsAReason(t *testing.T) {
	s := returning(10*time.Minute, 1)
	s.play(t, time.Hour)
	var launch string
	for range 120 {
		s.settle()
		s.observe(0)
		d := s.tick(t)
		s.Record.SpareSince, s.Record.Demand = d.SpareSince, d.Demand
		if d.Reason == plan.LoadReturns {
			launch = d.Message
		}
		s.Now = s.Now.Add(5 * time.Second)
	}
	assert.Contains(t, launch, "8 workers were needed again in 6 cases, typically after 8m0s")

	s = returning(10*time.Minute, 0)
	s.play(t, time.Hour)
	assert.Zero(t, s.Record.Demand)
	for _, r := range plan.Decide(s.Snapshot).Recommendations {
		assert.NotEqual(t, "returning", r.Signal)
	}
}

// Unknown values are not learned.
func TestDemandIsUnknownWithItsSignals(t *testing.T) {
	s := returning(10*time.Minute, 1)
	s.play(t, 3*time.Minute)
	require.NotEmpty(t, s.Record.Demand.Idle)
	for name, change := range map[string]func(*plan.Snapshot){
		"a signal":            func(s *plan.Snapshot) { loses(s, "memory") },
		"pods":                func(s *plan.Snapshot) { s.Pending.Known = false },
		"workers":             func(s *plan.Snapshot) { s.WorkersErr = "the cloud does not answer" },
		"the time in between": func(s *plan.Snapshot) { s.DecidedAt = s.Now.Add(-time.Hour) },
	} {
		t.Run(fmt.Sprint(name), func(t *testing.T) {
			snapshot := s.Snapshot
			snapshot.Signals = append([]plan.Signal(nil), s.Signals...)
			change(&snapshot)
			d := plan.Decide(snapshot)
			assert.Empty(t, d.Demand.Idle)
			assert.Equal(t, s.Record.Demand.Periods, d.Demand.Periods)
			assert.NotEmpty(t, s.Record.Demand.Idle, "the snapshot is left alone")
		})
	}
}
