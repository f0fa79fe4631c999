package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// OffersFor is how long offers are taken to stay as they are.
const OffersFor = 10 * time.Minute

// lister is what of a provider observes.
type lister interface {
	List(ctx context.Context) ([]fleet.Instance, error)
	Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error)
	Offers(ctx context.Context) ([]provider.Offer, error)
}

// Observer is the first phase of a cycle: it sees, and changes nothing. What it remembers from
// cycle to cycle can be lost at any time.
type Observer struct {
	Cloud   lister
	Cluster Cluster

	tracked    trackedInstances
	offers     []provider.Offer
	offersAt   time.Time
	newNodes   newNodes
	homeless   homelessNodes
	departures cluster.Departures
	emptySince time.Time // since when nothing of the pool has been left and nobody else has led; zero = something is
}

// New returns an observer that remembers nothing. Its cloud and its cluster are to be set.
func New() Observer {
	return Observer{tracked: trackedInstances{},
		newNodes: newNodes{capacities: map[string]*observedCapacity{}}, homeless: homelessNodes{}}
}

// List asks the cloud for the pool's instances. It comes before everything else of a cycle: what the journal or the
// cluster knows beyond the list has happened since.
func (b *Observer) List(ctx context.Context, o *Observation) {
	ctx, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	o.Instances, o.ListErr = nil, nil
	instances, err := b.Cloud.List(ctx)
	if err != nil {
		o.ListErr = fmt.Errorf("list the instances: %w", err)
		return
	}
	o.Instances, o.foreign = make(map[string]fleet.Instance, len(instances)), map[string]fleet.Instance{}
	for _, i := range instances {
		if i.OwnedBy != "" {
			o.foreign[i.ID] = i
		} else {
			o.Instances[i.ID] = i
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
		if launched[i.Token]++; launched[i.Token] > state.InstancesOf(i.Token) {
			i.Action, i.Token, i.Slot = "", "", -1
			instances[i.ID] = i
		}
	}
}

// find asks the cloud by their ids about instances that its list lacks: a list may be behind, and
// lacks what has lost its tags.
func (b *Observer) find(ctx context.Context, o *Observation) {
	refs := b.tracked.unlisted()
	if len(refs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	found, err := b.Cloud.Find(ctx, refs)
	if err != nil {
		o.findErr = fmt.Errorf("find %d instances that are not listed: %w", len(refs), err)
		return
	}
	b.tracked.found(found, len(o.Instances) > 0, o.At)
}

// See looks at the cluster, and joins it with the cloud and the journal.
func (b *Observer) See(ctx context.Context, o *Observation) {
	b.seeCluster(ctx, o)
	dropCopies(o.Instances)
	if o.ListErr == nil {
		b.remember(ctx, o)
	}
	o.Known = b.tracked.values()
	for id, s := range inOrder(o.Known) {
		if o.Cluster != nil && !o.Gone(id) {
			o.nodes.addNodeless(s.Instance.Instance)
		}
	}
	b.ask(ctx, o)
	known := members{o, b.homeless, undoneOf(o.Record, o.At)}
	o.Members = known.all()
	known.markBroken(plan.Doubt(o.Spec.Plan, o.Members, o.Record.PendingTerminations) != "")
	if o.TookOver {
		b.emptySince = time.Time{}
	}
	if o.Leading {
		b.emptySince = since(b.emptySince, o.empty(), o.At)
	}
	o.EmptySince = b.emptySince
}

func (b *Observer) seeCluster(ctx context.Context, o *Observation) {
	call, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	seen, err := b.Cluster.Observe(call)
	if err != nil {
		o.clusterErr = fmt.Errorf("observe the cluster: %w", err)
		return
	}
	o.Cluster, b.departures = seen.Departing(b.departures)
	o.nodes = newNodeIndex(o.Cluster)
	b.newNodes.seeAttachLimits(o)
}

// remember takes note of what was seen of each instance.
func (b *Observer) remember(ctx context.Context, o *Observation) {
	var ours []*cluster.Node
	if o.Cluster != nil {
		for i := range o.Cluster.Nodes {
			if n := &o.Cluster.Nodes[i]; n.Object.Spec.ProviderID != "" && n.Object.Labels[cluster.LabelPool] == o.Pool {
				ours = append(ours, n)
			}
		}
	}
	b.tracked.see(o.Instances, o.Record, ours, o.At)
	b.find(ctx, o)
	for _, s := range b.tracked {
		n := o.nodes.nodeOf(s.Instance.Instance, s.node)
		if o.Cluster != nil {
			s.seeNode(o.nodes.claimants(s.Instance.Instance))
			s.seeHeartbeat(n, o.At)
			s.seeConditions(n, o.At)
			s.seeMarks(n, o.Record.Leaves(s.ID) || o.Record.PendingTermination(s.ID) != nil, o.At)
		}
		if n != nil {
			s.joined = o.At
			if n.Ready {
				s.worked = o.At
			}
		}
		s.seeUnlisted(n, o.VanishGrace, o.At)
		s.StoppedSince = since(s.StoppedSince, s.Missing.IsZero() && s.Stopped, o.At)
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

// MarkEnded notes instances that this process has terminated, whatever a list says that is behind.
func (b *Observer) MarkEnded(instances []string) {
	for _, id := range instances {
		if s := b.tracked[id]; s != nil {
			s.ended = true
		}
	}
}

// ask asks what can be launched. A failure leaves what was told last.
func (b *Observer) ask(ctx context.Context, o *Observation) {
	if b.offers == nil || o.At.Sub(b.offersAt) >= OffersFor {
		call, cancel := context.WithTimeout(ctx, config.CallTimeout)
		defer cancel()
		offers, err := b.Cloud.Offers(call)
		if err != nil {
			o.OffersErr = fmt.Errorf("ask what can be launched: %w", err)
		} else {
			b.offers, b.offersAt = offers, o.At
		}
	}
	o.Offers = b.newNodes.corrected(o, b.offers)
	b.newNodes.seeTemplate(o)
}

func scheme(providerID string) string {
	scheme, _, _ := strings.Cut(providerID, "://")
	return scheme
}

func marked(n *cluster.Node) bool {
	_, is := drain.MarkOf(n.Object)
	return is
}

// RememberRefused notes the workers that a decision did not remove as their pods would have no other node.
func (b *Observer) RememberRefused(refused []plan.Refusal, now time.Time) {
	b.homeless.remember(refused, now)
}
