package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
)

// outdated is a pool of ten busy workers that are to be replaced, two at a time.
func outdated() plan.Snapshot {
	s := steady()
	s.Pool.Min, s.Pool.Max, s.Pool.MaxBatchUp = 2, 20, 0
	s.Instances = workersIn("a", "b", "a", "b", "a", "b", "a", "b", "a", "b")
	for i := range s.Instances {
		s.Instances[i].Outdated = "its launch template is old"
	}
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Fits, s.Signals[i].Needs = 10, 11, 10
	}
	s.Disruption = plan.Disruption{Nodes: 2, Why: "the budget allows 2"}
	s.Record.LastDown, s.Record.LastUp = ago(time.Second), ago(time.Second)
	return s
}

// needs makes the signals need n workers without a margin, and all with one.
func needs(s *plan.Snapshot, n int) {
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Needs = len(s.Instances), n
	}
}

func TestRollOut(t *testing.T) {
	asked := 0
	simulator := func(keep map[string]bool, most int) plan.Simulator {
		return rooms{keep: keep, most: most, asked: &asked}
	}
	run(t, []row{
		{"what replaces comes first, past cooldowns", outdated, func(*plan.Snapshot) {},
			plan.ScaleUp, plan.Outdated, 2, false},
		{"what the load does not need goes at once", outdated, func(s *plan.Snapshot) { needs(s, 9) },
			plan.ScaleDown, plan.Outdated, 1, false},
		{"as many as the budget allows", outdated, func(s *plan.Snapshot) { needs(s, 4) },
			plan.ScaleDown, plan.Outdated, 2, false},
		{"what replaces has joined", outdated, func(s *plan.Snapshot) {
			s.Instances = append(s.Instances, workersIn("a", "b")...)
			s.Instances[10].ID, s.Instances[10].Node.Name, s.Instances[11].ID,
				s.Instances[11].Node.Name = "i-new-a", "new-a", "i-new-b", "new-b"
		}, plan.ScaleDown, plan.Outdated, 2, false},
		{"one has joined of two", outdated, func(s *plan.Snapshot) {
			s.Instances = append(s.Instances, workersIn("a")...)
			s.Instances[10].ID, s.Instances[10].Node.Name = "i-new-a", "new-a"
		}, plan.ScaleDown, plan.Outdated, 1, false},
		{"also workers whose removal would save nothing", outdated, func(s *plan.Snapshot) {
			needs(s, 4)
			for i := range s.Instances {
				s.Instances[i].FutileRemoval = "a new node was launched for its pods"
			}
		}, plan.ScaleDown, plan.Outdated, 2, false},
		{"no budget", outdated, func(s *plan.Snapshot) { s.Disruption.Nodes = 0 }, plan.Hold, plan.NotIdle, 0, false},
		{"one is not ready, and counts", outdated, func(s *plan.Snapshot) { s.Instances[0].Node.Ready = false },
			plan.ScaleUp, plan.Outdated, 1, false},
		{"one is broken, and counts", outdated, func(s *plan.Snapshot) {
			s.Instances[0].Node.Ready, s.Instances[0].Failed, s.Instances[0].Broken = false, true, true
			needs(s, 9)
			s.Signals[0].Desired, s.Signals[1].Desired = 9, 9
		}, plan.ScaleUp, plan.Outdated, 1, false},
		{"one has not joined, and does not", outdated, func(s *plan.Snapshot) {
			s.Instances[0].Node.Ready, s.Instances[0].Failed = false, true
			needs(s, 9)
			s.Signals[0].Desired, s.Signals[1].Desired = 9, 9
		}, plan.ScaleUp, plan.Outdated, 2, false},
		{"two are not ready", outdated,
			func(s *plan.Snapshot) { s.Instances[0].Node.Ready, s.Instances[1].Node.Ready = false, false },
			plan.Hold, plan.NotIdle, 0, false},
		{"one leaves, and counts", outdated, func(s *plan.Snapshot) {
			s.Instances[0].Leaving = true
			needs(s, 9)
			s.Signals[0].Desired, s.Signals[1].Desired = 9, 9
		},
			plan.ScaleUp, plan.Outdated, 1, false},
		{"one has ended, and does not", outdated, func(s *plan.Snapshot) {
			s.Instances[0].Leaving, s.Instances[0].Ended = true, true
			needs(s, 9)
			s.Signals[0].Desired, s.Signals[1].Desired = 9, 9
		}, plan.ScaleUp, plan.Outdated, 2, false},
		{"paused", outdated, func(s *plan.Snapshot) { s.Disruption.Paused = true }, plan.Hold, plan.NotIdle, 0, false},
		{"a signal is not known", outdated, func(s *plan.Snapshot) { loses(s, "cpu") }, plan.Hold,
			plan.MetricsUnknown, 0, false},
		{"pods are pending", outdated, func(s *plan.Snapshot) { s.Pending = plan.Pending{Known: true, Pods: 1, Due: 1} },
			plan.Hold, plan.BlockedByPendingPods, 0, false},
		{"load comes first", outdated, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 12, time.Hour)
			s.Record.LastUp, s.Record.LastDown = time.Time{}, time.Time{}
		},
			plan.ScaleUp, plan.LoadPredicted, 2, false},
		{"the maximum leaves no place", outdated, func(s *plan.Snapshot) { s.Pool.Max = 10 },
			plan.Hold, plan.NotIdle, 0, false},
		{"the maximum leaves one place", outdated, func(s *plan.Snapshot) { s.Pool.Max = 11 },
			plan.ScaleUp, plan.Outdated, 1, false},
		{"launches fail", outdated, func(s *plan.Snapshot) { s.Record.Failures, s.Record.FailedAt = 1, ago(time.Second) },
			plan.Hold, plan.NotIdle, 0, false},
		{"none may go", outdated, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "its annotation says so"
			}
		}, plan.Hold, plan.NotIdle, 0, false},
		{"some may go: nothing is launched for the others", outdated, func(s *plan.Snapshot) {
			for i := range s.Instances[1:] {
				s.Instances[i].Blocked = "its annotation says so"
			}
		}, plan.ScaleUp, plan.Outdated, 1, false},
		{"their pods fit on new nodes only", outdated, func(s *plan.Snapshot) {
			s.Simulator = simulator(nil, 0)
			needs(s, 9) // the spare one has no room
		}, plan.ScaleUp, plan.Outdated, 2, false},
		{"their pods fit nowhere, not even on new nodes", outdated, func(s *plan.Snapshot) {
			keep := map[string]bool{}
			for _, w := range s.Instances {
				keep[w.Node.Name] = true
			}
			s.Simulator = simulator(keep, 0)
		}, plan.Hold, plan.NotIdle, 0, false},
	})
}

