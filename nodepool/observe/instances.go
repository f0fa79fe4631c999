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

// trackedInstance is the memory about one instance. The list of the cloud may lack an instance that
// exists, because it is eventually consistent and tags change. So an instance is gone only if the
// cloud, queried by its id, reports it as terminated, or denies it for the grace while its Node is
// not alive.
type trackedInstance struct {
	// Instance holds the last report of the cloud, StoppedSince, and the StaleMark and Advised of its
	// Node. Everything else in it is derived in each cycle: see [members.one].
	plan.Instance
	node          string              // its Node, or its last one; "" = none has been seen
	disputed      bool                // several Nodes have had its provider id, and none has proved to be its own
	Missing       time.Time           // time since which successful lists have lacked it; zero = the last one had it
	life          fleet.InstanceState // reported by the cloud when queried by its id; "" = listed, or unknown
	absent        time.Time           // time since which the cloud, queried by its id, has denied it; zero = it does not
	first         time.Time           // when this process saw it first; zero = it launched it
	joined        time.Time           // when it was last seen with a Node; zero = never by this process
	readyAt       time.Time           // when its Node was last seen Ready; zero = never by this process
	heartbeat     time.Time           // latest heartbeat of its Node, by the kubelet's clock
	heartbeatSeen time.Time           // when this process first saw that heartbeat
	alive         bool                // its Node is Ready and has sent a heartbeat recently, whatever lists contain
	aliveAt       time.Time           // when it was last alive
	unlisted      bool                // it has not been listed for the grace, but has a Node or runs
	conditions    []seenCondition     // of its Node; replaced, never changed
	ended         bool                // this process has terminated it, even if a stale list still shows it
}

// trackedInstances are indexed by instance id, or by provider id for a Node of the pool whose
// instance has never been seen.
type trackedInstances map[string]*trackedInstance

// record records the instances that the cloud lists, by id, and those that only the journal or Nodes
// name.
func (s trackedInstances) record(listed map[string]fleet.Instance, r state.Record,
	nodes []*cluster.Node, now time.Time) {
	for id, i := range listed {
		if s[id] == nil {
			s[id] = &trackedInstance{first: now}
		}
		s[id].Instance.Instance, s[id].life, s[id].Missing, s[id].absent = i, "", time.Time{}, time.Time{}
	}
	s.recordJournal(r, now)
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
	s.recordMissing(listed, providerIDs, now)
}

// recordMissing records which instances the list lacks, and drops those that have been gone for long
// or no longer belong to the pool.
func (s trackedInstances) recordMissing(listed map[string]fleet.Instance, providerIDs map[string]bool, now time.Time) {
	for key, one := range s {
		_, there := listed[key]
		switch {
		case there:
		case one.ID == "" && (providerIDs[key] || s[provider.IDOf(key)] != nil):
			delete(s, key) // its instance has been seen since
		case one.Missing.IsZero():
			one.Missing = now
		case now.Sub(latest(one.Missing, one.aliveAt, one.joined)) > time.Hour && (!one.Runs() || one.Foreign() != ""):
			delete(s, key)
		}
	}
}

