// Package forecast determines what a pool will need: the demand of pods that fit on no node, and
// the predictions of signals.
package forecast

import (
	"context"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/state"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/pipeline"
)

// roomFor is the time for which nodes must have had room for a pending pod until nothing waits for
// it: the scheduler retries every pod within five minutes.
const roomFor = 10 * time.Minute

// Forecast is the future need of the pool: the demand of pods that fit on no node, and the
// predictions of signals.
// of signals.
type Forecast struct {
	pods      []cluster.Pending // that fit on no node, without those that a pool with precedence claims
	eligible  []cluster.Pending // those of them for which a node may be launched
	new       []string          // those that would get a new node, by namespace/name
	beyond    []string          // those for which the cloud has no capacity
	added     [][]string        // those on each node that all of them need
	attempts  *attempts         // nil while the cluster is unknown
	Pending   plan.Pending
	Simulator plan.Simulator
	Signals   []plan.Signal
	Seasonal  *plan.Seasonal
	Startup   time.Duration // T_I: the startup time of recent launches
	NextDue   time.Time     // when the next pod becomes due
}

// Signals forecasts the load of the pool. Its calls return soon: a signal that cannot be read is
// unknown.
type Signals interface {
	Observe(ctx context.Context, o signal.Observation) []plan.Signal
	// Seasonal returns nil if the pool has no seasonal floor.
	Seasonal(ctx context.Context, now time.Time, startupTime time.Duration) *plan.Seasonal
}

// Forecaster is the second phase of a cycle.
type Forecaster struct {
	Signals Signals
	Claims  *Claims
}

// Forecast packs the pods that fit on no node, and reads the signals. It is empty while the cluster
// is unknown.
func (c Forecaster) Forecast(ctx context.Context, o *observe.Observation) Forecast {
	f := Forecast{Startup: startupTime(o)}
	if o.Cluster == nil {
		return f
	}
	f.pods = o.Cluster.Pending
	if c.Claims != nil {
		f.pods = c.Claims.left(o.Pool, o.Spec.Weight, f.pods, o.At)
	}
	demand := f.pack(o)
	f.Signals = c.Signals.Observe(ctx, signal.Observation{
		Now: o.At, Workers: o.Joined((*plan.Instance).Counts), Leaving: o.Joined(observe.Leaving),
		Expected: o.Expected(), WorkersBeforeRollout: o.Record.WorkersBeforeRollout, Demand: demand, StartupTime: f.Startup,
	})
	f.Seasonal = c.Signals.Seasonal(ctx, o.At, f.Startup)
	return f
}

// pack determines what pods need that fit on no node, and returns the result for all of them, due
// or not.
func (f *Forecast) pack(o *observe.Observation) scheduling.Result {
	leaving := o.Emptied()
	in := scheduling.Input{
		Offers: o.Offers, Template: o.Template, DaemonSets: o.Cluster.DaemonSets, PodsPerNode: o.Spec.Plan.PodsPerNode,
		Pods: f.pods, Nodes: o.Cluster.Nodes, NewlyReady: o.NewlyReady(), Leaving: leaving,
		AttachLimits: o.AttachLimits, MaxNodes: launchesLeft(o), Now: o.At,
		Displaced: displaced(o, leaving),
	}
	in.Cooling, in.Refused, in.Costs = launchable(o)
	for w := range o.Workers() {
		if o.OnTheWay(w) {
			in.OnTheWay = append(in.OnTheWay, w.Placement)
		}
	}
	f.attempts = loadAttempts(o, in)
	in.Pods = o.Cluster.Pending
	in = in.Shared()
	f.eligible = f.attempts.left(f.pods)
	all, packed, due := f.packBoth(o, in)
	for f.attempts.judge(packed.New, f.eligible) {
		f.eligible = f.attempts.left(f.pods)
		all, packed, due = f.packBoth(o, in)
	}
	f.new, f.beyond, f.added = packed.New, all.Beyond, all.Added
	f.Pending = plan.Pending{
		Known: all.Known && packed.Known, Pods: all.Helped, Due: packed.Helped, Nodes: packed.Nodes,
		Room: packed.HelpedRoom, Filtered: packed.Filtered, Waiting: packed.Waiting,
		OldestFor: oldest(due, packed.Unhelped, o.At), Unhelped: all.Unhelped,
		NoCapacity: all.NoCapacity, NoCapacityDue: packed.NoCapacity, NoCapacityNodes: packed.NoCapacityNodes,
		Shapes: packed.Shapes, Later: further(all.Shapes, packed.Shapes), Replacing: all.Replacing,
	}
	f.reserve(o, in)
	f.attempts.report(&f.Pending, f.pods, o.Spec.Plan.PendingFor)
	return all
}

// displaced returns the pods that will leave the leaving nodes.
func displaced(o *observe.Observation, leaving map[string]bool) []scheduling.Displaced {
	out := scheduling.DisplacedOf(o.Cluster, func(n *cluster.Node) bool { return leaving[n.Object.Name] })
	replaced := o.Replaced()
	for i := range out {
		out[i].Replaced = replaced[out[i].Node]
	}
	return out
}

