package nodepool

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

var errKilled = errors.New("the process has been killed")

// killer ends a process at one of its acts: before the act, or after it and before the process gets the result.
type killer struct {
	mu    sync.Mutex
	at    int // the act, from 0; -1 = never
	after bool
	acts  []time.Time // the time of each act
	dead  bool
	now   func() time.Time
}

// act runs one act of the process.
func (k *killer) act(do func() error) error {
	k.mu.Lock() // calls of a round are made at the same time
	defer k.mu.Unlock()
	if k.dead {
		return errKilled
	}
	n := len(k.acts)
	k.acts = append(k.acts, k.now())
	if n != k.at {
		return do()
	}
	k.dead = true
	if k.after {
		_ = do()
	}
	return errKilled
}

// scenario is an action that a pool carries out to its end.
type scenario struct {
	name  string
	begin func(*rig)
	ended func(*rig) bool
	check func(*rig)
}

var scenarios = []scenario{
	{
		name:  "scale up",
		begin: func(r *rig) { r.spec.Plan.Min = 3 },
		ended: func(r *rig) bool { return r.running() >= 3 && r.record().Action == nil && !r.record().LastUp.IsZero() },
		check: func(r *rig) { require.Equal(r, 3, r.running()) },
	},
	{
		name: "scale up with replacement",
		begin: func(r *rig) {
			r.spec.Plan.Min = 2
			r.world.capacity = func(l provider.Launch) error {
				if l.Zone == "a" {
					return refused(provider.Capacity)
				}
				return nil
			}
		},
		ended: func(r *rig) bool { return r.record().Action == nil && !r.record().LastUp.IsZero() },
		check: func(r *rig) { require.Equal(r, 2, r.running()) },
	},
	{
		name: "scale up with several types",
		begin: func(r *rig) {
			r.spec.Plan.Min = 3
			r.priced()
			r.world.capacity = func(l provider.Launch) error {
				if l.InstanceType == "t3.medium" || l.Zone == "b" && l.Market == fleet.Spot {
					return refused(provider.Capacity)
				}
				return nil
			}
		},
		ended: func(r *rig) bool {
			return r.running() >= 3 && r.record().Action == nil && !r.record().LastUp.IsZero()
		},
		check: func(r *rig) {
			require.Equal(r, 3, r.running())
			for _, i := range r.world.instances {
				require.NotEqual(r, "t3.medium", i.InstanceType)
			}
		},
	},
	{
		name: "scale up by calls for several",
		begin: func(r *rig) {
			r.spec.Plan.Min, r.world.visibility = 5, 20*time.Second
			r.world.capacity = func(l provider.Launch) error { // zone a has two of three
				n := 0
				for _, i := range r.world.instances {
					if i.Zone == "a" {
						n++
					}
				}
				if l.Zone == "a" && n == 2 {
					return refused(provider.Capacity)
				}
				return nil
			}
		},
		ended: func(r *rig) bool {
			return r.running() >= 5 && r.record().Action == nil && !r.record().LastUp.IsZero()
		},
		check: func(r *rig) {
			require.Equal(r, 5, r.running())
			require.Equal(r, 5, r.world.launches)
		},
	},
	{
		name: "scale up that grows",
		begin: func(r *rig) {
			want := func(n int) {
				r.signals.mu.Lock()
				defer r.signals.mu.Unlock()
				r.signals.signals = []plan.Signal{{Name: "requests", Known: true, Threshold: 0.7, Desired: n}}
			}
			want(2)
			r.world.capacity = func(l provider.Launch) error {
				if l.Zone == "b" {
					want(4)
				}
				return nil
			}
		},
		ended: func(r *rig) bool { return r.running() >= 4 && r.record().Action == nil },
		check: func(r *rig) { require.Equal(r, 4, r.running()) },
	},
	{
		name: "join failed",
		begin: func(r *rig) {
			r.spec.Plan.Min = 1
			r.spec.Join = config.Join{Timeout: time.Minute, KeepFailedFor: 30 * time.Second}
			r.firstNeverJoins()
		},
		ended: func(r *rig) bool {
			return len(r.world.terminated) == 1 && len(r.record().PendingTerminations) == 0 &&
				r.record().Action == nil && !r.record().LastUp.IsZero()
		},
		check: func(r *rig) { require.Equal(r, 1, r.running()) },
	},
	{
		name: "scale down",
		begin: func(r *rig) {
			r.world.add(3)
			r.oneZone()
			r.spec.Plan.Min, r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.For = 1, 2, 10*time.Second
			r.load("node-i-old0", &fakePod{name: "x"})
			r.load("node-i-old1", &fakePod{name: "y"})
			r.load("node-i-old2", &fakePod{name: "z"})
		},
		ended: func(r *rig) bool { return r.running() == 1 && r.record().Action == nil && len(r.world.nodes) == 1 },
		check: func(r *rig) { require.Len(r, r.world.terminated, 2) },
	},
	{
		name: "scale down of several at once",
		begin: func(r *rig) {
			r.world.add(5)
			r.oneZone()
			r.spec.Plan.Min, r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.For = 1, 4, 10*time.Second
			r.world.leaving = 30 * time.Second
			for _, name := range r.nodeNames() {
				r.load(name, &fakePod{name: "x"})
			}
		},
		ended: func(r *rig) bool { return r.running() == 1 && r.record().Action == nil && len(r.world.nodes) == 1 },
		check: func(r *rig) { require.Len(r, r.world.terminated, 4) },
	},
	{
		name: "roll-out",
		begin: func(r *rig) {
			r.world.add(2)
			r.oneZone()
			r.spec.Plan.Min = 2
			for id, i := range r.world.instances {
				i.Outdated = "its launch template is old"
				r.load("node-"+id, &fakePod{name: "x"})
			}
		},
		ended: func(r *rig) bool { return r.left() == 0 && r.record().Action == nil && len(r.world.nodes) == 2 },
		check: func(r *rig) {
			require.Equal(r, 2, r.running())
			require.Len(r, r.world.terminated, 2)
		},
	},
	{
		name: "roll-out under a level",
		begin: func(r *rig) {
			r.world.add(3)
			r.oneZone()
			r.signals.level, r.spec.Disruption.Budgets = true, budgets("2")
			for id, i := range r.world.instances {
				i.Outdated = "its launch template is old"
				r.load("node-"+id, &fakePod{name: "x"})
			}
		},
		ended: func(r *rig) bool {
			require.GreaterOrEqual(r, r.running(), 3)
			return r.left() == 0 && r.record().WorkersBeforeRollout == 0 && len(r.world.nodes) == r.running()
		},
		check: func(r *rig) {
			require.Equal(r, 3, r.running())
			require.Len(r, r.world.terminated, 3)
		},
	},
	{
		name: "place of a kept instance is needed",
		begin: func(r *rig) {
			r.spec.Plan.Min, r.spec.Plan.Max = 2, 2
			r.spec.Join = config.Join{Timeout: time.Minute, KeepFailedFor: 24 * time.Hour}
			r.firstNeverJoins()
		},
		ended: func(r *rig) bool {
			return len(r.world.terminated) == 1 && len(r.world.nodes) == 2 && r.record().Action == nil
		},
		check: func(r *rig) { require.Equal(r, 2, r.running()) },
	},
	{
		name: "failed drain",
		begin: func(r *rig) {
			r.world.add(1)
			r.spec.Plan.Min, r.spec.Plan.Idle.For, r.spec.Drain.Timeout = 0, 10*time.Second, 20*time.Second
			r.load("node-i-old0", &fakePod{name: "x", refused: "no"})
		},
		ended: func(r *rig) bool { return len(r.record().DrainBackoff) == 1 && r.record().Action == nil },
		check: func(r *rig) { require.Equal(r, 1, r.running()) },
	},
	{
		name: "interruption",
		begin: func(r *rig) {
			r.world.add(2)
			r.world.leaving = 30 * time.Second
			r.spec.Plan.Min = 2
			r.load("node-i-old0", &fakePod{name: "x"})
			r.notices.messages = []provider.Message{{InstanceID: "i-old0", Kind: provider.MessageInterruption,
				Deadline: r.clock.now().Add(2 * time.Minute)}}
		},
		ended: func(r *rig) bool {
			return len(r.notices.done) > 0 && len(r.world.terminated) == 1 &&
				len(r.record().Interruptions) == 0 && r.record().Action == nil
		},
		check: func(r *rig) { require.Equal(r, 2, r.running()) },
	},
	{
		name: "repair",
		begin: func(r *rig) {
			r.world.add(4)
			r.repairs(5*time.Minute, 4)
			r.spec.Drain.Timeout = 30 * time.Second
			r.load("node-i-old0", &fakePod{name: "x"}, &fakePod{name: "y", refused: "no"},
				&fakePod{name: "z", blocks: "is kept"})
			r.world.nodes["node-i-old0"].conditions = unwell
		},
		ended: func(r *rig) bool {
			return len(r.world.terminated) == 1 && len(r.record().Repairs) == 0 && r.record().Action == nil &&
				len(r.world.nodes) == 4 && r.running() == 4
		},
		check: func(r *rig) {
			require.Equal(r, []string{"i-old0"}, r.world.terminated)
			require.Equal(r, 1, r.world.launches)
		},
	},
	{
		name: "repair of a node without a kubelet",
		begin: func(r *rig) {
			r.world.add(4)
			r.repairs(5*time.Minute, 4)
			r.spec.Drain.Timeout = 30 * time.Second
			r.load("node-i-old0", &fakePod{name: "x"})
			r.breakNode("node-i-old0")
			r.world.leaving = 2 * time.Minute
			r.stepEvery(10 * time.Second) // the pool waits minutes for its pods
		},
		ended: func(r *rig) bool {
			return len(r.world.terminated) == 1 && len(r.record().Repairs) == 0 && r.record().Action == nil &&
				len(r.world.nodes) == 4 && r.running() == 4
		},
		check: func(r *rig) {
			require.Equal(r, []string{"i-old0"}, r.world.terminated)
			require.Equal(r, 1, r.world.launches)
		},
	},
	{
		name: "delete",
		begin: func(r *rig) {
			r.world.add(3)
			r.spec.Plan.Min, r.spec.Plan.Deleting = 3, true
			r.load("node-i-old0", &fakePod{name: "x"})
			r.load("node-i-old2", &fakePod{name: "y"}, &fakePod{name: "z"})
		},
		ended: func(r *rig) bool { return r.releaseFinalizer > 0 },
		check: func(r *rig) {
			require.Len(r, r.world.terminated, 3)
			require.Zero(r, r.world.launches)
		},
	},
	{
		name: "delete during a scale-up",
		begin: func(r *rig) {
			r.world.add(1)
			r.spec.Plan.Min, r.world.visibility, r.world.leaving = 4, 70*time.Second, 20*time.Second
			r.world.joins = func(l provider.Launch) bool { return l.Slot != 1 }
			r.world.lost = func(l provider.Launch) error {
				if l.Slot == 1 {
					r.spec.Plan.Deleting = true
					return errLost
				}
				return nil
			}
		},
		ended: func(r *rig) bool { return r.releaseFinalizer > 0 },
		check: func(r *rig) { require.Equal(r, 1+r.world.launches, len(r.world.terminated)) },
	},
}