// Replacements are in the zones of those that they replace, and keep the markets.
func TestReplacementsAreInTheSameZone(t *testing.T) {
	s := outdated()
	s.Pool.SpotRatio, s.Pool.OnDemandBase, s.Pool.RemovalOrder = 1, 2, []plan.Scorer{plan.Oldest}
	s.Instances[0].Market, s.Instances[1].Market = fleet.OnDemand, fleet.OnDemand
	assert.Equal(t, []string{"a t3.medium OnDemand", "b t3.medium OnDemand"}, places(plan.Decide(s).Placements))
}

// A roll-out ends: every worker is replaced, with never fewer ready ones than the load needs, and none twice.
func TestRollOutEnds(t *testing.T) {
	for _, budget := range []int{1, 2, 3, 10} {
		t.Run(fmt.Sprint("a budget of ", budget), func(t *testing.T) {
			s := outdated()
			s.Disruption.Nodes = budget
			launched := 0
			for range 100 {
				needs(&s, 10) // with a margin all that there are are needed
				d := plan.Decide(s)
				check(t, s, d)
				if d.Rollout.Outdated == 0 {
					break
				}
				require.NotEmpty(t, d.Rollout.Message)
				require.Equal(t, plan.Outdated, d.Reason, d.Message)
				require.LessOrEqual(t, len(d.Targets), budget)
				require.LessOrEqual(t, len(d.Placements), budget)
				for _, p := range d.Placements {
					launched++
					w := workersIn(p.Zone)[0]
					w.ID, w.Node.Name, w.Placement = fmt.Sprint("i-new", launched), fmt.Sprint("new", launched), p
					s.Instances = append(s.Instances, w)
				}
				for _, target := range d.Targets {
					for i, w := range s.Instances {
						if w.ID == target.InstanceID {
							require.NotEmpty(t, w.Outdated)
							s.Instances = append(s.Instances[:i:i], s.Instances[i+1:]...)
							break
						}
					}
				}
				require.GreaterOrEqual(t, len(s.Instances), 10)
				require.LessOrEqual(t, len(s.Instances), 10+budget)
			}
			require.Equal(t, 10, launched)
			require.Len(t, s.Instances, 10)
			require.Equal(t, plan.Rollout{}, plan.Decide(s).Rollout)
		})
	}
}

