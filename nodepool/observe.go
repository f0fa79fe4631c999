package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/binpack"
	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/pipeline"
)

const (
	// offersFor is how long offers are taken to stay as they are.
	offersFor = 10 * time.Minute
	// roomFor is how long nodes must have had room for a pod that no node takes until it is not waited for: the scheduler tries
	// every pod again within five minutes.
	roomFor = 10 * time.Minute
)

// list asks the cloud for the pool's instances. It comes before everything else of a tick: what the journal or the
// cluster knows beyond the list has happened since.
func (t *tick) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	instances, err := t.options.Provider.List(ctx)
	if err != nil {
		t.listErr = fmt.Errorf("list the instances: %w", err)
		return
	}
	t.instances = make(map[string]provider.Instance, len(instances))
	for _, i := range instances {
		t.instances[i.ID] = i
	}
}

// observe looks at the cluster, and joins it with the cloud and the journal.
func (t *tick) observe(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cluster, err := t.options.Observer.Observe(call)
	if err != nil {
		t.clusterErr = fmt.Errorf("observe the cluster: %w", err)
	} else {
		t.cluster = cluster
	}
	t.nodes = map[string]*clusterstate.Node{}
	var ours []*clusterstate.Node
	if t.cluster != nil {
		for i := range t.cluster.Nodes {
			n := &t.cluster.Nodes[i]
			if id := n.Object.Spec.ProviderID; id != "" {
				t.nodes[id], t.nodes[provider.IDOf(id)] = n, n
				if n.Object.Labels[LabelPool] == t.options.Name {
					ours = append(ours, n)
				}
			}
		}
	}
	if t.listErr == nil {
		t.sightings.see(slices.Collect(maps.Values(t.instances)), t.record, ours, t.now)
		for _, s := range t.sightings {
			n := t.node(s.instance)
			if t.cluster != nil {
				s.hear(n, t.now)
			}
			if n != nil {
				s.joined = t.now
				if n.Ready {
					s.worked, s.broken = t.now, false
				}
			}
		}
	}
}

// known tells whether both the cloud and the cluster have been seen in this tick.
func (t *tick) known() bool { return t.listErr == nil && t.cluster != nil }

// node returns the Node of an instance, nil if there is none or it is not known. Its provider id may be spelled otherwise
// than the cloud has it.
func (t *tick) node(i provider.Instance) *clusterstate.Node {
	if n := t.nodes[i.ProviderID]; n != nil && i.ProviderID != "" {
		return n
	}
	if i.ID == "" {
		return nil
	}
	return t.nodes[i.ID]
}

func (t *tick) gone(id string) bool {
	return t.listErr == nil && t.sightings.gone(id, t.options.VanishGrace, t.now)
}

// snapshotOf makes what the decision is made from.
func (t *tick) snapshotOf(ctx context.Context) plan.Snapshot {
	s := plan.Snapshot{Now: t.now, Pool: t.spec.Plan, Workers: t.workers(), State: t.state(), Notices: t.notices()}
	s.Disruption = t.disruption(expected(s.Workers))
	if err := errors.Join(t.listErr, t.clusterErr); err != nil {
		s.WorkersErr = err.Error()
	}
	offers := t.corrected(t.offersOf(ctx))
	for _, o := range offers {
		s.Offers = append(s.Offers, o.Offer)
	}
	if t.cluster == nil {
		return s
	}
	t.pending = t.cluster.Pending
	if t.options.Claims != nil {
		t.pending = t.options.Claims.left(t.options.Name, t.spec.Weight, t.pending, t.now)
	}
	demand := t.demand(&s, offers)
	s.Signals = t.options.Signals.Observe(ctx, signal.Observation{
		Now: t.now, Workers: t.joined(s.Workers, plan.Worker.Counts), Leaving: t.joined(s.Workers, leaving),
		Expected: expected(s.Workers), Demand: demand, StartupTime: t.startupTime(),
	})
	s.Seasonal = t.options.Signals.Seasonal(ctx, t.now, t.startupTime())
	return s
}

// state is what the journal remembers of earlier decisions.
func (t *tick) state() plan.State {
	r := t.record
	s := plan.State{
		LastUp: r.LastUp, LastDown: r.LastDown, Failures: r.Failures, FailedAt: r.FailedAt,
		IdleSince: r.IdleSince, DecidedAt: t.lastDecided(), Cooling: r.Cooling, Spared: r.Spared,
	}
	if r.Action != nil {
		s.Action, s.ActionID = r.Action.Kind, r.Action.ID
		s.Planned, s.Room = t.room(r.Action)
	}
	return s
}

