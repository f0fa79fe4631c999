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

// The policies of existing autoscalers, expressed by the configuration of a pool. Each row names
// the rule that it is about.

// cpuPolicy scales by CPU alone, and by pods that have been pending for 180 s.
func cpuPolicy() plan.Snapshot {
	s := steady()
	s.Pool.PendingFor = 180 * time.Second
	s.Pool.Idle.CPU, s.Pool.Idle.Memory = math.Nextafter(0.3, 1), 1 // its "≤ 30%"; memory does not matter
	s.Signals = s.Signals[:1]
	return s
}

func idleCPUPolicy() plan.Snapshot {
	s := cpuPolicy()
	wants(&s, "cpu", 0.3, 2, 0)
	s.Signals[0].Fits = 2
	s.Record.IdleSince = ago(600 * time.Second)
	return s
}

func TestPolicyOfCPU(t *testing.T) {
	run(t, []row{
		{"Scale-Up Conditions: average CPU > 70% for 3 minutes", cpuPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.71, 5, 3*time.Minute)
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Scale-Up Conditions: average CPU > 70% for less than 3 minutes", cpuPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.99, 6, 3*time.Minute-time.Millisecond)
		}, plan.Hold, plan.NotSustained, 0, false},
		{"Scale-Up Conditions: average CPU at 70%", cpuPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.7, 4, time.Hour)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"Scale-Up Conditions: pending pods for 180 seconds", cpuPolicy, func(s *plan.Snapshot) { pends(s, 1) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Scale-Up Conditions: pending pods for less than 180 seconds", cpuPolicy, func(s *plan.Snapshot) {
			s.Pending = plan.Pending{Known: true, Pods: 12}
		}, plan.Hold, plan.NotSustained, 0, false},
		{"Scale-Up Conditions: any, the larger wins", cpuPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 5
			wants(s, "cpu", 0.9, 6, 3*time.Minute)
			pends(s, 21)
		}, plan.ScaleUp, plan.PodsPending, 3, false},
		{"Scale-Up Conditions: any, though the other is not sustained", cpuPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, time.Minute)
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"Additional constraints: current worker count < MAX_WORKERS", cpuPolicy, func(s *plan.Snapshot) {
			s.Pool.Max = 4
			pends(s, 1)
		}, plan.Hold, plan.AtMaximum, 0, false},
		{"Additional constraints: no scaling operation in progress", cpuPolicy, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionUp)
			pends(s, 1)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"Additional constraints: cooldown has not elapsed", cpuPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(299 * time.Second)
			pends(s, 1)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"Scale-Down Conditions: all are met", idleCPUPolicy, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Scale-Down Conditions: average CPU above 30%", idleCPUPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.301, 2, 0)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"Scale-Down Conditions: pending pods", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Pending = plan.Pending{Known: true, Pods: 1, Due: 1} // a node on its way holds it
		}, plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"Scale-Down Conditions: idle for less than 600 seconds", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Record.IdleSince = ago(600*time.Second - time.Millisecond)
		}, plan.Hold, plan.NotIdle, 0, false},
		{"Scale-Down Conditions: worker count > MIN_WORKERS", idleCPUPolicy, func(s *plan.Snapshot) { s.Pool.Min = 4 },
			plan.Hold, plan.AtMinimum, 0, false},
		{"Scale-Down Conditions: no scaling operation in progress", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"Scale-Down Conditions: cooldown has not elapsed", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(599 * time.Second)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"Cooldown Strategy: scale-up after 5 minutes", cpuPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(5 * time.Minute)
			pends(s, 1)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"Cooldown Strategy: scale-down after 10 minutes", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(10 * time.Minute)
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Cooldown Strategy: scale-down 10 minutes after a scale-up", idleCPUPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(599 * time.Second)
		}, plan.Hold, plan.CoolingDown, 0, false},

		{"Scale-Up Batch Size: ceil(10 / 10)", cpuPolicy, func(s *plan.Snapshot) { s.Pool.MaxBatchUp = 0; pends(s, 10) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Scale-Up Batch Size: ceil(11 / 10)", cpuPolicy, func(s *plan.Snapshot) { s.Pool.MaxBatchUp = 0; pends(s, 11) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"Scale-Up Batch Size: capped by MAX_BATCH_UP", cpuPolicy, func(s *plan.Snapshot) { pends(s, 45) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"Scale-Up Batch Size: capped by MAX_WORKERS", cpuPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp, s.Pool.Max = 0, 7
			pends(s, 45)
		}, plan.ScaleUp, plan.PodsPending, 3, false},

		{"Edge Case Handling: metrics unavailable, no scale-down", idleCPUPolicy,
			func(s *plan.Snapshot) { loses(s, "cpu") },
			plan.Hold, plan.MetricsUnknown, 0, false},
		{"Edge Case Handling: metrics unavailable, no scale-up by them", cpuPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 6, time.Hour)
			s.Signals[0].Known = false
		}, plan.Hold, plan.MetricsUnknown, 0, false},
		{"Edge Case Handling: max workers reached", cpuPolicy, func(s *plan.Snapshot) {
			s.Pool.Max = 4
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.AtMaximum, 0, false},
		{"Edge Case Handling: scaling is already in progress", cpuPolicy, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.ActionOpen, 0, false},
		{"Edge Case Handling: cooldown active", cpuPolicy, func(s *plan.Snapshot) {
			s.Record.LastDown = ago(time.Minute)
			wants(s, "cpu", 0.9, 6, time.Hour)
		}, plan.Hold, plan.CoolingDown, 0, false},
	})
}