// Messages while nothing is replaced.
func TestRollOutMessages(t *testing.T) {
	for want, change := range map[string]func(*plan.Snapshot){
		"the budget allows 0": func(s *plan.Snapshot) { s.Disruption = plan.Disruption{Why: "the budget allows 0"} },
		"the budget allows 2, and 2 are not ready or already leaving": func(s *plan.Snapshot) {
			s.Instances[0].Leaving, s.Instances[1].Node.Ready = true, false
			needs(s, 8)
			s.Signals[0].Desired, s.Signals[1].Desired = 9, 9
		},
		"disruption is paused": func(s *plan.Snapshot) { s.Disruption.Paused = true },
		"a new worker must come first, and the maximum of 10 leaves no place for it: raise max by one": func(s *plan.Snapshot) { s.Pool.Max = 10 },
		"waits for something else: No change to 10 workers: a ScaleUp is open (cpu is 0.5 and will be 0.5 in 0s, with a threshold of 0.7)": func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionUp)
		},
		"being drained or terminated: 3 workers": func(s *plan.Snapshot) {
			s.Record.Action = opened(state.ActionDown)
			for i := range 3 {
				s.Instances[i].Leaving = true
			}
			needs(s, 7)
			s.Signals[0].Desired, s.Signals[1].Desired = 7, 7
		},
		"the budget allows 0; whether 2 workers must be replaced is unknown: no permission": func(s *plan.Snapshot) {
			s.Disruption = plan.Disruption{Why: "the budget allows 0"}
			for i := range 2 {
				s.Instances[i].Outdated, s.Instances[i].OutdatedErr = "", "no permission"
			}
		},
		"whether 10 workers must be replaced is unknown: no permission": func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Outdated, s.Instances[i].OutdatedErr = "", "no permission"
			}
		},
		"no worker can be removed, such as node-000: its annotation says so": func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Blocked = "its annotation says so"
			}
		},
	} {
		s := outdated()
		change(&s)
		assert.Equal(t, want, plan.Decide(s).Rollout.Message)
	}
}

// A roll-out is not over while a worker that it replaces is there, or while it is not known whether
// one must be replaced.
func TestRollOutCountsWhatIsStillThere(t *testing.T) {
	for name, test := range map[string]struct {
		worker            plan.Instance
		outdated, unknown int
	}{
		"it is drained":      {plan.Instance{Instance: fleet.Instance{Outdated: "x"}, Leaving: true}, 1, 0},
		"it has no Node yet": {plan.Instance{Instance: fleet.Instance{Outdated: "x"}}, 1, 0},
		"it has ended": {plan.Instance{Instance: fleet.Instance{Outdated: "x"},
			Leaving: true, Ended: true}, 0, 0},
		"it never joined": {plan.Instance{Instance: fleet.Instance{Outdated: "x"}, Failed: true}, 0, 0},
		"it is not known": {plan.Instance{Instance: fleet.Instance{OutdatedErr: "no permission"}}, 0, 1},
		"it goes anyway": {plan.Instance{Instance: fleet.Instance{OutdatedErr: "no permission"},
			Leaving: true}, 0, 0},
		"it is outdated for its age": {plan.Instance{Instance: fleet.Instance{Outdated: "x",
			OutdatedErr: "no permission"}}, 1, 0},
		"it is not known of a failed one": {plan.Instance{Instance: fleet.Instance{OutdatedErr: "no permission"},
			Failed: true}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := steady()
			test.worker.ID, test.worker.Worker = "i-other", true
			s.Instances = append(s.Instances, test.worker)
			r := plan.Decide(s).Rollout
			assert.Equal(t, []int{test.outdated, test.unknown}, []int{r.Outdated, r.Unknown})
			assert.Equal(t, test.outdated+test.unknown > 0, r.Message != "")
		})
	}
}

// A target is checked again before it is touched.
func TestObjectionsToReplacing(t *testing.T) {
	for want, change := range map[string]func(*plan.Snapshot){
		"": func(s *plan.Snapshot) { needs(s, 9) },
		"10 ready workers are needed, and without it there are 9": func(*plan.Snapshot) {},
		"it is not outdated any more": func(s *plan.Snapshot) {
			needs(s, 9)
			s.Instances[0].Outdated = ""
		},
		"disruption is paused": func(s *plan.Snapshot) { s.Disruption.Paused = true },
	} {
		s := outdated()
		s.Instances[0].Leaving = true
		change(&s)
		assert.Equal(t, want, plan.Objection(s, plan.Outdated, "i-000", nil))
	}
}