// room tells how many nodes of a scale-up have not been launched yet, and how many more it takes: up to a batch, and while
// those have at least half of the time to join.
func (t *tick) room(a *state.Action) (planned, more int) {
	if a.Kind != plan.ActionUp {
		return 0, 0
	}
	for _, s := range a.Slots {
		if s.State == state.SlotPlanned {
			planned++
		}
	}
	if t.now.Sub(a.Started) > t.spec.Join.Timeout/2 {
		return planned, 0
	}
	return planned, max(0, min(t.spec.Plan.Batch()-desired(a), plan.MaxBatch-len(a.Slots)))
}

// notices are the interruptions that no replacement has been asked for yet.
func (t *tick) notices() []plan.Notice {
	var out []plan.Notice
	for _, i := range t.record.Interruptions {
		if !i.Replaced {
			out = append(out, plan.Notice{InstanceID: i.InstanceID, Deadline: i.Deadline})
		}
	}
	return out
}

// workers are the instances that are there, or must be taken to be, in order of their launch.
func (t *tick) workers() []plan.Worker {
	var out []plan.Worker
	for key, s := range t.sightings {
		node := t.node(s.instance)
		switch {
		case t.sightings.gone(key, t.options.VanishGrace, t.now), node != nil && controlPlane(node.Object):
		case s.missing.IsZero(), node != nil && (node.Ready || s.unlisted), t.expects(s.instance):
			out = append(out, t.worker(s, node))
		}
	}
	slices.SortFunc(out, func(a, b plan.Worker) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.Node, b.Node))
	})
	t.leaveOut(out)
	return out
}

// expects tells whether an instance that the cloud does not list has been launched so lately that it need not.
func (t *tick) expects(i provider.Instance) bool {
	a := t.record.Action
	return i.ID != "" && (a != nil && i.Action == a.ID || t.now.Sub(i.Launched) < t.options.VanishGrace)
}

func (t *tick) worker(s *sighting, node *clusterstate.Node) plan.Worker {
	i := s.instance
	w := plan.Worker{
		InstanceID: i.ID, Placement: i.Placement, Launched: i.Launched,
		Leaving: i.State == provider.Leaving || s.ended || t.leaves(i.ID),
		Ended:   (i.State == provider.Leaving || s.ended) && !t.leaves(i.ID),
	}
	if node == nil {
		c := t.condemned(i.ID)
		w.Failed = t.cluster != nil && (i.JoinFailed && s.worked.IsZero() || c != nil || t.overdue(s))
		w.Kept = w.Failed && c != nil && c.Reason == condemnedJoinFailed && !t.spec.Join.KeepFailed
		return w
	}
	w.Node = node.Object.Name
	w.Ready = node.Ready && !node.Object.Spec.Unschedulable
	w.Cordoned = node.Ready && node.Object.Spec.Unschedulable
	w.Failed = !node.Ready && t.condemned(i.ID) != nil
	w.Pods, w.Blocked, w.Outdated = node.Movable, node.Blocked, t.outdated(i)
	w.Utilisation, w.Known = utilisation(node)
	w.Zone = cmp.Or(w.Zone, node.Object.Labels[corev1.LabelTopologyZone])
	switch h := t.homeless[w.Node]; {
	case i.ID == "" || !s.missing.IsZero():
		w.Blocked = "the cloud does not list its instance"
	case w.Blocked == "" && t.now.Before(h.until) && !t.spec.Plan.Deleting:
		w.Blocked = h.why
	}
	return w
}

// overdue tells whether an instance has had its time to join, or has lost its Node for longer than for a moment.
func (t *tick) overdue(s *sighting) bool {
	a := t.record.Action
	return (a == nil || s.instance.Action != a.ID) && t.now.Sub(s.instance.Launched) > t.spec.Join.Timeout &&
		t.now.Sub(s.without()) > t.options.VanishGrace
}

func controlPlane(n *corev1.Node) bool {
	_, control := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	return control || master
}

// utilisation is the larger share of CPU and memory that pods request of what a node can allocate.
func utilisation(n *clusterstate.Node) (share float64, known bool) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		can, asked := n.Object.Status.Allocatable[name], n.Requested[name]
		if can.IsZero() {
			return 0, false
		}
		share = max(share, asked.AsApproximateFloat64()/can.AsApproximateFloat64())
	}
	return share, true
}