// over reports whether the scenario has ended, and the instances that it ends are gone with their Nodes.
func (s scenario) over(r *rig) bool { return s.ended(r) && len(r.record().Endings) == 0 }

// start returns a world in which the scenario has begun, with a process that k kills.
func (s scenario) start(t *testing.T, k *killer) *rig {
	r := newRig(t)
	r.mortal(k)
	s.begin(r)
	return r
}

// play runs a scenario to its end, with a process that is killed and others after it that are not.
func (s scenario) play(t *testing.T, k *killer) {
	r := s.start(t, k)
	for limit := r.clock.now().Add(90 * time.Minute); ; r.clock.advance(r.step()) {
		require.True(t, r.clock.now().Before(limit), "%s has not ended; record: %+v; health: %v",
			s.name, r.record(), r.health)
		r.deliver()
		r.tick()
		if k.dead {
			r.clock.advance(journal.LeaseTerm)
			r.restart()
			k = &killer{at: -1}
			r.mortal(k)
			r.tick()
			r.clock.advance(journal.LeaseTerm)
		}
		if s.over(r) {
			break
		}
	}
	r.spec.Plan.Idle.For = time.Hour
	for range 10 {
		r.clock.advance(30 * time.Second)
		r.tick()
	}
	r.clean()
	require.Nil(t, r.record().Action)
	r.launchedOnce()
	s.check(r)
}