// The budget is checked again when the turn of a target comes, for it and for those that have begun.
func TestObjectionsOfBudgets(t *testing.T) {
	for want, change := range map[string]func(*plan.Snapshot){
		"": func(s *plan.Snapshot) { s.Disruption = plan.Disruption{Nodes: 1, Why: "the budget allows 1"} },
		"the budget allows 1, and with it 2 workers would be out of service": func(s *plan.Snapshot) {
			s.Instances[1].Leaving = true
			s.Disruption = plan.Disruption{Nodes: 1, Why: "the budget allows 1"}
		},
		"the budget allows 2, and with it 3 workers would be out of service": func(s *plan.Snapshot) {
			s.Instances[1].Node.Ready = false
			s.Instances[2].Failed, s.Instances[2].Broken = true, true
		},
		"the budget allows 1, and with it 3 workers would be out of service": func(s *plan.Snapshot) {
			s.Instances[1].Leaving = true // it is drained as it is taken back
			s.Record.Interruptions = interruptions("i-001", "i-002")
			s.Instances[3].Leaving, s.Instances[3].Failed = true, true // it has not joined
			s.Disruption = plan.Disruption{Nodes: 1, Why: "the budget allows 1"}
		},
		"the budget allows 0, and with it 1 worker would be out of service": func(s *plan.Snapshot) {
			s.Disruption = plan.Disruption{Why: "the budget allows 0"}
		},
	} {
		s := outdated()
		needs(&s, 5)
		s.Instances[0].Leaving, s.Instances[9].Leaving = true, true
		change(&s)
		assert.Equal(t, want, plan.Objection(s, plan.Outdated, "i-000", []string{"i-009"}))
	}
}

// The number of workers before the first replacement is recorded.
func TestReplacing(t *testing.T) {
	for name, test := range map[string]struct {
		before int
		change func(*plan.Snapshot)
		want   int
	}{
		"nothing is launched":      {0, func(s *plan.Snapshot) { needs(s, 9) }, 0},
		"the first are launched":   {0, func(*plan.Snapshot) {}, 10},
		"more are launched":        {9, func(*plan.Snapshot) {}, 9},
		"one is removed":           {10, func(s *plan.Snapshot) { needs(s, 9) }, 10},
		"some have gone":           {12, func(*plan.Snapshot) {}, 10},
		"some are being removed":   {12, func(s *plan.Snapshot) { s.Record.Action = opened(state.ActionDown) }, 12},
		"the cloud takes one back": {10, func(s *plan.Snapshot) { s.Record.Interruptions = interruptions("i-000") }, 10},
		"unknown workers":          {12, func(s *plan.Snapshot) { s.WorkersErr = "down" }, 12},
		"load needs more than there are": {8, func(s *plan.Snapshot) {
			wants(s, "cpu", 0.9, 12, time.Hour)
			s.Record.LastUp, s.Record.LastDown = time.Time{}, time.Time{}
		}, 12},
		"pods need more than before": {8, func(s *plan.Snapshot) {
			pends(s, 10)
			s.Record.LastUp, s.Record.LastDown = time.Time{}, time.Time{}
		}, 9},
		"none is outdated any more": {10, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Outdated = ""
			}
		}, 0},
		"the last ones are being removed": {10, func(s *plan.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Outdated = ""
			}
			s.Record.Action = opened(state.ActionDown)
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := outdated()
			s.Record.WorkersBeforeRollout = test.before
			test.change(&s)
			assert.Equal(t, test.want, plan.Decide(s).WorkersBeforeRollout)
		})
	}
}

// rollsOut plays decisions one after the other until nothing more is done, and returns how many
// were launched. Decisions are carried out at once, and places of pods are recorded.
func rollsOut(t *testing.T, s *plan.Snapshot) int {
	t.Helper()
	launched := 0
	for range 100 {
		for i := range s.Signals {
			s.Signals[i].Desired = min(s.Signals[i].Desired, len(s.Instances))
		}
		d := plan.Decide(*s)
		check(t, *s, d)
		s.Record.WorkersBeforeRollout = d.WorkersBeforeRollout
		for _, r := range d.Refused {
			for i := range s.Instances {
				if s.Instances[i].Node.Name == r.Worker && r.Unmovable {
					s.Instances[i].Blocked = r.Reason
				}
			}
		}
		for _, p := range d.Placements {
			launched++
			w := workersIn(p.Zone)[0]
			w.ID, w.Node.Name, w.Placement = fmt.Sprint("i-new", launched), fmt.Sprint("new", launched), p
			s.Instances = append(s.Instances, w)
		}
		for _, target := range d.Targets {
			s.Instances = slices.DeleteFunc(s.Instances, func(w plan.Instance) bool { return w.ID == target.InstanceID })
		}
		s.Now = s.Now.Add(20 * time.Minute)
		s.Record.LastUp, s.Record.LastDown = s.Now.Add(-20*time.Minute), s.Now.Add(-20*time.Minute)
		if s.Signals[0].Now < 0.3 {
			s.Record.IdleSince = s.Now.Add(-time.Hour)
		}
	}
	return launched
}

