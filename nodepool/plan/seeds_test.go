package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/plan"
)

// Each row names the seed document and the section that it is from. Where a seed is reached by configuration, the row
// configures it.

// seed000 asks for CPU alone, and for pods that have been pending for 180 s.
func seed000() plan.Snapshot {
	s := steady()
	s.Pool.PendingFor = 180 * time.Second
	s.Pool.Idle.CPU, s.Pool.Idle.Memory = math.Nextafter(0.3, 1), 1 // its "≤ 30%"; memory is not asked for
	s.Signals = s.Signals[:1]
	return s
}

func seed000Idle() plan.Snapshot {
	s := seed000()
	wants(&s, "cpu", 0.3, 2, 0)
	s.Signals[0].Fits = 2
	s.Record.IdleSince = ago(600 * time.Second)
	return s
}

func TestSeed000ScalingAlgorithm(t *testing.T) {
	run(t, []row{
		{"000 Scale-Up Conditions: average CPU > 70% for 3 minutes", seed000, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.71, 5, 3*time.Minute)
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"000 Scale-Up Conditions: average CPU > 70% for less than 3 minutes", seed000, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.99, 6, 3*time.Minute-time.Millisecond)
		}, plan.Hold, plan.NotSustained, 0, false},
		{"000 Scale-Up Conditions: average CPU at 70%", seed000, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.7, 4, time.Hour)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"000 Scale-Up Conditions: pending pods for 180 seconds", seed000, func(s *plan.Snapshot) { pends(s, 1) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"000 Scale-Up Conditions: pending pods for less than 180 seconds", seed000, func(s *plan.Snapshot) {
			s.Pending = plan.Pending{Known: true, Pods: 12}
		}, plan.Hold, plan.NotSustained, 0, false},
		{"000 Scale-Up Conditions: any, the larger wins", seed000, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 5
			wants(s, "cpu", 0.9, 6, 3*time.Minute)
			pends(s, 21)
		}, plan.ScaleUp, plan.PodsPending, 3, false},
		{"000 Scale-Up Conditions: any, though the other is not sustained", seed000, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, time.Minute)
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"000 Additional constraints: current worker count < MAX_WORKERS", seed000, func(s *plan.Snapshot) {
			s.Pool.Max = 4
			pends(s, 1)
		}, plan.Hold, plan.AtMaximum, 0, false},
		{"000 Additional constraints: no scaling operation in progress", seed000, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionUp)
			pends(s, 1)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"000 Additional constraints: cooldown has not elapsed", seed000, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(299 * time.Second)
			pends(s, 1)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"000 Scale-Down Conditions: all are met", seed000Idle, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"000 Scale-Down Conditions: average CPU above 30%", seed000Idle, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.301, 2, 0)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"000 Scale-Down Conditions: pending pods", seed000Idle, func(s *plan.Snapshot) {
			s.Pending = plan.Pending{Known: true, Pods: 1, Due: 1} // a node on its way holds it
		}, plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"000 Scale-Down Conditions: idle for less than 600 seconds", seed000Idle, func(s *plan.Snapshot) {
			s.Record.IdleSince = ago(600*time.Second - time.Millisecond)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"000 Scale-Down Conditions: worker count > MIN_WORKERS", seed000Idle, func(s *plan.Snapshot) { s.Pool.Min = 4 },
			plan.Hold, plan.AtMinimum, 0, false},
		{"000 Scale-Down Conditions: no scaling operation in progress", seed000Idle, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"000 Scale-Down Conditions: cooldown has not elapsed", seed000Idle, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(599 * time.Second)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"000 Cooldown Strategy: scale-up after 5 minutes", seed000, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(5 * time.Minute)
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"000 Cooldown Strategy: scale-down after 10 minutes", seed000Idle, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(10 * time.Minute)
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"000 Cooldown Strategy: scale-down 10 minutes after a scale-up", seed000Idle, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(599 * time.Second)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"000 Scale-Up Batch Size: ceil(10 / 10)", seed000, func(s *plan.Snapshot) { s.Pool.MaxBatchUp = 0; pends(s, 10) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"000 Scale-Up Batch Size: ceil(11 / 10)", seed000, func(s *plan.Snapshot) { s.Pool.MaxBatchUp = 0; pends(s, 11) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"000 Scale-Up Batch Size: capped by MAX_BATCH_UP", seed000, func(s *plan.Snapshot) { pends(s, 45) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"000 Scale-Up Batch Size: capped by MAX_WORKERS", seed000, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp, s.Pool.Max = 0, 7
			pends(s, 45)
		}, plan.ScaleUp, plan.PodsPending, 3, false},

		{"000 Edge Case Handling: metrics unavailable, no scale-down", seed000Idle,
			func(s *plan.Snapshot) { loses(s, "cpu") },
			plan.Hold, plan.MetricsUnknown, 0, false},
		{"000 Edge Case Handling: metrics unavailable, no scale-up by them", seed000, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, time.Hour)
			s.Signals[0].Known = false
		}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"000 Edge Case Handling: max workers reached", seed000, func(s *plan.Snapshot) {
			s.Pool.Max = 4
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.AtMaximum, 0, false},
		{"000 Edge Case Handling: scaling is already in progress", seed000, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"000 Edge Case Handling: cooldown active", seed000, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(time.Minute)
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.CoolingDown, 0, false},
	})
}

