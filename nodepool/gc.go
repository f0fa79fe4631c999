package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Why an instance is condemned.
const (
	condemnedOrphan     = "Orphan"
	condemnedJoinFailed = "JoinFailed"
	condemnedStopped    = "Stopped"
	condemnedDeleted    = "Deleted" // its pool is, and its node has not joined yet
)

// orphanMargin is how much longer than the timeout of a join an instance may be without a node and an action.
const orphanMargin = 2 * time.Minute

// stoppedFor is how long an instance may be stopped, as workers are never started again.
const stoppedFor = 30 * time.Minute

// atOnce is how many instances a tick condemns at most. Each tick looks anew whether the world is to be trusted.
const atOnce = 2

// strayFor is how long a node must be seen to carry the mark of no open action: what is seen of it may be a little old.
const strayFor = 5 * time.Second

// adviceFor is how long a node stays cordoned because the cloud advised to leave it, which it may never insist on.
const adviceFor = 15 * time.Minute

// giveUpKept ends the time for which instances that did not join are kept to be looked at, as their place is needed.
func (t *tick) giveUpKept(ctx context.Context) error {
	ended := false
	for _, id := range t.decision.GiveUp {
		if c := t.condemned(id); c != nil && t.now.Before(c.Due) {
			c.Due, ended = t.now, true
			t.event(Event{Reason: EventGivenUp, Instance: id, Message: fmt.Sprintf("The place of %s, which did not join, is needed: it is not kept any longer", id)})
		}
	}
	if !ended {
		return nil
	}
	return t.save(ctx)
}

func (t *tick) condemned(instance string) *state.Condemned {
	for i := range t.record.Condemned {
		if c := &t.record.Condemned[i]; instance != "" && c.InstanceID == instance {
			return c
		}
	}
	return nil
}

// endCondemned terminates condemned instances whose time has come, and pardons those whose node has joined after all. While
// what is seen is not to be trusted it terminates none.
func (t *tick) endCondemned(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	var errs []error
	doubt := t.doubt()
	kept := t.record.Condemned[:0:0]
	for _, c := range t.record.Condemned {
		stays, err := t.endOne(ctx, c, doubt)
		if !stays {
			claimed := t.claim(ctx, t.node(provider.Instance{ID: c.InstanceID}))
			stays, err = claimed != nil, errors.Join(err, claimed)
		}
		if stays {
			kept = append(kept, c)
		}
		if errors.Is(err, errLeaseLost) {
			return err
		}
		errs = append(errs, err)
	}
	if len(kept) != len(t.record.Condemned) {
		t.record.Condemned, t.dirty = kept, true
	}
	return errors.Join(errs...)
}

// endOne looks at one condemned instance and tells whether it stays condemned.
func (t *tick) endOne(ctx context.Context, c state.Condemned, doubt error) (stays bool, err error) {
	i, listed := t.instances[c.InstanceID]
	if !listed {
		return !t.gone(c.InstanceID), nil
	}
	node := t.node(i)
	switch {
	case node != nil && controlPlane(node.Object):
		return false, nil
	case node != nil && node.Ready:
		t.event(Event{Reason: EventJoined, Instance: i.ID, Node: node.Object.Name, Message: fmt.Sprintf("Node %s of %s has joined after all", node.Object.Name, i.ID)})
		return false, nil
	case c.Reason == condemnedDeleted && !t.spec.Plan.Deleting:
		return false, nil
	case c.Reason == condemnedStopped && !i.Stopped:
		return i.State == provider.Leaving, nil // it ends, or somebody has started it
	case c.Reason == condemnedStopped:
		return true, t.terminate(ctx, c, i) // nothing runs on it
	case i.State == provider.Leaving && !i.Stopped:
		return true, nil
	}
	if c.Reason == condemnedJoinFailed && !i.JoinFailed {
		err = t.act.markJoinFailed(ctx, i.ID)
	}
	if !t.spec.Plan.Deleting && (t.now.Before(c.Due) || c.Reason == condemnedJoinFailed && t.spec.Join.KeepFailed) {
		return true, err
	}
	if doubt != nil {
		return true, errors.Join(err, fmt.Errorf("instance %s has no node that works, and is not terminated: %w", i.ID, doubt))
	}
	return true, errors.Join(err, t.execute(ctx, c, i, node))
}