// A roll-out ends, or says why it does not, whatever the fleet keeps: nothing is launched in place
// of a worker that stays.
func TestRollOutAsksTheFleetAsItWillBe(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*plan.Snapshot)
		launched, left int
		message        string
	}{
		"nothing is launched in zone c any more": {func(s *plan.Snapshot) { s.Offers = offers("a", "b") }, 7, 0, ""},
		"zone c has no capacity": {func(s *plan.Snapshot) {
			s.Record.Cooling = []fleet.Cooling{{Zone: "c", Until: s.Now.Add(24 * time.Hour)}}
			for h := range 40 {
				s.Record.Cooling = append(s.Record.Cooling,
					fleet.Cooling{Zone: "c", Until: s.Now.Add(time.Duration(h) * time.Hour)})
			}
		}, 6, 1, "node-006 stays, as it is the last ready one of zone c"},
		"On-Demand has no capacity": {func(s *plan.Snapshot) {
			s.Pool.OnDemandBase, s.Pool.SpotRatio = 2, 1
			s.Instances[0].Market, s.Instances[6].Market = fleet.OnDemand, fleet.OnDemand
			for h := range 40 {
				s.Record.Cooling = append(s.Record.Cooling,
					fleet.Cooling{Market: fleet.OnDemand, Until: s.Now.Add(time.Duration(h) * time.Hour)})
			}
		}, 5, 2, "every kind of instance that could be launched is cooling after errors"},
		"On-Demand workers are kept": {func(s *plan.Snapshot) {
			s.Pool.OnDemandBase, s.Pool.SpotRatio = 2, 1
			s.Instances[0].Market, s.Instances[6].Market = fleet.OnDemand, fleet.OnDemand
		}, 7, 0, ""},
	} {
		for _, idle := range []bool{false, true} {
			for _, budget := range []int{1, 3} {
				t.Run(fmt.Sprint(name, ", idle ", idle, ", a budget of ", budget), func(t *testing.T) {
					s := outdated()
					s.Pool.Min, s.Disruption.Nodes = 7, budget
					s.Offers = offers("a", "b", "c")
					s.Instances = workersIn("a", "b", "a", "b", "a", "b", "c")
					for i := range s.Instances {
						s.Instances[i].Outdated = "its launch template is old"
					}
					for i := range s.Signals {
						s.Signals[i].Desired, s.Signals[i].Fits, s.Signals[i].Needs = 7, 8, 7
						if idle {
							s.Signals[i].Desired, s.Signals[i].Fits, s.Signals[i].Needs = 1, 1, 1
							s.Signals[i].Now, s.Signals[i].Predicted = 0.1, 0.1
						}
					}
					test.change(&s)
					assert.Equal(t, test.launched, rollsOut(t, &s))
					d := plan.Decide(s)
					assert.Equal(t, plan.Rollout{Outdated: test.left, Message: test.message}, d.Rollout)
					assert.Len(t, s.Instances, 7)
				})
			}
		}
	}
}

// Of one worker to spare that takes no other's place, the roll-out makes no replacement that it waits for.
func TestASpareWorkerOfAnotherZone(t *testing.T) {
	s := outdated()
	s.Pool.Min, s.Disruption.Nodes = 3, 1
	s.Offers = offers("a", "b", "c")
	s.Instances = workersIn("a", "b", "a", "b", "c")
	s.Instances[4].Outdated = "its launch template is old"
	for i := range s.Signals {
		s.Signals[i].Desired, s.Signals[i].Fits, s.Signals[i].Needs = 5, 5, 4
	}
	assert.Equal(t, 1, rollsOut(t, &s))
	assert.Zero(t, plan.Decide(s).Rollout)
}

