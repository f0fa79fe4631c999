package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// offersFor is how long offers are taken to stay as they are.
const offersFor = 10 * time.Minute

// lister is what of a provider observes.
type lister interface {
	List(ctx context.Context) ([]fleet.Instance, error)
	Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error)
	Offers(ctx context.Context) ([]provider.Offer, error)
}

// observer is the first phase of a cycle: it sees, and changes nothing. What it remembers from cycle to cycle can be lost at any time.
type observer struct {
	cloud   lister
	cluster Observer

	tracked      trackedInstances
	offers       []provider.Offer
	offersAt     time.Time
	capacities   map[string]*observedCapacity // by instance type
	homeless     homelessNodes
	attachLimits map[string]attachLimit // by instance type
	newest       joinedNode
	departures   cluster.Departures
	emptySince   time.Time // since when nothing of the pool has been left and nobody else has led; zero = something is
}

// list asks the cloud for the pool's instances. It comes before everything else of a cycle: what the journal or the
// cluster knows beyond the list has happened since.
func (b *observer) list(ctx context.Context, o *observation) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	o.instances, o.listErr = nil, nil
	instances, err := b.cloud.List(ctx)
	if err != nil {
		o.listErr = fmt.Errorf("list the instances: %w", err)
		return
	}
	o.instances, o.foreign = make(map[string]fleet.Instance, len(instances)), map[string]fleet.Instance{}
	for _, i := range instances {
		if i.OwnedBy != "" {
			o.foreign[i.ID] = i
		} else {
			o.instances[i.ID] = i
		}
	}
}

// dropCopies leaves the launch of a token to as many instances as the call asked for, those that were launched first.
// Others have copied their tags, as the console of AWS does for "launch more like this": they are the pool's, and no
// action has launched them.
func dropCopies(instances map[string]fleet.Instance) {
	launched := map[string]int{}
	byLaunch := slices.SortedFunc(maps.Values(instances), func(a, b fleet.Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID))
	})
	for _, i := range byLaunch {
		if i.Token == "" {
			continue
		}
		if launched[i.Token]++; launched[i.Token] > instancesOf(i.Token) {
			i.Action, i.Token, i.Slot = "", "", -1
			instances[i.ID] = i
		}
	}
}

// find asks the cloud by their ids about instances that its list lacks: a list may be behind, and
// lacks what has lost its tags.
func (b *observer) find(ctx context.Context, o *observation) {
	refs := b.tracked.unlisted()
	if len(refs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := b.cloud.Find(ctx, refs)
	if err != nil {
		o.findErr = fmt.Errorf("find %d instances that are not listed: %w", len(refs), err)
		return
	}
	b.tracked.found(found, len(o.instances) > 0, o.at)
}

// see looks at the cluster, and joins it with the cloud and the journal.
func (b *observer) see(ctx context.Context, o *observation) {
	b.seeCluster(ctx, o)
	dropCopies(o.instances)
	if o.listErr == nil {
		b.remember(ctx, o)
	}
	o.known = b.tracked.values()
	for id, s := range inOrder(o.known) {
		if o.cluster != nil && !o.gone(id) {
			o.nodes.addNodeless(s.instance)
		}
	}
	b.ask(ctx, o)
	o.workers = o.seeWorkers(b.homeless)
	o.facts = o.seeFacts()
	o.markBroken(o.workers, plan.Doubt(o.spec.Plan, o.facts, pendingTerminations(o.record)) != "")
	if o.tookOver {
		b.emptySince = time.Time{}
	}
	if o.leading {
		b.emptySince = since(b.emptySince, o.empty(), o.at)
	}
	o.emptySince = b.emptySince
}

func (b *observer) seeCluster(ctx context.Context, o *observation) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	seen, err := b.cluster.Observe(call)
	if err != nil {
		o.clusterErr = fmt.Errorf("observe the cluster: %w", err)
		return
	}
	o.cluster, b.departures = seen.Departing(b.departures)
	o.nodes = newNodeIndex(o.cluster)
	b.seeAttachLimits(o)
}

