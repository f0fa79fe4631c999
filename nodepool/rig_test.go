package nodepool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// rig is a pool with a fake cloud and cluster, in virtual time.
type rig struct {
	*testing.T
	specMu           sync.Mutex
	clock            *clock
	world            *fakeWorld
	store            *fakeStore
	signals          *fakeSignals
	notices          *fakeNotices
	spec             config.Spec
	pool             *Pool
	mu               sync.Mutex            // guards what Report writes, where two processes run
	cycles           []time.Time           // when each began
	events           []journal.EventReason // of all cycles, in order
	actions          []plan.Reason         // of all decisions that launched or removed
	last             CycleReport
	health           error // of the last cycle
	runs             int
	steps            time.Duration // between cycles while an action is open; 0 = the default
	releaseFinalizer int           // how often the object of the pool was released
}

func newRig(t *testing.T) *rig {
	c := &clock{at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	r := &rig{T: t, clock: c, world: newWorld(c), store: &fakeStore{}, signals: &fakeSignals{}, notices: &fakeNotices{}}
	r.spec = config.Spec{
		Plan: plan.Pool{
			Name: "workers", Min: 0, Max: 10, MaxBatchUp: 5, MaxBatchDown: 1, PendingFor: 30 * time.Second, PodsPerNode: 10,
			Idle: plan.Idle{For: time.Hour, CPU: 1, Memory: 1}, CooldownUp: 5 * time.Minute, CooldownDown: 10 * time.Minute,
			DistrustShare: 0.45, DistrustCount: 3, MaxFailureBackoff: time.Hour,
		},
		Template: scheduling.Template{}, Interval: 15 * time.Second, StartupTime: 2 * time.Minute,
		Join:  config.Join{Timeout: 10 * time.Minute, KeepFailedFor: 15 * time.Minute},
		Drain: config.Drain{Timeout: 5 * time.Minute}, Disruption: config.Disruption{Budgets: budgets("100%")},
	}
	r.store.written = func(old, written state.Record) {
		if old.Action != nil && written.Action != nil && old.Action.ID != written.Action.ID {
			r.world.violations = append(r.world.violations,
				fmt.Sprintf("action %s begun while %s was open", written.Action.ID, old.Action.ID))
		}
	}
	r.restart()
	return r
}

// restart replaces the process by one that has only the journal.
func (r *rig) restart() {
	r.Helper()
	r.runs++
	r.pool = r.process(fmt.Sprintf("run-%d", r.runs), r.clock.now)
}

func (r *rig) readSpec() (config.Spec, error) {
	r.specMu.Lock()
	defer r.specMu.Unlock()
	return r.spec, nil
}

// setSpec changes the spec while processes run.
func (r *rig) setSpec(change func(*config.Spec)) {
	r.specMu.Lock()
	defer r.specMu.Unlock()
	change(&r.spec)
}

// process is another process that runs the same pool.
func (r *rig) process(owner string, now func() time.Time) *Pool {
	r.Helper()
	p, err := New(Options{
		Name: "workers", Owner: owner, Spec: r.readSpec,
		Store: r.store, Provider: r.world, Observer: r.world, Signals: r.signals, Drainer: r.world, Labeler: r.world,
		Notices: r.notices, Reporter: r, Now: now, Seed: 1, ReleaseFinalizer: r.release, StepInterval: r.steps,
	})
	require.NoError(r, err)
	return p
}

// release releases the object of the pool, after which no process handles the rest.
func (r *rig) release(context.Context) error {
	r.releaseFinalizer++
	if left := r.running() + len(r.world.nodes); left > 0 || !r.spec.Plan.Deleting {
		r.world.violations = append(r.world.violations, fmt.Sprintf("released with %d instances and nodes", left))
	}
	return nil
}

// mortal puts a killer between the process and everything that it changes.
func (r *rig) mortal(k *killer) {
	k.now = r.clock.now
	world := mortalWorld{r.world, k}
	r.change(func(o *Options) {
		o.Store, o.Provider, o.Drainer, o.Labeler, o.Notices = mortalStore{r.store, k}, world, world,
			world, mortalNotices{r.notices, k}
		o.ReleaseFinalizer = func(ctx context.Context) error { return k.act(func() error { return r.release(ctx) }) }
	})
}

// stepEvery sets the interval of steps for this process and later ones.
func (r *rig) stepEvery(d time.Duration) {
	r.steps = d
	r.change(func(o *Options) { o.StepInterval = d })
}

// change changes the options of the process.
func (r *rig) change(how func(*Options)) {
	how(&r.pool.options)
	r.pool.connectPhases()
}

// Report implements Reporter.
func (r *rig) Report(_ context.Context, t CycleReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycles, r.last = append(r.cycles, t.At), t
	for _, e := range t.Events {
		r.events = append(r.events, e.Reason)
	}
	if t.Decision.Step != plan.Hold {
		r.actions = append(r.actions, t.Decision.Reason)
	}
}

// tick runs one cycle.
func (r *rig) tick() plan.Decision {
	d, err := r.pool.Tick(r.Context())
	r.health = err
	require.Empty(r, r.world.violations)
	return d
}

// pass lets time pass, with cycles as often as the loop of a process runs them.
func (r *rig) pass(d time.Duration) {
	for end := r.clock.now().Add(d); r.clock.now().Before(end); {
		r.tick()
		r.clock.advance(min(r.step(), end.Sub(r.clock.now())))
	}
}

// until runs cycles until a condition holds.
func (r *rig) until(what string, within time.Duration, happened func() bool) {
	r.Helper()
	for end := r.clock.now().Add(within); r.clock.now().Before(end); {
		r.tick()
		if happened() {
			return
		}
		r.clock.advance(r.step())
	}
	require.Fail(r, "not within "+within.String(), "%s; the last decision: %+v; health: %v; record: %+v", what,
		r.last.Decision.Message, r.health, r.record())
}

func (r *rig) record() state.Record {
	record, err := r.store.Load(r.Context(), "workers")
	require.NoError(r, err)
	return record
}

// running counts the instances that have not been terminated.
func (r *rig) running() (n int) {
	for _, i := range r.world.instances {
		if i.endedAt.IsZero() {
			n++
		}
	}
	return n
}

// ends runs cycles until the Nodes of instances that were terminated are deleted.
func (r *rig) ends() {
	r.Helper()
	if len(r.record().Endings) == 0 {
		return
	}
	r.until("no instance is ending", time.Minute, func() bool { return len(r.record().Endings) == 0 })
}

// clean requires that no trace of an action is left in the cluster.
func (r *rig) clean() {
	r.Helper()
	for name, n := range r.world.nodes {
		require.Empty(r, n.mark, "taint of %s", name)
		require.False(r, n.cordon, "cordon of %s", name)
	}
}

// pend adds pending pods that need half a node each.
func (r *rig) pend(n int) {
	for k := range n {
		r.world.pending = append(r.world.pending, cluster.Pending{Since: r.clock.now(), Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("waiting-%d", k)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
		}})
	}
}

// firstNeverJoins makes the first launch never join, and all others join.
func (r *rig) firstNeverJoins() {
	first := ""
	r.world.joins = func(l provider.Launch) bool {
		if first == "" {
			first = l.Token
		}
		return l.Token != first
	}
}

// load binds pods to a node.
func (r *rig) load(node string, pods ...*fakePod) {
	r.Helper()
	require.Contains(r, r.world.nodes, node)
	r.world.nodes[node].pods = append(r.world.nodes[node].pods, pods...)
}

func (r *rig) count(reason journal.EventReason) (n int) {
	for _, e := range r.events {
		if e == reason {
			n++
		}
	}
	return n
}

func (r *rig) nodeNames() []string {
	var out []string
	for name := range r.world.nodes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