// packBoth packs all pods that may get a node, and those of them that are due.
func (f *Forecast) packBoth(o *observe.Observation, in scheduling.Input) (all,
	packed scheduling.Result, duePods []cluster.Pending) {
	in.Pods = f.eligible
	all = scheduling.Pack(in)
	pendingFor := o.Spec.Plan.PendingFor
	in.Pods, f.NextDue = due(f.eligible, o.At.Add(-pendingFor))
	if !f.NextDue.IsZero() {
		f.NextDue = f.NextDue.Add(pendingFor)
	}
	return all, scheduling.Pack(in), in.Pods
}

// reserve makes pending pods keep the room that exists for them. It also counts those for which
// nodes have had room for so long that the scheduler must have another reason: nothing waits for
// these, but if a removal took their room a node would be launched for them that helps no more.
func (f *Forecast) reserve(o *observe.Observation, in scheduling.Input) {
	in.Pods = o.Cluster.Pending
	f.Simulator = scheduling.NewSimulator(o.Cluster, in)
	if f.Pending.Room == 0 {
		return
	}
	in.Pods, _ = due(f.eligible, o.At.Add(-max(roomFor, o.Spec.Plan.PendingFor)))
	f.Pending.Overlooked = scheduling.Pack(in).HelpedRoom
}

// launchable returns the offers that cannot be launched now, those that could not be launched when
// last tried, and the costs of offers.
func launchable(o *observe.Observation) (cooling, refused map[fleet.Offer]bool, costs map[fleet.Offer]float64) {
	s := plan.Snapshot{Now: o.At, Pool: o.Spec.Plan, Record: o.Record}
	s.Offers, s.Prices, _ = observe.Offered(o.Offers)
	s.Quotas = observe.Quotas(o.Offers)
	return s.Unlaunchable(), s.Refused(), s.Costs()
}

// further returns the shapes in all that are not in some.
func further(all, some []fleet.Shape) []fleet.Shape {
	var out []fleet.Shape
	for _, s := range all {
		for _, other := range some {
			if slices.Equal(s.Kinds, other.Kinds) {
				s.Nodes -= other.Nodes
			}
		}
		if s.Nodes > 0 {
			out = append(out, s)
		}
	}
	return out
}

// oldest returns the waiting time of the oldest pod that a node could help.
func oldest(pods []cluster.Pending, unhelped []fleet.Unhelped, now time.Time) (oldest time.Duration) {
	unschedulable := make(map[string]bool, len(unhelped))
	for _, u := range unhelped {
		unschedulable[u.Pod] = true
	}
	for _, p := range pods {
		if !unschedulable[p.Pod.Namespace+"/"+p.Pod.Name] {
			oldest = max(oldest, now.Sub(p.Since))
		}
	}
	return oldest
}

// due returns the pods that have been unschedulable at least since a time, and the earliest time of
// the others. Pods of a gang become due together, with the last one.
func due(pods []cluster.Pending, since time.Time) (out []cluster.Pending, next time.Time) {
	gangs := map[string]time.Time{}
	for _, p := range pods {
		if p.Gang != "" && p.Since.After(gangs[p.Gang]) {
			gangs[p.Gang] = p.Since
		}
	}
	for _, p := range pods {
		from := p.Since
		if p.Gang != "" {
			from = gangs[p.Gang]
		}
		switch {
		case !from.After(since):
			out = append(out, p)
		case next.IsZero() || from.Before(next):
			next = from
		}
	}
	return out, next
}

// startupTime returns T_I, the startup time of recent launches.
func startupTime(o *observe.Observation) time.Duration {
	estimate := pipeline.NewStartupTime(pipeline.Holt, o.Spec.StartupTime)
	for _, j := range o.Record.Joins {
		estimate.Observe(j.Requested.UnixMilli(), j.Ready.UnixMilli())
	}
	return estimate.Value()
}

// launchesLeft returns the number of nodes that the maximum still allows, -1 for none.
func launchesLeft(o *observe.Observation) int {
	if left := o.Spec.Plan.Max - o.Expected(); left > 0 {
		return left
	}
	return -1
}

// BegunAttempts returns the attempts, including those that begin now because nodes are launched for
// pods. It returns false if none begins.
func (f *Forecast) BegunAttempts(now time.Time) (list []state.Attempt, begun bool) {
	if f.attempts == nil || len(f.new) == 0 {
		return nil, false
	}
	return f.attempts.begun(f.new, f.eligible, now), true
}

// ChangedAttempts returns the attempts if they differ from those of the journal.
func (f *Forecast) ChangedAttempts() (list []state.Attempt, changed bool) {
	if f.attempts == nil || !f.attempts.changed {
		return nil, false
	}
	return f.attempts.list, true
}