// readingsPolicy takes two readings, 2 minutes apart, for sustained, and pending pods at once: 1 node for
// up to 5 of them and 2 for more.
func readingsPolicy() plan.Snapshot {
	s := steady()
	s.Pool.PendingFor, s.Pool.PodsPerNode, s.Pool.Idle.For = 0, 5, 0
	s.Pool.RemovalOrder = []plan.Scorer{plan.FullestZone, plan.Idlest, plan.FewestPods}
	for i := range s.Signals {
		s.Signals[i].For = 2 * time.Minute
	}
	return s
}

func idleReadingsPolicy() plan.Snapshot {
	s := readingsPolicy()
	for i, now := range []float64{0.29, 0.49} {
		s.Signals[i].Now, s.Signals[i].Predicted, s.Signals[i].Desired, s.Signals[i].Fits = now, now, 3, 3
	}
	return s
}

// asksFor adds a signal of an application that one more worker would help.
func asksFor(s *plan.Snapshot, name string, now, threshold float64) {
	s.Signals = append(s.Signals,
		plan.Signal{Name: name, Known: true, Now: now, Predicted: now, Threshold: threshold, Desired: len(s.Instances) + 1})
}

func TestPolicyOfReadings(t *testing.T) {
	run(t, []row{
		{"Condition 1: CPU above 70% in two readings", readingsPolicy,
			func(s *plan.Snapshot) { wants(s, "cpu", 0.71, 5, 2*time.Minute) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Condition 1: CPU above 70% in the first reading", readingsPolicy,
			func(s *plan.Snapshot) { wants(s, "cpu", 0.99, 6, 0) },
			plan.Hold, plan.NotSustained, 0, false},
		{"Condition 2: pending pods, immediate", readingsPolicy, func(s *plan.Snapshot) { pends(s, 1) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Condition 2: pending pods bypass the sustained check of CPU", readingsPolicy, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.82, 6, 0)
			pends(s, 3)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"Condition 3: memory above 75% in two readings", readingsPolicy,
			func(s *plan.Snapshot) { wants(s, "memory", 0.76, 5, 2*time.Minute) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Condition 3: memory above 75% in the first reading", readingsPolicy,
			func(s *plan.Snapshot) { wants(s, "memory", 0.76, 5, time.Minute) },
			plan.Hold, plan.NotSustained, 0, false},
		{"Condition 4: queue depth above 100", readingsPolicy, func(s *plan.Snapshot) { asksFor(s, "queue-depth", 120, 100) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Condition 4: latency p95 above 500 ms", readingsPolicy,
			func(s *plan.Snapshot) { asksFor(s, "latency-p95", 620, 500) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Condition 4: request rate above 1,000 per second", readingsPolicy,
			func(s *plan.Snapshot) { asksFor(s, "request-rate", 1100, 1000) },
			plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Condition 5: the next hour will need more", readingsPolicy, func(s *plan.Snapshot) {
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 5, Confidence: 0.9}
		}, plan.ScaleUp, plan.SeasonalFloor, 1, false},
		{"Condition 5: the next hour will need less", readingsPolicy, func(s *plan.Snapshot) {
			s.Seasonal = &plan.Seasonal{Known: true, Nodes: 1, Confidence: 0.9}
		}, plan.Hold, plan.NotIdle, 0, false},

		{"Node Count Calculation: 5 pending pods, 1 node", readingsPolicy, func(s *plan.Snapshot) { pends(s, 5) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Node Count Calculation: 6 pending pods, 2 nodes", readingsPolicy, func(s *plan.Snapshot) { pends(s, 6) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"Node Count Calculation: 100 pending pods, 2 nodes", readingsPolicy, func(s *plan.Snapshot) { pends(s, 100) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"Node Count Calculation: high CPU, 1 node", readingsPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 1
			wants(s, "cpu", 0.99, 6, time.Hour)
		}, plan.ScaleUp, plan.LoadPredicted, 1, false},
		{"Node Count Calculation: no more than max_nodes", readingsPolicy,
			func(s *plan.Snapshot) { s.Pool.Max = 5; pends(s, 100) },
			plan.ScaleUp, plan.PodsPending, 1, false},

		{"Scale-Down Trigger Conditions: all are true", idleReadingsPolicy, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Scale-Down Trigger Conditions: CPU at 30%", idleReadingsPolicy, func(s *plan.Snapshot) { s.Signals[0].Now = 0.3 },
			plan.Hold, plan.NotIdle, 0, false},
		{"Scale-Down Trigger Conditions: memory at 50%", idleReadingsPolicy,
			func(s *plan.Snapshot) { s.Signals[1].Now = 0.5 },
			plan.Hold, plan.NotIdle, 0, false},
		{"Scale-Down Trigger Conditions: pending pods", idleReadingsPolicy, func(s *plan.Snapshot) { s.Pending.Pods = 1 },
			plan.Hold, plan.NotSustained, 0, false},
		{"Scale-Down Trigger Conditions: at the minimum", idleReadingsPolicy, func(s *plan.Snapshot) { s.Pool.Min = 4 },
			plan.Hold, plan.AtMinimum, 0, false},
		{"Key Parameters: scale-down increment, 1 node", idleReadingsPolicy, func(s *plan.Snapshot) {
			s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b")
		}, plan.ScaleDown, plan.PoolIdle, 1, false},

		{"Node Selection Strategy: critical pods on all", idleReadingsPolicy, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "it runs kube-system/coredns"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"PodDisruptionBudget Compliance: budgets forbid all", idleReadingsPolicy, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "the PodDisruptionBudget shop/web allows no disruption"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},

		{"Safety 1: below the minimum, past the cooldown", readingsPolicy, func(s *plan.Snapshot) {
			s.Instances = s.Instances[:1]
			s.Record.LastUp = noon
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"Safety 1: highest priority, before idleness", idleReadingsPolicy,
			func(s *plan.Snapshot) { s.Instances = s.Instances[:1] },
			plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"Safety 1: highest priority, though CPU has only begun to be high", readingsPolicy, func(s *plan.Snapshot) {
			s.Instances = s.Instances[:1]
			wants(s, "cpu", 0.9, 6, 0)
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"Safety 1: all that is missing", readingsPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp, s.Pool.Min = 0, 9
			s.Record.LastUp = noon
		}, plan.ScaleUp, plan.BelowMinimum, 5, true},
		{"Safety 2: at maximum capacity", readingsPolicy, func(s *plan.Snapshot) { s.Pool.Max = 4; pends(s, 8) },
			plan.Hold, plan.AtMaximum, 0, false},
		{"Safety 3: scaling already in progress", readingsPolicy,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp); pends(s, 8) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"Safety 4: scale-up cooldown, 1 s remaining", readingsPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(299 * time.Second)
			pends(s, 8)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"Safety 4: scale-up cooldown has passed", readingsPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300 * time.Second)
			pends(s, 8)
		}, plan.ScaleUp, plan.PodsPending, 2, false},
		{"Safety 4: scale-down cooldown, 1 s remaining", idleReadingsPolicy,
			func(s *plan.Snapshot) { s.Record.LastDown = ago(599 * time.Second) },
			plan.Hold, plan.CoolingDown, 0, false},
		{"Safety 4: no previous scaling event", idleReadingsPolicy,
			func(s *plan.Snapshot) { s.Record.LastDown = time.Time{} },
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Safety 5: the node did not join, and the next try waits", readingsPolicy, func(s *plan.Snapshot) {
			s.Record.Failures, s.Record.FailedAt = 1, ago(59*time.Second)
			pends(s, 8)
		}, plan.Hold, plan.BackingOff, 0, false},
		{"Error Handling: a lost metric is not the last one again", idleReadingsPolicy,
			func(s *plan.Snapshot) { loses(s, "memory") },
			plan.Hold, plan.MetricsUnknown, 0, false},
	})
}