// Unmovable workers are recorded, so that they do not delay all others.
func TestWorkersWithoutAHomeHoldUpNoOthers(t *testing.T) {
	for name, most := range map[string]int{"there is a place for a new one": 101, "there is none": 100} {
		t.Run(name, func(t *testing.T) {
			asked, keep := 0, map[string]bool{}
			s := outdated()
			s.Pool.Max, s.Disruption.Nodes = most, 5
			s.Instances = workersIn(make([]string, 100)...)
			s.Offers = offers("")
			for i := range s.Instances {
				s.Instances[i].Outdated = "its launch template is old"
				keep[s.Instances[i].Node.Name] = i < 80
			}
			for i := range s.Signals {
				s.Signals[i].Fits = 101
			}
			needs(&s, 90)
			s.Simulator = rooms{keep: keep, most: 100, asked: &asked}
			rollsOut(t, &s)
			assert.Equal(t, 80, plan.Decide(s).Rollout.Outdated)
			assert.NotZero(t, asked)
		})
	}
}

// The number of simulations is bounded, and is two if all pods fit elsewhere.
func TestHomesAreAskedAFewTimes(t *testing.T) {
	for name, test := range map[string]struct {
		keep, needs, most int // how many of them, and of those that may go together
		asked             int
		targets, launched int
	}{
		"all fit elsewhere":         {0, 100, 1000, 2, 500, 0},
		"half of them have":         {0, 100, 250, 25, 250, 0},
		"all have one on new nodes": {0, 1000, 0, 2, 0, 500},
		"none has one":              {1000, 100, 1000, 2 * 64, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked, keep := 0, map[string]bool{}
			s := outdated()
			s.Pool.Max, s.Disruption.Nodes = 2000, 1000
			s.Instances = workersIn(make([]string, 1000)...)
			s.Offers = offers("")
			for i := range s.Instances {
				s.Instances[i].Outdated = "its launch template is old"
				keep[s.Instances[i].Node.Name] = i < test.keep
			}
			for i := range s.Signals {
				s.Signals[i].Fits = 1001
			}
			needs(&s, test.needs)
			s.Simulator = rooms{keep: keep, most: test.most, asked: &asked}
			d := plan.Decide(s)
			assert.LessOrEqual(t, asked, test.asked)
			assert.Len(t, d.Targets, test.targets)
			assert.Len(t, d.Placements, test.launched)
		})
	}
}

// Replacements hold back removals permanently, and no needed launch.
func TestReplacementsDoNotHoldBackLaunches(t *testing.T) {
	just := func(s *plan.Snapshot) {
		s.Record.LastSwap, s.Record.LastUp, s.Record.LastDown = ago(time.Second), ago(time.Hour), ago(time.Hour)
	}
	run(t, []row{
		{"load", nil, func(s *plan.Snapshot) { just(s); wants(s, "cpu", 0.9, 5, time.Hour) }, plan.ScaleUp,
			plan.LoadPredicted, 1, false},
		{"pods", nil, func(s *plan.Snapshot) { just(s); pends(s, 5) }, plan.ScaleUp, plan.PodsPending, 1, false},
		{"an idle pool", idle, just, plan.Hold, plan.CoolingDown, 0, false},
		{"an idle pool, after a scale-up", idle,
			func(s *plan.Snapshot) { just(s); s.Record.LastUp, s.Record.LastSwap = ago(time.Second), ago(time.Hour) },
			plan.Hold, plan.CoolingDown, 0, false},
	})
}

// What replaces a failed launch of a roll-out is in the same zone, and On-Demand if that was.
func TestInsteadOfOutdated(t *testing.T) {
	s := outdated()
	s.Pool.SpotRatio = 1
	failed := fleet.Placement{Zone: "a", Subnet: "subnet-a", InstanceType: "t3.medium", Market: fleet.OnDemand}
	instead := func(outdated bool) []string {
		s.Record.Action = opened(state.ActionUp, lost(state.Slot{Placement: failed, Outdated: outdated}, true))
		var out []fleet.Placement
		for _, one := range plan.Decide(s).Substitutes {
			out = append(out, one.Placement)
		}
		return places(out)
	}
	assert.Equal(t, []string{"a t3.large OnDemand"}, instead(true))
	assert.Equal(t, []string{"a t3.medium Spot"}, instead(false), "others may be anything")
	failed.Market = fleet.Spot
	assert.Equal(t, []string{"a t3.large Spot"}, instead(true))
	s.Offers = offers("b")
	assert.Empty(t, instead(true))
}
