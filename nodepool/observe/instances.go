package observe

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// trackedInstance is what is known of one instance. The list of the cloud may lack an instance that
// exists: it is eventually consistent, and tags change. So an instance is gone only when the cloud,
// asked by its id, says that it is terminated; or denies it for the grace while its Node is not alive.
type trackedInstance struct {
	// Instance has the last report of the cloud, StoppedSince, and the StaleMark and Advised of its
	// Node. Everything else of it follows from the rest at each moment: see [members.one].
	plan.Instance
	node       string              // the Node that it has, or had last; "" = none has been seen
	disputed   bool                // several Nodes have had its provider id, and none has proved to be its own
	Missing    time.Time           // since when successful lists have lacked it; zero = the last one had it
	life       fleet.InstanceState // as the cloud said when asked by its id; "" = listed, or not known
	absent     time.Time           // since when the cloud, asked by its id, has denied it; zero = it does not
	first      time.Time           // when this process saw it first; zero = it has launched it
	joined     time.Time           // when it was last seen to have a Node; zero = this process has seen none
	worked     time.Time           // when its Node was last seen to be Ready; zero = this process has not seen it so
	beat       time.Time           // the newest heartbeat of its Node, by the kubelet's clock
	beatSeen   time.Time           // when this process saw that first
	alive      bool                // its Node is Ready, and has been heard of lately, whatever lists say
	lived      time.Time           // when it was alive last
	unlisted   bool                // it has not been listed for the grace, and has a Node or runs
	conditions []seenCondition     // of its Node; replaced, never changed
	ended      bool                // this process has terminated it, whatever a list says that is behind
}

// trackedInstances are by instance id. A Node of the pool whose instance has never been seen is
// kept by its provider id.
type trackedInstances map[string]*trackedInstance

// see records the instances that the cloud lists, by id, and those that only the journal or Nodes name.
func (s trackedInstances) see(listed map[string]fleet.Instance, r state.Record, nodes []*cluster.Node, now time.Time) {
	for id, i := range listed {
		if s[id] == nil {
			s[id] = &trackedInstance{first: now}
		}
		s[id].Instance.Instance, s[id].life, s[id].Missing, s[id].absent = i, "", time.Time{}, time.Time{}
	}
	s.seeRecorded(r, now)
	providerIDs := make(map[string]bool, len(listed))
	for _, one := range s {
		if one.ID != "" {
			providerIDs[one.ProviderID] = true
		}
	}
	for _, n := range nodes {
		if id := n.Object.Spec.ProviderID; !providerIDs[id] && s[id] == nil && s[provider.IDOf(id)] == nil {
			s[id] = &trackedInstance{first: now, Instance: plan.Instance{Instance: fleet.Instance{
				ProviderID: id, State: fleet.Running, Launched: n.Object.CreationTimestamp.Time,
			}}}
		}
	}
	s.seeMissing(listed, providerIDs, now)
}

// seeMissing records which instances the list lacks, and forgets those that are gone for long or no
// longer the pool's.
func (s trackedInstances) seeMissing(listed map[string]fleet.Instance, providerIDs map[string]bool, now time.Time) {
	for key, one := range s {
		_, there := listed[key]
		switch {
		case there:
		case one.ID == "" && (providerIDs[key] || s[provider.IDOf(key)] != nil):
			delete(s, key) // its instance has been seen since
		case one.Missing.IsZero():
			one.Missing = now
		case now.Sub(latest(one.Missing, one.lived, one.joined)) > time.Hour && (!one.Runs() || one.Foreign() != ""):
			delete(s, key)
		}
	}
}

// seeRecorded records the instances of the journal, with the Nodes that removals have begun with.
func (s trackedInstances) seeRecorded(r state.Record, now time.Time) {
	for _, i := range r.Instances() {
		if s[i.ID] == nil {
			s[i.ID] = &trackedInstance{Instance: plan.Instance{Instance: i}, first: now}
		}
	}
	for _, x := range r.Removals() {
		if one := s[x.InstanceID]; one.node == "" {
			one.node = x.Node
		}
	}
}

// unlisted returns the instances to look up by their ids.
func (s trackedInstances) unlisted() []fleet.Ref {
	var refs []fleet.Ref
	for _, one := range inOrder(s) {
		ref := fleet.Ref{ID: one.ID, ProviderID: one.ProviderID}
		if ref.ID == "" {
			ref.ID = provider.IDOf(ref.ProviderID)
		}
		if !one.Missing.IsZero() && one.life != fleet.Gone && ref.ID != "" {
			refs = append(refs, ref)
		}
	}
	return refs
}