// recordJournal records the instances of the journal, with the Nodes of open removals.
func (s trackedInstances) recordJournal(r state.Record, now time.Time) {
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

// unlisted returns the instances to query by their ids.
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

// found records the cloud's answers about instances that its list lacks. A denial counts only if
// the cloud lists other instances of the pool: otherwise the account may be the wrong one.
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

// recordNode records which Node has the provider id of an instance. The first one counts until another
// one proves by its address that it runs on the instance.
func (s *trackedInstance) recordNode(nodesWithID []*cluster.Node) {
	switch {
	case len(nodesWithID) > 1:
		s.disputed = true
	case len(nodesWithID) == 0:
	case nodesWithID[0].Object.Name == s.node, s.node == "" && !s.disputed,
		isAt(nodesWithID[0].Object, s.Instance.Instance):
		s.node, s.disputed = nodesWithID[0].Object.Name, false
	}
}

// whyUnlisted returns why the list lacks an instance, as far as that is known: a part of a
// sentence.
func (s *trackedInstance) whyUnlisted() string {
	switch {
	case s.Disowned != "":
		return s.Disowned
	case s.life == fleet.Absent:
		return "and knows none of the pool's: check its account, and delete the Node if the instance is gone"
	}
	return "which may have lost its tags"
}

// Foreign returns why the pool may not change an instance, by the cloud's last answer, "" if it
// may.
func (s *trackedInstance) Foreign() string {
	if s.OwnedBy != "" {
		return "it belongs to " + s.OwnedBy
	}
	return s.Disowned
}

// nodelessSince returns the time since which an instance has been without a Node, as far as this process
// knows: it cannot know about the time before it started, and a Node that it has never seen may
// have existed.
func (s *trackedInstance) nodelessSince() time.Time {
	return latest(s.Launched, s.first, s.joined)
}

// unreadySince returns the time since which the Node of an instance has not been Ready, as far as this
// process knows.
func (s *trackedInstance) unreadySince() time.Time {
	return latest(s.Launched, s.first, s.readyAt)
}

func latest(of ...time.Time) time.Time { return slices.MaxFunc(of, time.Time.Compare) }

// isGone reports whether an instance certainly no longer exists. Neither an accepted termination
// nor a list without it is proof: its containers may still run.
func (s *trackedInstance) isGone(grace time.Duration, now time.Time) bool {
	switch {
	case s.Missing.IsZero():
		return false
	case s.life == fleet.Gone:
		return true
	}
	return !s.absent.IsZero() && !s.alive && now.Sub(latest(s.absent, s.aliveAt)) >= grace
}

// Runs reports whether an instance that the list lacks starts or runs, according to the cloud's
// answer about its id.
func (s *trackedInstance) Runs() bool {
	return s.life == fleet.Running || s.life == fleet.Pending
}

// recordUnlisted records whether the cloud has not listed an instance for the grace although it has a
// Node or runs.
func (s *trackedInstance) recordUnlisted(n *cluster.Node, grace time.Duration, now time.Time) {
	s.unlisted = !s.Missing.IsZero() && !s.ended && now.Sub(s.Missing) >= grace && !s.isGone(grace, now) &&
		(n != nil || s.Runs()) && s.State != fleet.Leaving
}

// recordMarks records the traces of a removal on the Node of an instance. A mark is stale unless the
// journal contains the instance.
func (s *trackedInstance) recordMarks(n *cluster.Node, spoken bool, now time.Time) {
	there := n != nil && s.Missing.IsZero() && s.State != fleet.Leaving
	s.Node.StaleMark = since(s.Node.StaleMark, there && !spoken && marked(n), now)
	s.Node.Advised = since(s.Node.Advised, n != nil && drain.Cordoned(n.Object) && !marked(n), now)
}

// values returns a copy of the current state.
func (s trackedInstances) values() map[string]trackedInstance {
	out := make(map[string]trackedInstance, len(s))
	for id, one := range s {
		out[id] = *one
	}
	return out
}

// HeartbeatWithin is the time for which a Ready Node is trusted without a heartbeat in its status.
// Kubelets send one every five minutes, and once up to seven and a half after a start. It matters
// only if nothing else detects that a kubelet has stopped.
const HeartbeatWithin = 10 * time.Minute

// recordHeartbeat records the heartbeat of the Node of an instance, nil if it has none.
func (s *trackedInstance) recordHeartbeat(n *cluster.Node, now time.Time) {
	if s.alive = n != nil && n.Ready; !s.alive {
		return
	}
	for _, c := range n.Object.Status.Conditions {
		if c.Type == corev1.NodeReady && !c.LastHeartbeatTime.Time.Equal(s.heartbeat) {
			s.heartbeat, s.heartbeatSeen = c.LastHeartbeatTime.Time, now
		}
	}
	if s.heartbeatSeen.IsZero() {
		s.heartbeatSeen = now
	}
	if s.alive = now.Sub(s.heartbeatSeen) < HeartbeatWithin; s.alive {
		s.aliveAt = now
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