// The first scenario, with the pool's own state between its rows, is TestFlashSale.
func TestScenarioOfRequestRate(t *testing.T) {
	// 10:00: 3 Spot and 1 On-Demand, and the minimum is 4.
	four := func() plan.Snapshot {
		s := readingsPolicy()
		s.Pool.Min = 4
		s.Instances[3].Market = fleet.OnDemand
		return s
	}
	run(t, []row{
		{"Scenario 2 10:00: normal operation", four, func(*plan.Snapshot) {}, plan.Hold, plan.NothingToDo, 0, false},
		{"Scenario 2 10:02: interruption warning", four, func(s *plan.Snapshot) {
			s.Record.Interruptions = interruptions("i-000")
			s.Record.LastUp = ago(time.Minute)
		}, plan.ScaleUp, plan.Interrupted, 1, true},
		{"Scenario 2 10:04: 3 < MIN_NODES", four, func(s *plan.Snapshot) {
			s.Instances[0].Leaving = true
			s.Record.LastUp = ago(time.Minute)
		}, plan.ScaleUp, plan.BelowMinimum, 1, true},
		{"Scenario 2 10:07: restored", four, func(s *plan.Snapshot) {
			s.Instances[0].Leaving = true
			s.Instances = append(s.Instances, workersIn("a", "a", "a", "a", "a")[4])
		}, plan.Hold, plan.NothingToDo, 0, false},
	})
}