// offersOf returns what can be launched. A failure to read it leaves what was read last.
func (t *tick) offersOf(ctx context.Context) []provider.Offer {
	if t.offers != nil && t.now.Sub(t.offersAt) < offersFor {
		return t.offers
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	offers, err := t.options.Provider.Offers(call)
	if err != nil {
		t.offersErr = fmt.Errorf("ask what can be launched: %w", err)
		return t.offers
	}
	t.offers, t.offersAt = offers, t.now
	return offers
}

// demand fills in what pods need that no node takes, and returns it for all of them, due or not.
func (t *tick) demand(s *plan.Snapshot, offers []provider.Offer) binpack.Result {
	in := binpack.Input{
		Offers: offers, Template: t.spec.Template, DaemonSets: t.cluster.DaemonSets, PodsPerNode: t.spec.Plan.PodsPerNode,
		Pods: t.pending, Nodes: t.cluster.Nodes, Cooling: s.Unlaunchable(),
		Joining: t.joining(s.Workers),
	}
	for _, w := range s.Workers {
		if t.onTheWay(w) {
			in.OnTheWay = append(in.OnTheWay, w.Placement)
		}
	}
	all := binpack.Pack(in)
	due, next := due(t.pending, t.now.Add(-s.Pool.PendingFor))
	if !next.IsZero() {
		t.nextDue = next.Add(s.Pool.PendingFor)
	}
	in.Pods = due
	packed := binpack.Pack(in)
	s.Pending = plan.Pending{
		Known: all.Known && packed.Known, Pods: all.Helped, Due: packed.Helped, Nodes: packed.Nodes, Room: packed.HelpedRoom, Filtered: packed.Filtered,
		OldestFor: t.oldest(due, packed.Unhelped), Unhelped: all.Unhelped,
		Shapes: packed.Shapes, Later: further(all.Shapes, packed.Shapes),
	}
	t.reserve(s, in)
	return all
}

// further returns the shapes of all that are not those of some.
func further(all, some []plan.Shape) []plan.Shape {
	var out []plan.Shape
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

// reserve has the pods for which nodes have had room for so long that the scheduler has a reason of its own keep that room,
// and notes them. No node is kept for them otherwise, but a removal that took the room would have a node launched for them
// that helps no more.
func (t *tick) reserve(s *plan.Snapshot, in binpack.Input) {
	homes := binpack.NewHomes(t.cluster, in)
	s.Homes = homes
	if s.Pending.Room == 0 {
		return
	}
	in.Pods, _ = due(t.pending, t.now.Add(-max(roomFor, s.Pool.PendingFor)))
	packed := binpack.Pack(in)
	s.Pending.Overlooked = packed.HelpedRoom
	homes.Reserve(packed.Room, in.Pods)
}

// onTheWay tells whether a worker will take pods soon: it has had no Node that was Ready, as far as is known, and its time
// to join is not over. A worker that was Ready and is not any more may never be again.
func (t *tick) onTheWay(w plan.Worker) bool {
	node := t.nodeNamed(w.Node)
	switch s := t.sightings[w.InstanceID]; {
	case !w.Counts(), s == nil || !s.worked.IsZero(), !t.hasTimeToJoin(w.Launched):
		return false
	case node == nil:
		return s.joined.IsZero()
	}
	return !node.Ready && !node.Object.Spec.Unschedulable
}

// oldest tells for how long the oldest of pods has been unschedulable, those aside that no node helps.
func (t *tick) oldest(pods []clusterstate.Pending, unhelped []plan.Unhelped) (oldest time.Duration) {
	beyondHelp := make(map[string]bool, len(unhelped))
	for _, u := range unhelped {
		beyondHelp[u.Pod] = true
	}
	for _, p := range pods {
		if !beyondHelp[p.Pod.Namespace+"/"+p.Pod.Name] {
			oldest = max(oldest, t.now.Sub(p.Since))
		}
	}
	return oldest
}

// due returns the pods that have been unschedulable since a moment or longer, and the first of the others' moments.
func due(pods []clusterstate.Pending, since time.Time) (out []clusterstate.Pending, next time.Time) {
	for _, p := range pods {
		switch {
		case !p.Since.After(since):
			out = append(out, p)
		case next.IsZero() || p.Since.Before(next):
			next = p.Since
		}
	}
	return out, next
}

func (t *tick) nodeNamed(name string) *clusterstate.Node {
	if name == "" || t.cluster == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(t.cluster.Nodes, name, func(n clusterstate.Node, name string) int { return cmp.Compare(n.Object.Name, name) })
	if !ok {
		return nil
	}
	return &t.cluster.Nodes[at]
}

func leaving(w plan.Worker) bool { return w.Leaving }

// joined returns the nodes of some of the workers, as far as they have joined.
func (t *tick) joined(workers []plan.Worker, which func(plan.Worker) bool) []clusterstate.Node {
	var out []clusterstate.Node
	for _, w := range workers {
		if n := t.nodeNamed(w.Node); n != nil && which(w) {
			out = append(out, *n)
		}
	}
	return out
}

func expected(workers []plan.Worker) (n int) {
	for _, w := range workers {
		if w.Counts() {
			n++
		}
	}
	return n
}

// startupTime is T_I: what launches take, as the last ones did.
func (t *tick) startupTime() time.Duration {
	estimate := pipeline.NewStartupTime(pipeline.Holt, t.spec.StartupTime)
	for _, j := range t.record.Joins {
		estimate.Observe(j.Requested.UnixMilli(), j.Ready.UnixMilli())
	}
	return estimate.Value()
}