// launchedOnce requires that no call has launched more instances than were requested.
func (r *rig) launchedOnce() {
	r.Helper()
	launched := map[string]int{}
	for _, i := range r.world.instances {
		launched[i.Token]++
		require.False(r, i.Token != "" && launched[i.Token] > max(1, i.launch.Count),
			"%d instances for %s", launched[i.Token], i.Token)
	}
}

// crashes calls crash with a killer for each state in which a killed process can leave the world.
// run plays the scenario with a killer that kills no process, and so finds the acts.
func crashes(t *testing.T, run, crash func(*testing.T, *killer)) {
	all := &killer{at: -1}
	run(t, all)
	require.Greater(t, len(all.acts), 4)
	for at, when := range all.acts {
		for _, after := range []bool{false, true} {
			// A kill before an act leaves the same world as one after the previous act of the same moment.
			if after || at == 0 || !when.Equal(all.acts[at-1]) {
				t.Run(fmt.Sprintf("%d %t", at, after), func(t *testing.T) { crash(t, &killer{at: at, after: after}) })
			}
		}
	}
	t.Logf("%d acts", len(all.acts))
}

// step returns the time that the loop waits after the last cycle.
func (r *rig) step() time.Duration { return r.pool.pause(r.health) }

// deliver passes on the messages that were not deleted from the queue.
func (r *rig) deliver() {
	for _, m := range r.notices.messages {
		r.pool.Notify(m)
	}
	if len(r.notices.done) > 0 {
		r.notices.messages = nil
	}
}