func TestZonesAreBalanced(t *testing.T) {
	s := readingsPolicy()
	s.Instances = workersIn("1a", "1b", "1a", "1b", "1a")
	s.Offers = offers("1a", "1b")
	var zones []string
	for _, p := range plan.Place(s, 2) {
		zones = append(zones, p.Zone)
	}
	assert.Equal(t, []string{"1b", "1a"}, zones)
}

func TestShareOfSpot(t *testing.T) {
	s := readingsPolicy()
	s.Instances = nil
	spot := 0
	for _, p := range plan.Place(s, 100) {
		if p.Market == fleet.Spot {
			spot++
		}
	}
	assert.Equal(t, 70, spot)
}

// Node Selection Strategy: the zone with most workers, then the idlest, then the fewest pods,
// none with critical pods.
func TestOrderOfRemoval(t *testing.T) {
	s := idleReadingsPolicy()
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

// oldestFirstPolicy removes the oldest of the fullest zone, in batches.
func oldestFirstPolicy() plan.Snapshot {
	s := idle()
	s.Pool.Idle.Memory = 1
	s.Signals = s.Signals[:1]
	s.Pool.RemovalOrder = []plan.Scorer{plan.FullestZone, plan.Oldest}
	return s
}

func TestPolicyOfOldestFirst(t *testing.T) {
	run(t, []row{
		{"Preconditions: all of the following are true", oldestFirstPolicy, func(*plan.Snapshot) {},
			plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Precondition 1: average CPU < CPU_DOWN", oldestFirstPolicy, func(s *plan.Snapshot) { s.Signals[0].Now = 0.3 },
			plan.Hold, plan.NotIdle, 0, false},
		{"Precondition 1: no pending pods", oldestFirstPolicy,
			func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 1, Due: 1} },
			plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"Precondition 1: idle for IDLE_DOWN_SEC", oldestFirstPolicy,
			func(s *plan.Snapshot) { s.Record.IdleSince = ago(9 * time.Minute) },
			plan.Hold, plan.NotIdle, 0, false},
		{"Precondition 2: now - lastScaleEpoch < COOLDOWN_DOWN_SEC after a scale-down",
			oldestFirstPolicy, func(s *plan.Snapshot) {
				s.Record.LastDown = ago(600*time.Second - 1)
			}, plan.Hold, plan.CoolingDown, 0, false},
		{"Precondition 2: now - lastScaleEpoch < COOLDOWN_DOWN_SEC after a scale-up",
			oldestFirstPolicy, func(s *plan.Snapshot) {
				s.Record.LastUp, s.Record.LastDown = ago(600*time.Second-1), ago(time.Hour)
			}, plan.Hold, plan.CoolingDown, 0, false},
		{"Precondition 2: now - lastScaleEpoch = COOLDOWN_DOWN_SEC", oldestFirstPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp, s.Record.LastDown = ago(600*time.Second), ago(600*time.Second)
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Precondition 3: workerCount - toRemove >= minWorkers", oldestFirstPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchDown, s.Pool.Min = 5, 3
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Precondition 4: scalingInProgress", oldestFirstPolicy,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionUp) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"Safety Guarantees 1: critical pods", oldestFirstPolicy, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "it runs a pod of system-node-critical priority"
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"Safety Guarantees 1: a drain that failed is not tried again at once", oldestFirstPolicy, func(s *plan.Snapshot) {
			s.Record.DrainBackoff = map[string]time.Time{}
			for _, w := range s.Instances {
				s.Record.DrainBackoff[w.ID] = noon.Add(time.Minute)
			}
		}, plan.Hold, plan.NoRemovableNode, 0, false},
		{"Safety Guarantees 2: no zone to zero, if the minimum is enough for all zones",
			oldestFirstPolicy, func(s *plan.Snapshot) {
				s.Instances = workersIn("a", "b", "c", "a")
				s.Pool.Min, s.Instances[0].Blocked, s.Instances[3].Blocked = 3, "its annotation says so", "its annotation says so"
				s.Signals[0].Fits, s.Signals[0].Desired = 0, 0
			},
			plan.Hold, plan.NoRemovableNode, 0, false},
		{"Safety Guarantees 2: unless it is the only one", oldestFirstPolicy, func(s *plan.Snapshot) {
			s.Instances = workersIn("a")
			s.Pool.Min, s.Signals[0].Fits, s.Signals[0].Desired = 0, 0, 0
		}, plan.ScaleDown, plan.PoolIdle, 1, false},
		{"Spot Interruptions: replacement during an open scale-down", oldestFirstPolicy, func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
			s.Instances = s.Instances[:2]
			s.Record.Interruptions = interruptions("i-001")
		}, plan.ScaleUp, plan.Interrupted, 1, true},
	})
}