// doubt tells why what is seen of nodes is not to be trusted, nil if it is. If the Nodes of many instances are missed, as
// in a cluster that was restored from a backup, the instances are there and so are their pods. Instances whose nodes never
// joined say nothing of that.
func (t *tick) doubt() error {
	unready, all := 0, 0
	for _, i := range t.instances {
		if i.State == provider.Leaving || t.neverJoined(i) {
			continue
		}
		all++
		if n := t.node(i); n == nil || !n.Ready {
			unready++
		}
	}
	if !t.spec.Plan.Distrusts(unready, all) {
		return nil
	}
	return fmt.Errorf("%d of %d instances have no node that is ready: what is seen is not to be trusted", unready, all)
}

// neverJoined tells whether the journal or the tags of an instance say that its node has not joined.
func (t *tick) neverJoined(i provider.Instance) bool {
	if c := t.condemned(i.ID); c != nil {
		return c.Reason == condemnedJoinFailed || c.Reason == condemnedDeleted
	}
	s := t.sightings[i.ID]
	return i.JoinFailed && s != nil && s.joined.IsZero()
}

// execute terminates a condemned instance. If it has a Node that was never Ready, pods that tolerate that are evicted
// first. What is seen of Nodes may be old by now, so that the cluster is asked once more.
func (t *tick) execute(ctx context.Context, c state.Condemned, i provider.Instance, node *clusterstate.Node) error {
	var empty bool
	var err error
	if node == nil {
		empty, err = t.nodeless(ctx, i)
	} else {
		empty, err = t.vacate(ctx, node)
	}
	if err != nil || !empty {
		return err
	}
	return t.terminate(ctx, c, i)
}

func (t *tick) terminate(ctx context.Context, c state.Condemned, i provider.Instance) error {
	if err := t.end(ctx, i.ID); err != nil {
		return fmt.Errorf("terminate %s: %w", i.ID, err)
	}
	t.event(Event{Reason: EventTerminated, Instance: i.ID, Message: fmt.Sprintf("Terminated %s: %s", i.ID, c.Reason)})
	return nil
}

// end terminates an instance. Whatever lists say from then on, it is no worker any more.
func (t *tick) end(ctx context.Context, id string) error {
	if err := t.act.terminate(ctx, id); err != nil {
		return err
	}
	if s := t.sightings[id]; s != nil {
		s.ended = true
	}
	return nil
}

// nodeless tells whether an instance has no Node in truth. That there may be one is an error.
func (t *tick) nodeless(ctx context.Context, i provider.Instance) (bool, error) {
	if name := t.stranger(i); name != "" {
		return false, fmt.Errorf("instance %s has no node and is not terminated, as node %s may be its: want the provider id %s", i.ID, name, i.ProviderID)
	}
	name, err := t.act.nodeOf(ctx, i)
	if err != nil {
		return false, fmt.Errorf("instance %s is not terminated: whether it has a node: %w", i.ID, err)
	}
	if name != "" {
		return false, fmt.Errorf("instance %s is not terminated: it has node %s, which has not been seen yet", i.ID, name)
	}
	return true, nil
}

// vacate evicts the pods of a condemned node, and tells whether it is empty. It begins once the mark is seen on the Node:
// what is seen of it then, such as that it is not Ready, is no older than the mark, and no pod is on its way to it.
func (t *tick) vacate(ctx context.Context, node *clusterstate.Node) (empty bool, err error) {
	if err := t.act.taint(ctx, node.Object.Name, "condemned"); err != nil || !marked(node) {
		return false, err
	}
	progress, err := t.act.evict(ctx, node.Object.Name, drain.Limits{})
	return err == nil && progress.Remaining == 0, err
}