// labelled runs a scenario whose Nodes have the pool's label, until it ends or the process is killed.
func (s scenario) labelled(t *testing.T, k *killer) *rig {
	r := s.start(t, k)
	for _, n := range r.world.nodes {
		n.object.Labels[cluster.LabelPool] = "workers"
	}
	for !s.over(r) {
		r.deliver()
		if r.tick(); k.dead {
			break
		}
		r.clock.advance(r.step())
	}
	return r
}

// loseInstances ends all instances at the moment at which the process is killed.
func (s scenario) loseInstances(t *testing.T, k *killer) {
	r := s.labelled(t, k)
	require.True(t, k.dead)
	for _, i := range r.world.instances {
		if i.endedAt.IsZero() {
			i.endedAt = r.clock.now()
		}
	}
	for _, n := range r.world.nodes {
		n.pods = nil
	}
	r.spec.Plan.Min, r.signals.signals = 0, nil
	r.restart()
	r.clock.advance(journal.LeaseTerm)
	r.pass(5 * time.Minute)
	for name, n := range r.world.nodes {
		require.True(t, n.ready, "act %d %t: %s is the node of an instance that has gone", k.at, k.after, name)
	}
}

func testManyProcesses(t *testing.T, from, to uint64) {
	if v := os.Getenv("FORESAIL_SEEDS"); v != "" {
		_, err := fmt.Sscanf(v, "%d-%d", &from, &to)
		require.NoError(t, err, "FORESAIL_SEEDS=%s: must be the first seed and the one after the last, such as 10-500", v)
	}
	var repairs atomic.Int64
	t.Cleanup(func() { assert.Positive(t, repairs.Load()) })
	for seed := from; seed < to; seed++ {
		for name, often := range map[string]chances{
			"seldom": {restarts: 0.01, ends: 0.0005, notices: 0.001},
			"often":  {restarts: 0.05, ends: 0.004, notices: 0.003},
		} {
			t.Run(fmt.Sprintf("%d/%s", seed, name), func(t *testing.T) {
				t.Parallel()
				repairs.Add(int64(manyProcesses(t, rand.New(rand.NewPCG(seed, 7)), often)))
			})
		}
	}
}

// chances are how likely it is in each cycle that a process restarts, and that each instance ends or gets a notice.
type chances struct{ restarts, ends, notices float64 }

// manyProcesses returns how many nodes were repaired.
func manyProcesses(t *testing.T, random *rand.Rand, often chances) int {
	r := newRig(t)
	chance := func(p float64) bool { return random.Float64() < p }
	calm := false
	r.world.add(3)
	if chance(0.5) {
		r.priced()
	}
	if chance(0.5) {
		r.world.leaving = 40 * time.Second
	}
	r.spec.Plan.Min, r.spec.Plan.MaxBatchDown, r.spec.Plan.Idle.For = 2, 2, 20*time.Second
	r.spec.Plan.CooldownUp, r.spec.Plan.CooldownDown, r.spec.Plan.SpotRatio = 30*time.Second, 30*time.Second, 0.5
	r.spec.Join = config.Join{Timeout: 2 * time.Minute, KeepFailedFor: time.Minute}
	r.spec.Drain.Timeout = time.Minute
	r.spec.Plan.Repair.Conditions = []plan.UnhealthyCondition{
		{Type: "KernelDeadlock", Status: "True", After: 2 * time.Minute},
		{Type: "Ready", Status: "Unknown", After: 2 * time.Minute},
	}
	r.store.before = func(state.Record) error {
		if !calm && chance(0.03) {
			return errors.New("down")
		}
		return nil
	}
	r.store.after = func(state.Record) error {
		if !calm && chance(0.03) {
			return errLost
		}
		return nil
	}
	r.world.capacity = func(provider.Launch) error {
		classes := []provider.Class{provider.Capacity, provider.Quota, provider.Throttled, provider.Address,
			provider.Unknown, provider.Invalid}
		if !calm && chance(0.3) {
			return refused(classes[random.IntN(len(classes))])
		}
		return nil
	}
	r.world.lost = func(provider.Launch) error {
		if !calm && chance(0.1) {
			return errLost
		}
		return nil
	}
	r.world.joins = func(provider.Launch) bool { return calm || chance(0.1) }

	processes := []*Pool{}
	offsets := []time.Duration{0, time.Hour, -time.Hour}
	start := func(n int) *Pool {
		r.runs++
		return r.process(fmt.Sprintf("run-%d", r.runs), func() time.Time { return r.clock.now().Add(offsets[n%3]) })
	}
	for n := range 3 {
		processes = append(processes, start(n))
	}
	for range 1500 {
		n := random.IntN(len(processes))
		if chance(often.restarts) {
			processes[n] = start(n)
		}
		// Errors are reported; only their consequences matter here.
		_, _ = processes[n].Tick(t.Context())
		require.Empty(t, r.world.violations)
		r.clock.advance(time.Duration(random.IntN(3000)) * time.Millisecond)
		if chance(0.01) {
			r.clock.advance(time.Duration(random.IntN(120)) * time.Second)
		}
		r.disturb(random, processes, often)
	}
	calm = true
	// A run in which nothing happened proves nothing.
	require.Greater(t, r.world.launches, 5)
	require.Greater(t, len(r.world.terminated), 2)
	repairs := r.count(journal.EventRepairStarted)
	r.world.listErr, r.world.drainErr, r.world.termErr = nil, nil, nil
	for name := range r.world.nodes {
		r.recover(name)
	}
	r.spec.Plan.Idle.For = 24 * time.Hour
	r.settleDown(processes)
	r.endWith(processes)
	return repairs
}

