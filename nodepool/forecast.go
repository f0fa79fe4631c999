package nodepool

import (
	"context"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/cluster/scheduling"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/pipeline"
)

// roomFor is how long nodes must have had room for a pod that no node takes until it is not waited for: the scheduler tries
// every pod again within five minutes.
const roomFor = 10 * time.Minute

// forecast is what the pool will need: the demand of pods that no node takes, and what signals predict.
type forecast struct {
	pods     []cluster.Pending // that no node takes, without those that another pool comes first for
	asking   []cluster.Pending // of these, those that a node may be launched for
	new      []string          // those that would get a new one, by namespace/name
	beyond   []string          // those that the cloud has no capacity for
	added    [][]string        // those on each node that all of them need
	attempts *attempts         // nil while the cluster is not known
	pending  plan.Pending
	homes    plan.Homes
	signals  []plan.Signal
	seasonal *plan.Seasonal
	startup  time.Duration // T_I: what launches take, as the last ones did
	nextDue  time.Time     // when a pod falls due next
}

// forecaster is the second phase of a cycle.
type forecaster struct {
	signals Signals
	claims  *Claims
}

// forecast packs the pods that no node takes, and asks the signals. It knows nothing while the cluster is not known.
func (c forecaster) forecast(ctx context.Context, o *observation) forecast {
	f := forecast{startup: startupTime(o)}
	if o.cluster == nil {
		return f
	}
	f.pods = o.cluster.Pending
	if c.claims != nil {
		f.pods = c.claims.left(o.pool, o.spec.Weight, f.pods, o.at)
	}
	demand := f.pack(o)
	f.signals = c.signals.Observe(ctx, signal.Observation{
		Now: o.at, Workers: o.joined(plan.Worker.Counts), Leaving: o.joined(leaving),
		Expected: expected(o.workers), Replacing: o.record.Replacing, Demand: demand, StartupTime: f.startup,
	})
	f.seasonal = c.signals.Seasonal(ctx, o.at, f.startup)
	return f
}

// pack finds what pods need that no node takes, and returns it for all of them, due or not.
func (f *forecast) pack(o *observation) scheduling.Result {
	leaving := o.emptied()
	in := scheduling.Input{
		Offers: o.offers, Template: o.template, DaemonSets: o.cluster.DaemonSets, PodsPerNode: o.spec.Plan.PodsPerNode,
		Pods: f.pods, Nodes: o.cluster.Nodes, Joining: o.joining(), Leaving: leaving,
		AttachLimits: o.attachLimits, MaxNodes: launchesLeft(o), Now: o.at,
		Displaced: scheduling.DisplacedOf(o.cluster, func(n *cluster.Node) bool { return leaving[n.Object.Name] }),
	}
	in.Cooling, in.Refused, in.Costs = o.launchable()
	for _, w := range o.workers {
		if o.onTheWay(w) {
			in.OnTheWay = append(in.OnTheWay, w.Placement)
		}
	}
	f.attempts = recallAttempts(o, in)
	f.asking = f.attempts.left(f.pods)
	all, packed, due := f.packBoth(o, in)
	for f.attempts.judge(packed.New, f.asking) {
		f.asking = f.attempts.left(f.pods)
		all, packed, due = f.packBoth(o, in)
	}
	f.new, f.beyond, f.added = packed.New, all.Beyond, all.Added
	f.pending = plan.Pending{
		Known: all.Known && packed.Known, Pods: all.Helped, Due: packed.Helped, Nodes: packed.Nodes,
		Room: packed.HelpedRoom, Filtered: packed.Filtered, Waiting: packed.Waiting,
		OldestFor: oldest(due, packed.Unhelped, o.at), Unhelped: all.Unhelped,
		NoCapacity: all.NoCapacity, NoCapacityDue: packed.NoCapacity, NoCapacityNodes: packed.NoCapacityNodes,
		Shapes: packed.Shapes, Later: slices.Concat(further(all.Shapes, packed.Shapes), all.Displaced),
	}
	f.reserve(o, in)
	f.attempts.report(&f.pending, f.pods, o.spec.Plan.PendingFor)
	return all
}

// packBoth packs all pods that ask for a node, and those of them that are due.
func (f *forecast) packBoth(o *observation, in scheduling.Input) (all, packed scheduling.Result, ripe []cluster.Pending) {
	in.Pods = f.asking
	all = scheduling.Pack(in)
	pendingFor := o.spec.Plan.PendingFor
	in.Pods, f.nextDue = due(f.asking, o.at.Add(-pendingFor))
	if !f.nextDue.IsZero() {
		f.nextDue = f.nextDue.Add(pendingFor)
	}
	return all, scheduling.Pack(in), in.Pods
}

// reserve has pending pods keep the room that there is for them, and counts those for which nodes have had room for
// so long that the scheduler has a reason of its own: nothing waits for these, but a removal that took their room
// would have a node launched for them that helps no more.
func (f *forecast) reserve(o *observation, in scheduling.Input) {
	in.Pods = o.cluster.Pending
	f.homes = scheduling.NewHomes(o.cluster, in)
	if f.pending.Room == 0 {
		return
	}
	in.Pods, _ = due(f.asking, o.at.Add(-max(roomFor, o.spec.Plan.PendingFor)))
	f.pending.Overlooked = scheduling.Pack(in).HelpedRoom
}

// launchable returns the offers that cannot be launched now, those that could not when they were tried last, and what offers cost.
func (o *observation) launchable() (cooling, refused map[fleet.Offer]bool, costs map[fleet.Offer]float64) {
	s := plan.Snapshot{Now: o.at, Pool: o.spec.Plan, State: plan.State{Cooling: o.record.Cooling}}
	s.Offers, s.Prices, _ = offered(o.offers)
	s.Quotas = quotas(o.offers)
	return s.Unlaunchable(), s.Refused(), s.Costs()
}

// further returns the shapes of all that are not those of some.
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

// oldest tells for how long the oldest of pods has been unschedulable, those aside that no node helps.
func oldest(pods []cluster.Pending, unhelped []fleet.Unhelped, now time.Time) (oldest time.Duration) {
	beyondHelp := make(map[string]bool, len(unhelped))
	for _, u := range unhelped {
		beyondHelp[u.Pod] = true
	}
	for _, p := range pods {
		if !beyondHelp[p.Pod.Namespace+"/"+p.Pod.Name] {
			oldest = max(oldest, now.Sub(p.Since))
		}
	}
	return oldest
}

// due returns the pods that have been unschedulable since a moment or longer, and the first of the others' moments.
// Those of a gang are due together with the last one.
func due(pods []cluster.Pending, since time.Time) (out []cluster.Pending, next time.Time) {
	gangs := map[string]time.Time{}
	for _, p := range pods {
		if p.Gang != "" {
			gangs[p.Gang] = latest(gangs[p.Gang], p.Since)
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

// startupTime is T_I: what launches take, as the last ones did.
func startupTime(o *observation) time.Duration {
	estimate := pipeline.NewStartupTime(pipeline.Holt, o.spec.StartupTime)
	for _, j := range o.record.Joins {
		estimate.Observe(j.Requested.UnixMilli(), j.Ready.UnixMilli())
	}
	return estimate.Value()
}

// launchesLeft returns how many nodes the maximum leaves to be launched, -1 for none.
func launchesLeft(o *observation) int {
	if left := o.spec.Plan.Max - expected(o.workers); left > 0 {
		return left
	}
	return -1
}