// stranger returns a Node that may be the one of an instance without a node: it has come after the instance was launched,
// and its provider id is of no kind that the pool's instances have. A kubelet that was not told its provider id looks so.
func (t *tick) stranger(i provider.Instance) string {
	scheme, _, _ := strings.Cut(i.ProviderID, "://")
	for _, n := range t.cluster.Nodes {
		other, _, _ := strings.Cut(n.Object.Spec.ProviderID, "://")
		if other != scheme && !controlPlane(n.Object) && n.Object.CreationTimestamp.After(i.Launched) {
			return n.Object.Name
		}
	}
	return ""
}

// condemnOrphans finds instances that were launched by an action and have neither a node nor an action any more. They are
// condemned here, a few at once, and terminated in a later tick. Instances that no action has launched are left to whoever
// did.
func (t *tick) condemnOrphans(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	found := 0
	for _, i := range inOrder(t.instances) {
		age := t.orphanedFor(i)
		if age <= t.orphansWait() {
			continue
		}
		if doubt := t.doubt(); doubt != nil {
			return fmt.Errorf("instance %s has had no node for %s, and is left alone: %w", i.ID, age.Round(time.Second), doubt)
		}
		if found++; found > atOnce {
			break
		}
		t.condemn(i, age)
	}
	if found == 0 {
		return nil
	}
	return t.save(ctx)
}

// orphansWait is for how long an instance may be without a node and an action. In a pool that is being deleted it need not have
// the time to join.
func (t *tick) orphansWait() time.Duration {
	if t.spec.Plan.Deleting {
		return t.options.VanishGrace
	}
	return t.spec.Join.Timeout + orphanMargin
}

// condemnStopped finds instances of actions that are stopped for good. They do not count as workers, and keep their disks.
func (t *tick) condemnStopped(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	found := 0
	for _, s := range inOrder(t.sightings) {
		i := s.instance
		switch {
		case !s.missing.IsZero() || !i.Stopped:
			s.stopped = time.Time{}
			continue
		case s.stopped.IsZero():
			s.stopped = t.now
		}
		kept := t.now.Sub(s.stopped) < stoppedFor || i.JoinFailed && t.spec.Join.KeepFailed
		if i.Action == "" || kept && !t.spec.Plan.Deleting || t.spokenFor(i) || found == atOnce {
			continue
		}
		found++
		t.record.Condemned = append(t.record.Condemned, state.Condemned{InstanceID: i.ID, Reason: condemnedStopped, Since: t.now, Due: t.now})
		t.event(Event{
			Reason: EventOrphan, Warning: true, Instance: i.ID, Action: i.Action,
			Message: fmt.Sprintf("Instance %s has been stopped for %s, and no worker is started again", i.ID, t.now.Sub(s.stopped).Round(time.Second)),
		})
	}
	if found == 0 {
		return nil
	}
	return t.save(ctx)
}

// condemn condemns an instance. One that has not joined for all that its tag tells, in a journal that is not there any
// more, is kept as long as others that have not.
func (t *tick) condemn(i provider.Instance, age time.Duration) {
	c := state.Condemned{InstanceID: i.ID, Reason: condemnedOrphan, Since: t.now, Due: t.now}
	if i.JoinFailed {
		c.Reason, c.Due = condemnedJoinFailed, t.now.Add(t.spec.Join.KeepFailedFor)
	}
	t.record.Condemned = append(t.record.Condemned, c)
	t.event(Event{
		Reason: EventOrphan, Warning: true, Instance: i.ID, Action: i.Action,
		Message: fmt.Sprintf("Instance %s has had no node for %s, and no action is waiting for it", i.ID, age.Round(time.Second)),
	})
}

// orphanedFor is for how long an instance of an action has had neither a node nor anything in the journal, 0 if it has.
func (t *tick) orphanedFor(i provider.Instance) time.Duration {
	s := t.sightings[i.ID]
	if s == nil || i.Action == "" || i.State == provider.Leaving || t.node(i) != nil || t.spokenFor(i) {
		return 0
	}
	return t.now.Sub(s.without())
}