// remember takes note of what was seen of each instance.
func (b *observer) remember(ctx context.Context, o *observation) {
	var ours []*cluster.Node
	if o.cluster != nil {
		for i := range o.cluster.Nodes {
			if n := &o.cluster.Nodes[i]; n.Object.Spec.ProviderID != "" && n.Object.Labels[LabelPool] == o.pool {
				ours = append(ours, n)
			}
		}
	}
	b.tracked.see(o.instances, o.record, ours, o.at)
	b.find(ctx, o)
	for _, s := range b.tracked {
		n := o.nodes.nodeOf(s.instance, s.node)
		if o.cluster != nil {
			s.seeNode(o.nodes.claimants(s.instance))
			s.seeHeartbeat(n, o.at)
			s.seeConditions(n, o.at)
			s.seeMarks(n, leaves(o.record, s.instance.ID) || pendingTermination(o.record, s.instance.ID) != nil, o.at)
		}
		if n != nil {
			s.joined = o.at
			if n.Ready {
				s.worked = o.at
			}
		}
		s.seeUnlisted(n, o.vanishGrace, o.at)
		s.stopped = since(s.stopped, s.missing.IsZero() && s.instance.Stopped, o.at)
	}
}

// since returns since when a thing has held, zero if it does not.
func since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// ended notes instances that this process has terminated, whatever a list says that is behind.
func (b *observer) ended(instances []string) {
	for _, id := range instances {
		if s := b.tracked[id]; s != nil {
			s.ended = true
		}
	}
}

// ask asks what can be launched. A failure leaves what was told last.
func (b *observer) ask(ctx context.Context, o *observation) {
	if b.offers == nil || o.at.Sub(b.offersAt) >= offersFor {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		offers, err := b.cloud.Offers(call)
		if err != nil {
			o.offersErr = fmt.Errorf("ask what can be launched: %w", err)
		} else {
			b.offers, b.offersAt = offers, o.at
		}
	}
	o.offers = b.corrected(o, b.offers)
	b.seeTemplate(o)
}

func scheme(providerID string) string {
	scheme, _, _ := strings.Cut(providerID, "://")
	return scheme
}

func marked(n *cluster.Node) bool {
	_, is := drain.MarkOf(n.Object)
	return is
}

// pendingTermination returns the entry of an instance that is to be terminated, nil if there is none.
func pendingTermination(r state.Record, instance string) *state.PendingTermination {
	for i := range r.PendingTerminations {
		if c := &r.PendingTerminations[i]; instance != "" && c.InstanceID == instance {
			return c
		}
	}
	return nil
}

// interruption returns the removal of an instance that the cloud takes back, nil if there is none.
func interruption(r state.Record, instance string) *state.Removal {
	return removalOf(r.Interruptions, instance)
}

// repair returns the removal of an instance whose Node is unhealthy, nil if there is none.
func repair(r state.Record, instance string) *state.Removal { return removalOf(r.Repairs, instance) }

func removalOf(list []state.Removal, instance string) *state.Removal {
	at := slices.IndexFunc(list, func(x state.Removal) bool { return x.InstanceID == instance })
	if at < 0 {
		return nil
	}
	return &list[at]
}

// target returns the removal of an instance in the open scale-down, nil if there is none or it has ended.
func target(r state.Record, instance string) *state.Removal {
	if r.Action == nil {
		return nil
	}
	for i := range r.Action.Targets {
		if x := &r.Action.Targets[i]; x.InstanceID == instance && !done(*x) {
			return x
		}
	}
	return nil
}

// ending returns the removal of an instance whose end has begun, nil if there is none.
func ending(r state.Record, instance string) *state.Removal { return removalOf(r.Endings, instance) }

// leaves reports whether an instance is being removed.
func leaves(r state.Record, instance string) bool {
	return instance != "" &&
		(interruption(r, instance) != nil || repair(r, instance) != nil || target(r, instance) != nil || ending(r, instance) != nil)
}
