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

// OffersFor is how long offers are cached.
const OffersFor = 10 * time.Minute

// lister is the part of a provider that observes.
type lister interface {
	List(ctx context.Context) ([]fleet.Instance, error)
	Find(ctx context.Context, refs []fleet.Ref) (map[string]fleet.Instance, error)
	Offers(ctx context.Context) ([]provider.Offer, error)
}

// Observer is the first phase of a cycle: it reads and changes nothing. Its memory from cycle to
// cycle may be lost at any time.
type Observer struct {
	Cloud   lister
	Cluster Cluster

	tracked    trackedInstances
	offers     []provider.Offer
	offersAt   time.Time
	newNodes   newNodes
	unmovable  unmovableNodes
	departures cluster.Departures
	emptySince time.Time // time since which nothing of the pool has been left while this process led; zero = something is
}

// New returns an observer without memory. Its cloud and its cluster must be set.
func New() Observer {
	return Observer{tracked: trackedInstances{},
		newNodes: newNodes{capacities: map[string]*observedCapacity{}}, unmovable: unmovableNodes{}}
}

// List lists the pool's instances in the cloud. It comes before everything else in a cycle:
// anything that the journal or the cluster knows beyond the list has happened since.
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

// dropCopies assigns the launch of a token to as many instances as the call requested, those
// launched first. Further ones have copied tags, as the AWS console creates with "launch more like
// this": they belong to the pool, but no action launched them.
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

// findUnlisted queries instances that the list lacks by their ids: a list may be stale, and lacks instances
// that have lost their tags.
func (b *Observer) findUnlisted(ctx context.Context, o *Observation) {
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

// Observe reads the cluster, and joins it with the cloud and the journal.
func (b *Observer) Observe(ctx context.Context, o *Observation) {
	b.readCluster(ctx, o)
	dropCopies(o.Instances)
	if o.ListErr == nil {
		b.recordInstances(ctx, o)
	}
	o.Known = b.tracked.values()
	for id, s := range inOrder(o.Known) {
		if o.Cluster != nil && !o.Gone(id) {
			o.nodes.addNodeless(s.Instance.Instance)
		}
	}
	b.readOffers(ctx, o)
	known := members{o, b.unmovable, futileRemovalsOf(o.Record, o.At)}
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

func (b *Observer) readCluster(ctx context.Context, o *Observation) {
	call, cancel := context.WithTimeout(ctx, config.CallTimeout)
	defer cancel()
	seen, err := b.Cluster.Observe(call)
	if err != nil {
		o.clusterErr = fmt.Errorf("observe the cluster: %w", err)
		return
	}
	o.Cluster, b.departures = seen.Departing(b.departures)
	o.nodes = newNodeIndex(o.Cluster)
	b.newNodes.recordAttachLimits(o)
}

// recordInstances records what was seen of each instance.
func (b *Observer) recordInstances(ctx context.Context, o *Observation) {
	var ours []*cluster.Node
	if o.Cluster != nil {
		for i := range o.Cluster.Nodes {
			if n := &o.Cluster.Nodes[i]; n.Object.Spec.ProviderID != "" && n.Object.Labels[cluster.LabelPool] == o.Pool {
				ours = append(ours, n)
			}
		}
	}
	b.tracked.record(o.Instances, o.Record, ours, o.At)
	b.findUnlisted(ctx, o)
	for _, s := range b.tracked {
		n := o.nodes.nodeOf(s.Instance.Instance, s.node)
		if o.Cluster != nil {
			s.recordNode(o.nodes.nodesWithID(s.Instance.Instance))
			s.recordHeartbeat(n, o.At)
			s.recordConditions(n, o.At)
			s.recordMarks(n, o.Record.Leaves(s.ID) || o.Record.PendingTermination(s.ID) != nil, o.At)
		}
		if n != nil {
			s.joined = o.At
			if n.Ready {
				s.readyAt = o.At
			}
		}
		s.recordUnlisted(n, o.VanishGrace, o.At)
		s.StoppedSince = since(s.StoppedSince, s.Missing.IsZero() && s.Stopped, o.At)
	}
}

// since returns the time since which something has held, zero if it does not.
func since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// MarkEnded records instances that this process has terminated, even if a stale list still shows
// them.
func (b *Observer) MarkEnded(instances []string) {
	for _, id := range instances {
		if s := b.tracked[id]; s != nil {
			s.ended = true
		}
	}
}

// readOffers reads what can be launched. After a failure the last answer is used.
func (b *Observer) readOffers(ctx context.Context, o *Observation) {
	if b.offers == nil || o.At.Sub(b.offersAt) >= OffersFor {
		call, cancel := context.WithTimeout(ctx, config.CallTimeout)
		defer cancel()
		offers, err := b.Cloud.Offers(call)
		if err != nil {
			o.OffersErr = fmt.Errorf("read what can be launched: %w", err)
		} else {
			b.offers, b.offersAt = offers, o.At
		}
	}
	o.Offers = b.newNodes.corrected(o, b.offers)
	b.newNodes.recordTemplate(o)
}

func scheme(providerID string) string {
	scheme, _, _ := strings.Cut(providerID, "://")
	return scheme
}

func marked(n *cluster.Node) bool {
	_, is := drain.MarkOf(n.Object)
	return is
}

// RecordRefused records the workers that a decision did not remove because their pods would fit
// on no other node.
func (b *Observer) RecordRefused(refused []plan.Refusal, now time.Time) {
	b.unmovable.record(refused, now)
}