// spokenFor tells whether the journal knows what becomes of an instance.
func (t *tick) spokenFor(i provider.Instance) bool {
	a := t.record.Action
	return a != nil && a.ID == i.Action || t.leaves(i.ID) || t.condemned(i.ID) != nil
}

// tidyNodes labels the nodes of workers, deletes the Nodes of instances that have gone, and restores nodes that carry the
// mark of an action that is over.
func (t *tick) tidyNodes(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	var errs []error
	for node := range t.strays {
		if n := t.nodeNamed(node); n == nil || !marked(n) {
			delete(t.strays, node)
		}
	}
	for _, s := range inOrder(t.sightings) {
		node := t.node(s.instance)
		if node == nil || controlPlane(node.Object) {
			continue
		}
		err := t.tidy(ctx, s, node)
		if errors.Is(err, errLeaseLost) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (t *tick) tidy(ctx context.Context, s *sighting, node *clusterstate.Node) error {
	name, i := node.Object.Name, s.instance
	switch {
	case t.leaves(i.ID):
		delete(t.strays, name)
		return nil
	case s.missing.IsZero() && i.State != provider.Leaving && marked(node) && t.condemned(i.ID) == nil:
		if t.strays[name].IsZero() {
			t.strays[name] = t.now
		}
		if t.now.Sub(t.strays[name]) < strayFor {
			return nil
		}
		action, _ := drain.MarkOf(node.Object)
		if err := t.act.restore(ctx, name); err != nil {
			return err
		}
		t.event(Event{Reason: EventRestored, Node: name, Instance: i.ID, Action: action, Message: fmt.Sprintf("Node %s takes pods again: action %s is over", name, action)})
	case t.adviceIsOver(s, node):
		if err := t.act.restore(ctx, name); err != nil {
			return err
		}
		t.event(Event{Reason: EventRestored, Node: name, Instance: i.ID, Message: fmt.Sprintf("Node %s takes pods again: the cloud has not taken %s in %s", name, i.ID, adviceFor)})
	case !node.Ready && t.missed(s):
		if err := t.act.deleteNode(ctx, name, node.Object.Spec.ProviderID); err != nil {
			return err
		}
		t.event(Event{Reason: EventNodeDeleted, Node: name, Instance: i.ID, Message: fmt.Sprintf("Deleted node %s, whose instance has gone", name)})
	default:
		return t.claim(ctx, node)
	}
	return nil
}

// claim labels the Node of a worker with the pool, nil if the worker has none. The journal forgets an instance only after
// that: a process that starts when the instance is gone finds the Node by the label alone.
func (t *tick) claim(ctx context.Context, node *clusterstate.Node) error {
	if node == nil || controlPlane(node.Object) || node.Object.Labels[LabelPool] == t.options.Name || t.claimed[node.Object.Name] {
		return nil
	}
	if err := t.act.label(ctx, node.Object.Name, t.options.Name); err != nil {
		return fmt.Errorf("label node %s: %w", node.Object.Name, err)
	}
	t.claimed[node.Object.Name] = true
	return nil
}

// adviceIsOver tells whether a node that was cordoned by an advice alone has been so for long enough.
func (t *tick) adviceIsOver(s *sighting, node *clusterstate.Node) bool {
	if !drain.Cordoned(node.Object) || marked(node) {
		s.cordoned = time.Time{}
		return false
	}
	if s.cordoned.IsZero() {
		s.cordoned = t.now
	}
	return t.now.Sub(s.cordoned) >= adviceFor && s.missing.IsZero() && s.instance.State != provider.Leaving
}

func marked(n *clusterstate.Node) bool {
	_, is := drain.MarkOf(n.Object)
	return is
}

// missed tells whether an instance, known by its id or by its Node alone, has gone.
func (t *tick) missed(s *sighting) bool {
	key := s.instance.ID
	if key == "" {
		key = s.instance.ProviderID
	}
	return t.gone(key)
}

// open tells whether something in the journal waits for its next step.
func open(r state.Record) bool {
	return r.Action != nil || slices.ContainsFunc(r.Interruptions, func(x state.Removal) bool { return !done(x) })
}