// Safety Guarantees 2: zones with more workers first, oldest nodes first, no zone to zero.
func TestOldestOfTheFullestZoneFirst(t *testing.T) {
	s := oldestFirstPolicy()
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

// bothTriggersPolicy scales up if CPU and pending pods agree.
func bothTriggersPolicy() plan.Snapshot {
	s := steady()
	s.Pool.Mode = plan.All
	s.Signals[0].For = 0
	wants(&s, "cpu", 0.7, 5, 0)
	pends(&s, 4)
	return s
}

func TestPolicyOfBothTriggers(t *testing.T) {
	run(t, []row{
		{"Triggers: all of the following are met", bothTriggersPolicy, func(*plan.Snapshot) {},
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Trigger 1: no CPU pressure", bothTriggersPolicy, func(s *plan.Snapshot) { wants(s, "cpu", 0.69, 4, 0) },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"Trigger 1: CPU is not known", bothTriggersPolicy, func(s *plan.Snapshot) { loses(s, "cpu") },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"Trigger 2: no pods are pending", bothTriggersPolicy, func(s *plan.Snapshot) { pends(s, 0) },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"Trigger 2: for less than PENDING_UP_SEC", bothTriggersPolicy,
			func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 4} },
			plan.Hold, plan.SignalsDisagree, 0, false},
		{"Trigger 3: now - lastScaleEpoch < COOLDOWN_UP_SEC after a scale-up", bothTriggersPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300*time.Second - 1)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"Trigger 3: now - lastScaleEpoch < COOLDOWN_UP_SEC after a scale-down", bothTriggersPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp, s.Record.LastDown = ago(time.Hour), ago(300*time.Second-1)
		}, plan.Hold, plan.CoolingDown, 0, false},
		{"Trigger 3: now - lastScaleEpoch = COOLDOWN_UP_SEC", bothTriggersPolicy, func(s *plan.Snapshot) {
			s.Record.LastUp = ago(300 * time.Second)
		}, plan.ScaleUp, plan.PodsPending, 1, false},
		{"Trigger 4: workerCount = maxWorkers", bothTriggersPolicy, func(s *plan.Snapshot) { s.Pool.Max = 4 },
			plan.Hold, plan.AtMaximum, 0, false},
		{"Trigger 5: scalingInProgress", bothTriggersPolicy,
			func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) },
			plan.Hold, plan.ActionOpen, 0, false},
		{"Sizing: ceil(pendingPods / PODS_PER_NODE), however much CPU asks for", bothTriggersPolicy, func(s *plan.Snapshot) {
			s.Pool.MaxBatchUp = 0
			wants(s, "cpu", 0.99, 10, 0)
			pends(s, 21)
		}, plan.ScaleUp, plan.PodsPending, 3, false},
		{"Sizing: minimum 1", bothTriggersPolicy, func(s *plan.Snapshot) { pends(s, 1) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Sizing: maximum per invocation", bothTriggersPolicy, func(s *plan.Snapshot) { pends(s, 99) },
			plan.ScaleUp, plan.PodsPending, 2, false},
		{"Sizing: never exceed maxWorkers", bothTriggersPolicy, func(s *plan.Snapshot) { s.Pool.Max = 5; pends(s, 99) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Phase 6: retry later", bothTriggersPolicy,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Minute) },
			plan.ScaleUp, plan.PodsPending, 1, false},
		{"Phase 6: not at once", bothTriggersPolicy,
			func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Minute-1) },
			plan.Hold, plan.BackingOff, 0, false},
	})
}

// Phase 2: the least-filled zone, Spot first, On-Demand where that fails.
func TestLaunchInTheLeastFilledZone(t *testing.T) {
	s := bothTriggersPolicy()
	s.Pool.SpotRatio = 1
	s.Instances = workersIn("a", "a", "b")
	s.Offers = offers("a", "b", "c")
	assert.Equal(t, []string{"c t3.medium Spot", "b t3.medium Spot", "c t3.medium Spot", "a t3.medium Spot"},
		places(plan.Place(s, 4)))
	s.Record.Cooling = []fleet.Cooling{{Market: fleet.Spot, Until: noon.Add(3 * time.Minute),
		Reason: "InsufficientInstanceCapacity"}}
	assert.Equal(t, []string{"c t3.medium OnDemand", "b t3.medium OnDemand"}, places(plan.Place(s, 2)))
}