// endWith deletes the pool, and requires that nothing of it is left.
func (r *rig) endWith(processes []*Pool) {
	r.spec.Plan.Deleting = true
	for range 200 {
		for _, p := range processes {
			_, _ = p.Tick(r.Context())
		}
		require.Empty(r, r.world.violations)
		r.clock.advance(10 * time.Second)
	}
	require.Positive(r, r.releaseFinalizer)
	require.Zero(r, r.running())
}

// unwell are the conditions of a node that is to be repaired, although it is Ready.
var unwell = []corev1.NodeCondition{{Type: "KernelDeadlock", Status: corev1.ConditionTrue}}

// disturb changes the cloud and the cluster at random.
func (r *rig) disturb(random *rand.Rand, processes []*Pool, often chances) {
	chance := func(p float64) bool { return random.Float64() < p }
	r.world.listErr, r.world.drainErr = nil, nil
	if chance(0.02) {
		r.world.listErr = errors.New("down")
	}
	if chance(0.02) {
		r.world.drainErr = errors.New("down")
	}
	if chance(0.02) {
		r.spec.Plan.Min = 1 + random.IntN(5)
	}
	for _, id := range slices.Sorted(maps.Keys(r.world.instances)) {
		i := r.world.instances[id]
		if chance(often.ends) && i.endedAt.IsZero() {
			i.endedAt = r.clock.now()
			if n := r.world.nodes["node-"+id]; n != nil {
				n.pods = nil
			}
		}
		if chance(often.notices) && i.endedAt.IsZero() {
			for _, p := range processes {
				p.Notify(provider.Message{InstanceID: id, Kind: provider.MessageInterruption})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.world.nodes)) {
		n := r.world.nodes[name]
		if chance(0.004) && n.ready {
			if n.conditions = unwell; chance(0.5) {
				r.breakNode(name)
			}
		}
		if chance(0.01) && n.mark == "" && !n.cordon && n.ready {
			n.pods = append(n.pods, &fakePod{name: "p"})
		}
	}
}

// settleDown ends the disturbances, and requires that every action that began ends.
func (r *rig) settleDown(processes []*Pool) {
	for range 800 {
		for _, p := range processes {
			_, _ = p.Tick(r.Context())
		}
		require.Empty(r, r.world.violations)
		r.clock.advance(10 * time.Second)
	}
	record := r.record()
	require.Nil(r, record.Action)
	require.Empty(r, record.Interruptions)
	require.Empty(r, record.PendingTerminations)
	r.clean()
	require.GreaterOrEqual(r, r.running(), r.spec.Plan.Min)
	r.launchedOnce()
	for name, n := range r.world.nodes {
		require.True(r, n.ready, "%s is the node of an instance that has gone", name)
	}
	require.Equal(r, r.running(), len(r.world.nodes), "each instance has a node")
	last := r.last
	require.Equal(r, plan.Hold, last.Decision.Step, "%s", last.Decision.Message)
	reasons := map[journal.EventReason]int{}
	for _, e := range r.events {
		reasons[e]++
	}
	r.Logf("%d launches, %d terminated, %v", r.world.launches, len(r.world.terminated), reasons)
}