// found records what the cloud says of instances that its list lacks. That it denies one counts only if
// it lists others of the pool: otherwise its account may be the wrong one.
func (s trackedInstances) found(all map[string]fleet.Instance, trusted bool, now time.Time) {
	for key, one := range inOrder(s) {
		id := one.ID
		if id == "" {
			id = provider.IDOf(one.ProviderID)
		}
		found, ok := all[id]
		if one.Missing.IsZero() || one.life == fleet.Gone {
			continue
		}
		one.life = found.State
		absent := one.life == fleet.Absent
		one.absent = since(one.absent, absent && trusted, now)
		switch {
		case !ok || absent:
		case one.ID == "" && found.State != fleet.Gone:
			one.Instance.Instance = found
			delete(s, key)
			s[id] = one
		default:
			i := &one.Instance.Instance
			i.State, i.Stopped, i.OwnedBy, i.Disowned = found.State, found.Stopped, found.OwnedBy, found.Disowned
			if len(found.Addresses) > 0 {
				i.Addresses = found.Addresses
			}
		}
	}
}

// seeNode records which Node has the provider id of an instance. The first one counts until another
// one proves by its address that it runs on the instance.
func (s *trackedInstance) seeNode(claimants []*cluster.Node) {
	switch {
	case len(claimants) > 1:
		s.disputed = true
	case len(claimants) == 0:
	case claimants[0].Object.Name == s.node, s.node == "" && !s.disputed, isAt(claimants[0].Object, s.Instance.Instance):
		s.node, s.disputed = claimants[0].Object.Name, false
	}
}

// whyUnlisted returns why the list lacks an instance, as far as that is known: a part of a sentence.
func (s *trackedInstance) whyUnlisted() string {
	switch {
	case s.Disowned != "":
		return s.Disowned
	case s.life == fleet.Absent:
		return "and knows none of the pool's: check its account, and delete the Node if the instance is gone"
	}
	return "which may have lost its tags"
}

// Foreign returns why the pool may not change an instance, by the cloud's last answer; "" if it may.
func (s *trackedInstance) Foreign() string {
	if s.OwnedBy != "" {
		return "it belongs to " + s.OwnedBy
	}
	return s.Disowned
}

// without is since when an instance has been without a Node, for all that this process knows: what
// was before it began it cannot tell, and a Node that it has never seen may have been there.
func (s *trackedInstance) without() time.Time {
	return latest(s.Launched, s.first, s.joined)
}

// unready is since when the Node of an instance has not been Ready, for all that this process knows.
func (s *trackedInstance) unready() time.Time {
	return latest(s.Launched, s.first, s.worked)
}

func latest(of ...time.Time) time.Time { return slices.MaxFunc(of, time.Time.Compare) }

// isGone reports whether an instance is known to be gone. Neither an accepted termination nor a list
// that lacks it is proof: its containers may still run.
func (s *trackedInstance) isGone(grace time.Duration, now time.Time) bool {
	switch {
	case s.Missing.IsZero():
		return false
	case s.life == fleet.Gone:
		return true
	}
	return !s.absent.IsZero() && !s.alive && now.Sub(latest(s.absent, s.lived)) >= grace
}

// Runs reports whether an instance that the list lacks starts or runs, as the cloud says when asked
// by its id.
func (s *trackedInstance) Runs() bool {
	return s.life == fleet.Running || s.life == fleet.Pending
}

// seeUnlisted records whether the cloud has not listed an instance for the grace, although it has a
// Node or runs.
func (s *trackedInstance) seeUnlisted(n *cluster.Node, grace time.Duration, now time.Time) {
	s.unlisted = !s.Missing.IsZero() && !s.ended && now.Sub(s.Missing) >= grace && !s.isGone(grace, now) &&
		(n != nil || s.Runs()) && s.State != fleet.Leaving
}

// seeMarks takes note of what a removal has left on the Node of an instance. A mark is stale unless
// the journal speaks of the instance.
func (s *trackedInstance) seeMarks(n *cluster.Node, spoken bool, now time.Time) {
	there := n != nil && s.Missing.IsZero() && s.State != fleet.Leaving
	s.Node.StaleMark = since(s.Node.StaleMark, there && !spoken && marked(n), now)
	s.Node.Advised = since(s.Node.Advised, n != nil && drain.Cordoned(n.Object) && !marked(n), now)
}

// values returns what is known at this moment.
func (s trackedInstances) values() map[string]trackedInstance {
	out := make(map[string]trackedInstance, len(s))
	for id, one := range s {
		out[id] = *one
	}
	return out
}

// HeartbeatWithin is for how long a Node that is Ready is believed without a heartbeat in its
// status. Kubelets report it every five minutes, and once up to seven and a half after a start. It
// matters only where nothing else notices that one has stopped.
const HeartbeatWithin = 10 * time.Minute

// seeHeartbeat takes note of the Node of an instance, nil if it has none.
func (s *trackedInstance) seeHeartbeat(n *cluster.Node, now time.Time) {
	if s.alive = n != nil && n.Ready; !s.alive {
		return
	}
	for _, c := range n.Object.Status.Conditions {
		if c.Type == corev1.NodeReady && !c.LastHeartbeatTime.Time.Equal(s.beat) {
			s.beat, s.beatSeen = c.LastHeartbeatTime.Time, now
		}
	}
	if s.beatSeen.IsZero() {
		s.beatSeen = now
	}
	if s.alive = now.Sub(s.beatSeen) < HeartbeatWithin; s.alive {
		s.lived = now
	}
}

// inOrder iterates over a map in the order of its keys, so that results are deterministic.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