// seed001 takes two readings, 2 minutes apart, for sustained, and pending pods at once: 1 node for
// up to 5 of them and 2 for more.
func seed001() plan.Snapshot {
	s := steady()
	s.Pool.PendingFor, s.Pool.PodsPerNode, s.Pool.Idle.For = 0, 5, 0
	s.Pool.RemovalOrder = []plan.Scorer{plan.FullestZone, plan.Idlest, plan.FewestPods}
	for i := range s.Signals {
		s.Signals[i].For = 2 * time.Minute
	}
	return s
}

func seed001Idle() plan.Snapshot {
	s := seed001()
	for i, now := range []float64{0.29, 0.49} {
		s.Signals[i].Now, s.Signals[i].Predicted, s.Signals[i].Want, s.Signals[i].Fits = now, now, 3, 3
	}
	return s
}

// asksFor adds a signal of an application that one more worker would help.
func asksFor(s *plan.Snapshot, name string, now, threshold float64) {
	s.Signals = append(s.Signals,
		plan.Signal{Name: name, Known: true, Now: now, Predicted: now, Threshold: threshold, Want: len(s.Instances) + 1})
}

func TestSeed001NodeFleet(t *testing.T) {
	run(t, []row{
		{"001 Condition 1: CPU above 70% in two readings", seed001,
			func(s *plan.Snapshot) { wants(s, "cpu", 0.71, 5, 2*time.Minute) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Condition 1: CPU above 70% in the first reading", seed001,
			func(s *plan.Snapshot) { wants(s, "cpu", 0.99, 6, 0) },
			plan.Hold, plan.NotSustained, 0, false},
		{"001 Condition 2: pending pods, immediate", seed001, func(s *plan.Snapshot) { pends(s, 1) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"001 Condition 2: pending pods bypass the sustained check of CPU", seed001, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.82, 6, 0)
			pends(s, 3)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"001 Condition 3: memory above 75% in two readings", seed001,
			func(s *plan.Snapshot) { wants(s, "memory", 0.76, 5, 2*time.Minute) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Condition 3: memory above 75% in the first reading", seed001,
			func(s *plan.Snapshot) { wants(s, "memory", 0.76, 5, time.Minute) },
			plan.Hold, plan.NotSustained, 0, false},
		{"001 Condition 4: queue depth above 100", seed001, func(s *plan.Snapshot) { asksFor(s, "queue-depth", 120, 100) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Condition 4: latency p95 above 500 ms", seed001, func(s *plan.Snapshot) { asksFor(s, "latency-p95", 620, 500) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Condition 4: request rate above 1,000 per second", seed001,
			func(s *plan.Snapshot) { asksFor(s, "request-rate", 1100, 1000) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Condition 5: the next hour will need more", seed001, func(s *plan.Snapshot) {
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 5, Confidence: 0.9}
		}, plan.ScaleUp, plan.SeasonalFloor, 1, false},
		{"001 Condition 5: the next hour will need less", seed001, func(s *plan.Snapshot) {
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 1, Confidence: 0.9}
		}, plan.Hold, plan.NotIdle, 0, false},

		{"001 Node Count Calculation: 5 pending pods, 1 node", seed001, func(s *plan.Snapshot) { pends(s, 5) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"001 Node Count Calculation: 6 pending pods, 2 nodes", seed001, func(s *plan.Snapshot) { pends(s, 6) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"001 Node Count Calculation: 100 pending pods, 2 nodes", seed001, func(s *plan.Snapshot) { pends(s, 100) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"001 Node Count Calculation: high CPU, 1 node", seed001, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 1
			wants(s, "cpu", 0.99, 6, time.Hour)
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"001 Node Count Calculation: no more than max_nodes", seed001,
			func(s *plan.Snapshot) { s.Pool.Max = 5; pends(s, 100) },
			plan.ScaleUp, plan.PodsPending, 1, false},

		{"001 Scale-Down Trigger Conditions: all are true", seed001Idle, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"001 Scale-Down Trigger Conditions: CPU at 30%", seed001Idle, func(s *plan.Snapshot) { s.Signals[0].Now = 0.3 },
			plan.Hold, plan.NotIdle, 0, false},
		{"001 Scale-Down Trigger Conditions: memory at 50%", seed001Idle, func(s *plan.Snapshot) { s.Signals[1].Now = 0.5 },
			plan.Hold, plan.NotIdle, 0, false},
		{"001 Scale-Down Trigger Conditions: pending pods", seed001Idle, func(s *plan.Snapshot) { s.Pending.Pods = 1 },
			plan.Hold, plan.NotSustained, 0, false},
		{"001 Scale-Down Trigger Conditions: at the minimum", seed001Idle, func(s *plan.Snapshot) { s.Pool.Min = 4 },
			plan.Hold, plan.AtMinimum, 0, false},
		{"001 Key Parameters: scale-down increment, 1 node", seed001Idle, func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
		}, plan.ScaleDown, plan.PoolIdle, 1, false},

		{"001 Node Selection Strategy: critical pods on all", seed001Idle, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "it runs kube-system/coredns"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"001 PodDisruptionBudget Compliance: budgets forbid all", seed001Idle, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "the PodDisruptionBudget shop/web allows no disruption"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},

		{"001 Safety 1: below the minimum, past the cooldown", seed001, func(s *plan.Snapshot) {
			s.Instances = s.Instances[:1]
			s.Record.LastUp = noon
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"001 Safety 1: highest priority, before idleness", seed001Idle,
			func(s *plan.Snapshot) { s.Instances = s.Instances[:1] },
			plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"001 Safety 1: highest priority, though CPU has only begun to be high", seed001, func(s *plan.Snapshot) {
			s.Instances = s.Instances[:1]
			wants(s, "cpu", 0.9, 6, 0)
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"001 Safety 1: all that is missing", seed001, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp, s.Pool.Min = 0, 9
			s.Record.LastUp = noon
		}, plan.ScaleUp, plan.BelowMinimum, 5, true},
		{"001 Safety 2: at maximum capacity", seed001, func(s *plan.Snapshot) { s.Pool.Max = 4; pends(s, 8) },
			plan.Hold, plan.AtMaximum, 0, false},
		{"001 Safety 3: scaling already in progress", seed001,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp); pends(s, 8) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"001 Safety 4: scale-up cooldown, 1 s remaining", seed001, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(299 * time.Second)
			pends(s, 8)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"001 Safety 4: scale-up cooldown has passed", seed001, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300 * time.Second)
			pends(s, 8)
		}, plan.ScaleUp, plan.PodsPending, 2, false},
		{"001 Safety 4: scale-down cooldown, 1 s remaining", seed001Idle,
			func(s *plan.Snapshot) { s.Record.LastDown = ago(599 * time.Second) },
			plan.Hold, plan.CoolingDown, 0, false},
		{"001 Safety 4: no previous scaling event", seed001Idle, func(s *plan.Snapshot) { s.Record.LastDown = time.Time{} },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"001 Safety 5: the node did not join, and the next try waits", seed001, func(s *plan.Snapshot) {
			s.Record.Failures, s.Record.FailedAt = 1, ago(59*time.Second)
			pends(s, 8)
		}, plan.Hold, plan.BackingOff, 0, false},
		{"001 Error Handling: a lost metric is not the last one again", seed001Idle,
			func(s *plan.Snapshot) { loses(s, "memory") },
			plan.Hold, plan.MetricsUnknown, 0, false},
	})
}

// 001 Scenario 1, with the pool's own state between its rows in TestFlashSaleOfSeed001.
func TestSeed001Scenario2(t *testing.T) {
	// 10:00: 3 Spot and 1 On-Demand, and the minimum is 4.
	four := func() plan.Snapshot {
		s := seed001()
		s.Pool.Min = 4
		s.Instances[3].Market = fleet.OnDemand
		return s
	}
	run(t, []row{
		{"001 Scenario 2 10:00: normal operation", four, func(*plan.Snapshot) {}, plan.Hold, plan.NothingToDo, 0, false},
		{"001 Scenario 2 10:02: interruption warning", four, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-000")
			s.Record.LastUp = ago(time.Minute)
		}, plan.ScaleUp, plan.Interrupted, 1, true},
		{"001 Scenario 2 10:04: 3 < MIN_NODES", four, func(s *plan.Snapshot) {
			s.Instances[0].Leaving = true
			s.Record.LastUp = ago(time.Minute)
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"001 Scenario 2 10:07: restored", four, func(s *plan.Snapshot) {
			s.Instances[0].Leaving = true
			s.Instances = append(s.Instances, workersIn("a", "a", "a", "a", "a")[4])
		}, plan.Hold, plan.NothingToDo, 0, false},
	})
}

func TestSeed001MultiAZDistribution(t *testing.T) {
	s := seed001()
	s.Instances = workersIn("1a", "1b", "1a", "1b", "1a")
	s.Offers = offers("1a", "1b")
	var zones []string
	for _, p := range plan.Place(s, 2) {
		zones = append(zones, p.Zone)
	}
	assert.Equal(t, []string{"1b", "1a"}, zones)
}

func TestSeed001SpotPercentage(t *testing.T) {
	s := seed001()
	s.Instances = nil
	spot := 0
	for _, p := range plan.Place(s, 100) {
		if p.Market == fleet.Spot {
			spot++
		}
	}
	assert.Equal(t, 70, spot)
}

// 001 Node Selection Strategy: the zone with most workers, then the idlest, then the fewest pods,
// none with critical pods.
func TestSeed001NodeSelectionStrategy(t *testing.T) {
	s := seed001Idle()
	s.Instances = workersIn("a", "b", "b", "b", "b", "b")
	for i, w := range []struct {
		use  float64
		pods int
	}{{0.01, 1}, {0.3, 1}, {0.2, 4}, {0.2, 3}, {0.1, 0}, {0.2, 3}} {
		s.Instances[i].Utilisation, s.Instances[i].Pods = w.use, w.pods
	}
	s.Instances[4].Blocked = "it runs kube-system/coredns"
	d := plan.Decide(s)
	assert.Equal(t, []string{"i-003"}, ids(d.Targets),
		"not the idlest of all, which is in the smaller zone; not the idlest of b, which is critical")
	assert.Contains(t, d.Refused, plan.Refusal{Worker: "node-004", Reason: "it runs kube-system/coredns"})
}

// seed002Idle removes the oldest of the fullest zone, in batches.
func seed002Idle() plan.Snapshot {
	s := idle()
	s.Pool.Idle.Memory = 1
	s.Signals = s.Signals[:1]
	s.Pool.RemovalOrder = []plan.Scorer{plan.FullestZone, plan.Oldest}
	return s
}

func TestSeed002ScaleDownAlgorithm(t *testing.T) {
	run(t, []row{
		{"002 Preconditions: all of the following are true", seed002Idle, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"002 Precondition 1: average CPU < CPU_DOWN", seed002Idle, func(s *plan.Snapshot) { s.Signals[0].Now = 0.3 },
			plan.Hold, plan.NotIdle, 0, false},
		{"002 Precondition 1: no pending pods", seed002Idle,
			func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 1, Due: 1} },
			plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"002 Precondition 1: idle for IDLE_DOWN_SEC", seed002Idle,
			func(s *plan.Snapshot) { s.Record.IdleSince = ago(9 * time.Minute) },
			plan.Hold, plan.NotIdle, 0, false},
		{"002 Precondition 2: now - lastScaleEpoch < COOLDOWN_DOWN_SEC after a scale-down",
			seed002Idle, func(s *plan.Snapshot) {
				s.Record.LastDown = ago(600*time.Second - 1)
			}, plan.Hold, plan.CoolingDown, 0, false},
		{"002 Precondition 2: now - lastScaleEpoch < COOLDOWN_DOWN_SEC after a scale-up",
			seed002Idle, func(s *plan.Snapshot) {
				s.Record.LastUp, s.Record.LastDown = ago(600*time.Second-1), ago(time.Hour)
			}, plan.Hold, plan.CoolingDown, 0, false},
		{"002 Precondition 2: now - lastScaleEpoch = COOLDOWN_DOWN_SEC", seed002Idle, func(s *plan.Snapshot) {
			s.Record.LastUp, s.Record.LastDown = ago(600*time.Second), ago(600*time.Second)
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"002 Precondition 3: workerCount - toRemove >= minWorkers", seed002Idle, func(s *plan.Snapshot) {
			s.Pool.MaxBatchDown, s.Pool.Min = 5, 3
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"002 Precondition 4: scalingInProgress", seed002Idle,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"002 Safety Guarantees 1: critical pods", seed002Idle, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "it runs a pod of system-node-critical priority"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"002 Safety Guarantees 1: a drain that failed is not tried again at once", seed002Idle, func(s *plan.Snapshot) {
			s.Record.DrainBackoff = map[string]time.Time{}
			for _, w := range s.Instances {
				s.Record.DrainBackoff[w.ID] = noon.Add(time.Minute)
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"002 Safety Guarantees 2: no zone to zero, if the minimum is enough for all zones",
			seed002Idle, func(s *plan.Snapshot) {
				s.Instances = workersIn("a", "b", "c", "a")
				s.Pool.Min, s.Instances[0].Blocked, s.Instances[3].Blocked = 3, "its annotation says so", "its annotation says so"
				s.Signals[0].Fits, s.Signals[0].Want = 0, 0
			},
			plan.Hold, plan.NoRemovableNode, 0, false},
		{"002 Safety Guarantees 2: unless it is the only one", seed002Idle, func(s *plan.Snapshot) {
			s.Instances = workersIn("a")
			s.Pool.Min, s.Signals[0].Fits, s.Signals[0].Want = 0, 0, 0
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"002 Spot Interruptions: replacement during an open scale-down", seed002Idle, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
			s.Instances = s.Instances[:2]
			s.Record.Interruptions = interruptions("i-001")
		}, plan.ScaleUp, plan.Interrupted, 1, true},
	})
}

// 002 Safety Guarantees 2: zones with more workers first, oldest nodes first, no zone to zero.
func TestSeed002Targets(t *testing.T) {
	s := seed002Idle()
	s.Pool.Min, s.Pool.MaxBatchDown = 0, 10
	s.Instances = workersIn("a", "b", "b", "c", "b", "c")
	s.Signals[0].Fits = 1
	d := plan.Decide(s)
	assert.Equal(t, []string{"i-001", "i-002", "i-003", "i-000"}, ids(d.Targets),
		"b has three, then b and c two each, then each zone one, of which the minimum asks for none and the load for two")
	s.Pool.Min = 3
	d = plan.Decide(s)
	assert.Equal(t, []string{"i-001", "i-002", "i-003"}, ids(d.Targets), "the minimum is enough for all zones")
}

// seed003 asks for CPU and pending pods together.
func seed003() plan.Snapshot {
	s := steady()
	s.Pool.Mode = plan.All
	s.Signals[0].For = 0
	wants(&s, "cpu", 0.7, 5, 0)
	pends(&s, 4)
	return s
}

func TestSeed003ScaleUpAlgorithm(t *testing.T) {
	run(t, []row{
		{"003 Triggers: all of the following are met", seed003, func(*plan.Snapshot) {},
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"003 Trigger 1: no CPU pressure", seed003, func(s *plan.Snapshot) { wants(s, "cpu", 0.69, 4, 0) },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"003 Trigger 1: CPU is not known", seed003, func(s *plan.Snapshot) { loses(s, "cpu") },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"003 Trigger 2: no pods are pending", seed003, func(s *plan.Snapshot) { pends(s, 0) },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"003 Trigger 2: for less than PENDING_UP_SEC", seed003,
			func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 4} },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"003 Trigger 3: now - lastScaleEpoch < COOLDOWN_UP_SEC after a scale-up", seed003, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300*time.Second - 1)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"003 Trigger 3: now - lastScaleEpoch < COOLDOWN_UP_SEC after a scale-down", seed003, func(s *plan.Snapshot) {
			s.Record.LastUp, s.Record.LastDown = ago(time.Hour), ago(300*time.Second-1)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"003 Trigger 3: now - lastScaleEpoch = COOLDOWN_UP_SEC", seed003, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300 * time.Second)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"003 Trigger 4: workerCount = maxWorkers", seed003, func(s *plan.Snapshot) { s.Pool.Max = 4 },
			plan.Hold, plan.AtMaximum, 0, false},
		{"003 Trigger 5: scalingInProgress", seed003, func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"003 Sizing: ceil(pendingPods / PODS_PER_NODE), however much CPU asks for", seed003, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			wants(s, "cpu", 0.99, 10, 0)
			pends(s, 21)
		}, plan.ScaleUp, plan.PodsPending, 3, false},
		{"003 Sizing: minimum 1", seed003, func(s *plan.Snapshot) { pends(s, 1) }, plan.ScaleUp, plan.PodsPending, 1, false},
		{"003 Sizing: maximum per invocation", seed003, func(s *plan.Snapshot) { pends(s, 99) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"003 Sizing: never exceed maxWorkers", seed003, func(s *plan.Snapshot) { s.Pool.Max = 5; pends(s, 99) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"003 Phase 6: retry later", seed003,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Minute) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"003 Phase 6: not at once", seed003,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Minute-1) },
			plan.Hold, plan.BackingOff, 0, false},
	})
}

// 003 Phase 2: the least-filled zone, Spot first, On-Demand where that fails.
func TestSeed003AZAwareLaunch(t *testing.T) {
	s := seed003()
	s.Pool.SpotRatio = 1
	s.Instances = workersIn("a", "a", "b")
	s.Offers = offers("a", "b", "c")
	assert.Equal(t, []string{"c t3.medium Spot", "b t3.medium Spot", "c t3.medium Spot", "a t3.medium Spot"},
		places(plan.Place(s, 4)))
	s.Record.Cooling = []fleet.Cooling{{Market: fleet.Spot, Until: noon.Add(3 * time.Minute),
		Reason: "InsufficientInstanceCapacity"}}
	assert.Equal(t, []string{"c t3.medium OnDemand", "b t3.medium OnDemand"}, places(plan.Place(s, 2)))
}
