package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

const (
	// ForceBefore is how long before the cloud takes an instance its last pods are deleted: the grace that most pods have,
	// and a little.
	ForceBefore = 45 * time.Second
	// DetachWithin is how long after its pods have gone the volumes of a node are waited for. The attach-detach controller takes
	// seconds; volumes of DaemonSets are not detached at all.
	DetachWithin = 2 * time.Minute
	// takenFor is how long after its deadline an instance may still be there, before the notice is taken for a mistake.
	takenFor = 10 * time.Minute
	// Waits until a node is drained again after a drain that failed, doubling.
	DrainBackoffMin = 10 * time.Minute
	drainBackoffMax = time.Hour // the first after what is not likely to pass, and the longest where nothing else can go instead
	// drainBackoffDeleting is the first of a pool that is being deleted: no other node can go instead.
	drainBackoffDeleting = time.Minute
)

// removing is one removal, as far as this cycle takes it. It is found anew in the record after each save, which replaces it.
type removing struct {
	*executor
	find   func() *state.Removal
	action string // that the node is marked with
	urgent bool   // the cloud takes the instance whatever is done here
	repair bool   // its Node is unhealthy: nothing keeps it for longer than the time of a drain
	forced bool   // its node must go, and the pool has drain.force: no pod keeps it for longer than the time of a drain
}

// advance takes the removal as far as it gets without waiting.
func (m removing) advance(ctx context.Context) error {
	for {
		before := m.find().State
		if err := m.step(ctx); err != nil {
			return err
		}
		if after := m.find(); after == nil || after.State == before {
			return nil
		}
	}
}

// step does what the state of the removal asks for. What is done can be done again: it comes before the write of the state
// that it leads to.
func (m removing) step(ctx context.Context) error {
	r := m.find()
	if done, err := m.overtaken(ctx, r); done || err != nil {
		return err
	}
	switch r.State {
	case state.RemovalPlanned:
		return m.taint(ctx, r)
	case state.RemovalTainted:
		return m.cordon(ctx, r)
	case state.RemovalDraining:
		return m.drain(ctx, r)
	case state.RemovalDrained:
		return m.terminate(ctx, r)
	case state.RemovalRestoring:
		return m.restore(ctx, r)
	}
	return nil
}

// overtaken ends, gives up or holds a removal that must not go on as it began, and reports whether it did.
func (m removing) overtaken(ctx context.Context, r *state.Removal) (bool, error) {
	if r.Done() || r.State == state.RemovalRestoring {
		return false, nil
	}
	if m.seen.Gone(r.InstanceID) {
		m.Event(journal.Event{
			Reason: journal.EventVanished, Warning: !m.urgent, Instance: r.InstanceID, Node: r.Node, Action: m.action,
			Message: fmt.Sprintf("Instance %s has gone while its node was %s", r.InstanceID, strings.ToLower(string(r.State))),
		})
		return true, m.end(ctx)
	}
	if m.isControlPlane(r) {
		return true, m.giveUp(ctx, "it is one of the control plane")
	}
	if m.isExpiredNotice(r) {
		return true, m.giveUp(ctx, fmt.Sprintf("the cloud has not taken the instance %s after it was to", takenFor))
	}
	if why := m.mistaken(r); why != "" {
		return true, m.hold(ctx, why)
	}
	if m.repair {
		return m.holdRepair(ctx, r)
	}
	return false, nil
}

// mistaken returns why a removal may be about the wrong Node or instance, "" if it is about the right
// ones: another instance may have taken the node name, another Node the provider id, and tags change.
func (m removing) mistaken(r *state.Removal) string {
	s, seen := m.seen.Known[r.InstanceID]
	if !seen || !m.seen.Complete() {
		return ""
	}
	n := m.seen.NodeNamed(r.Node)
	switch why := m.seen.Ambiguity(s); {
	case why != "":
		return why
	case n != nil && provider.IDOf(n.Object.Spec.ProviderID) != r.InstanceID:
		return fmt.Sprintf("node %s now has the provider id %q, and not that of %s", r.Node, n.Object.Spec.ProviderID, r.InstanceID)
	}
	return s.Foreign()
}

// hold stops a removal for now. That of an instance that the cloud takes back waits, as the instance
// goes in any case; any other is given up.
func (m removing) hold(ctx context.Context, why string) error {
	if !m.urgent {
		return m.giveUp(ctx, why)
	}
	if r := m.find(); r.Error != why {
		r.Error, m.Dirty = why, true
	}
	return nil
}

// isControlPlane reports whether the node is one of the control plane, which no workflow touches.
// It may not have been known when the removal began.
func (m removing) isControlPlane(r *state.Removal) bool {
	n := m.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID})
	return n != nil && n.ControlPlane()
}

// isExpiredNotice reports whether an instance that the cloud was to take still exists long after, or
// has only been stopped.
func (m removing) isExpiredNotice(r *state.Removal) bool {
	s, seen := m.seen.Known[r.InstanceID]
	exists := seen && m.seen.ListErr == nil && (s.Missing.IsZero() || s.Runs())
	ends := s.Instance.State == fleet.Leaving && !s.Instance.Stopped
	return m.urgent && exists && !ends && m.Now().Sub(r.Deadline) > takenFor
}

// to writes the state that the removal has come to.
func (m removing) to(ctx context.Context, s state.RemovalState) error {
	r := m.find()
	r.State, r.Since = s, m.Now()
	if s == state.RemovalDraining && r.Began.IsZero() {
		r.Began = r.Since
	}
	return m.save(ctx)
}

// giveUp has the node take pods again, and leaves it alone for a while.
func (m removing) giveUp(ctx context.Context, why string) error {
	if m.seen.Spec.Plan.Deleting {
		return m.giveUpFor(ctx, why, drainBackoffDeleting)
	}
	return m.giveUpFor(ctx, why, DrainBackoffMin)
}

func (m removing) giveUpFor(ctx context.Context, why string, least time.Duration) error {
	r := m.find()
	r.Error = why
	m.backOffDrain(r.InstanceID, least)
	m.Event(journal.Event{
		Reason: journal.EventDrainFailed, Warning: true, Instance: r.InstanceID, Node: r.Node, Action: m.action,
		Message: fmt.Sprintf("Node %s is not drained and takes pods again: %s", r.Node, why),
	})
	return m.to(ctx, state.RemovalRestoring)
}

// spare leaves an instance alone for a time, at first the least one.
func (e *executor) backOffDrain(instance string, least time.Duration) {
	if e.Record.DrainBackoff == nil {
		e.Record.DrainBackoff = map[string]time.Time{}
	}
	if e.Record.FailedDrains == nil {
		e.Record.FailedDrains = map[string]int{}
	}
	e.Record.FailedDrains[instance]++
	e.Record.DrainSpec = e.seen.Spec.Drain.Identity()
	wait, longest := least, drainBackoffMax
	if e.Record.Target(instance) != nil && !e.Record.Action.DeletesPool() {
		longest = state.DrainBackoffMax
	}
	for i := 1; i < e.Record.FailedDrains[instance] && wait < longest; i++ {
		wait *= 2
	}
	e.Record.DrainBackoff[instance] = e.Now().Add(min(wait, longest))
}

// taint keeps new pods away. An instance that is taken back before its node has joined has none to be drained: the cloud
// takes it as it is.
func (m removing) taint(ctx context.Context, r *state.Removal) error {
	if r.Node == "" {
		node := m.nodeOf(r)
		if node == "" {
			return nil
		}
		r.Node = node
	}
	if err := m.claim(ctx, r.Node); err != nil {
		return err
	}
	if err := m.guard.taint(ctx, r.Node, m.action); err != nil {
		return m.unlessGone(ctx, err)
	}
	return m.to(ctx, state.RemovalTainted)
}

// nodeOf returns the name of the Node of an instance that had none when its removal was asked for.
func (m removing) nodeOf(r *state.Removal) string {
	if r.ProviderID == "" {
		r.ProviderID = m.seen.Instances[r.InstanceID].ProviderID
	}
	if n := m.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID}); n != nil {
		return n.Object.Name
	}
	return ""
}

// cordon begins the drain, once pods that were on their way to the node have come, if none of its pods speaks against it and all
// have another node still.
func (m removing) cordon(ctx context.Context, r *state.Removal) error {
	if !m.urgent {
		if arriving, err := m.arriving(ctx, m.Now().Sub(r.Since)); arriving || err != nil {
			return err
		}
	}
	if !m.urgent && !m.repair {
		why, err := m.guard.blockers(ctx, r.Node)
		if err != nil {
			return m.unlessGone(ctx, err)
		}
		if len(why) > 0 && !m.forced {
			return m.giveUp(ctx, why[0])
		}
		if why := m.pinned(r.Node); why != "" {
			return m.giveUp(ctx, why)
		}
	}
	if err := m.guard.cordon(ctx, r.Node); err != nil {
		return m.unlessGone(ctx, err)
	}
	return m.to(ctx, state.RemovalDraining)
}

// arriving tells whether pods may still be on their way to a node that has been tainted for a while. What comes later than
// is waited for is seen by the last look before the instance is terminated, if it comes before that.
func (m removing) arriving(ctx context.Context, tainted time.Duration) (bool, error) {
	switch {
	case tainted < m.bindGrace:
		return true, nil
	case tainted >= m.maxBindGrace:
		return false, nil
	}
	return m.guard.arriving(ctx)
}

// drain evicts, and looks what is left.
func (m removing) drain(ctx context.Context, r *state.Removal) error {
	limits := m.limits(r)
	progress, err := m.guard.evict(ctx, r.Node, limits)
	if err != nil && progress.Remaining == 0 {
		return m.unlessGone(ctx, err)
	}
	m.budgeted = m.budgeted || len(progress.Refused) > 0
	left := left(progress)
	switch {
	case err == nil && progress.Remaining == 0:
		m.Event(journal.Event{
			Reason: journal.EventDrained, Instance: r.InstanceID, Node: r.Node, Action: m.action,
			Message: fmt.Sprintf("Node %s is empty after %s", r.Node, m.Now().Sub(r.Began).Round(time.Second)),
		})
		return m.to(ctx, state.RemovalDrained)
	case m.overdue(r):
		m.Event(journal.Event{
			Reason: journal.EventDrained, Warning: true, Instance: r.InstanceID, Node: r.Node, Action: m.action,
			Message: fmt.Sprintf("Node %s has no kubelet any more, and %s after %s: its instance is terminated all the same", r.Node, left, m.Now().Sub(r.Began).Round(time.Second)),
		})
		return m.to(ctx, state.RemovalDrained)
	case m.urgent || m.repair || m.forced || limits.Force:
	case len(progress.Blocked) > 0:
		return m.giveUp(ctx, left)
	case m.seen.Spec.Drain.Force: // what is left is deleted in time
	case err == nil && len(progress.Refused) == 0: // all that are left are ending, which a new start would not hasten
	case m.Now().Sub(r.Began) > m.seen.Spec.Drain.Timeout:
		return m.giveUp(ctx, fmt.Sprintf("%s after %s", left, m.seen.Spec.Drain.Timeout))
	}
	if evicted := progress.Remaining > len(progress.Refused)+len(progress.Blocked); r.Error != left || evicted && !r.Evicted {
		r.Error, r.Evicted, m.Dirty = left, r.Evicted || evicted, true
	}
	return err
}

// limits has pods deleted in the last moments before the cloud takes the instance, and by option so that they end by the timeout.
// Pods that block a drain are deleted only if the node must go.
func (m removing) limits(r *state.Removal) drain.Limits {
	now := m.Now()
	if m.urgent {
		left := r.Deadline.Sub(now)
		return drain.Limits{Force: left <= ForceBefore, Grace: max(time.Second, left)}
	}
	if m.repair {
		return m.repairLimits(r)
	}
	if !m.seen.Spec.Drain.Force {
		return drain.Limits{}
	}
	ends := r.Began.Add(m.seen.Spec.Drain.Timeout)
	return drain.Limits{Force: m.forced && now.After(ends), Ends: ends, EndsAll: m.forced}
}

func left(p drain.Progress) string {
	s := fmt.Sprintf("%d pods are left", p.Remaining)
	switch {
	case len(p.Blocked) > 0:
		return s + ", such as " + p.Blocked[0]
	case len(p.Refused) > 0:
		return s + ", such as " + p.Refused[0]
	}
	return s
}

// terminate ends an instance that the cloud lists as the pool's, and whose node is empty still.
func (m removing) terminate(ctx context.Context, r *state.Removal) error {
	i, listed := m.seen.Instances[r.InstanceID]
	switch {
	case !listed:
		return nil // it is waited for: [trackedInstance]
	case i.State == fleet.Leaving && !i.Stopped:
		return m.end(ctx)
	}
	if empty, err := m.empty(ctx, r); !empty || err != nil {
		return err
	}
	if detached, err := m.detached(ctx, r); !detached || err != nil {
		return err
	}
	err := m.order(ctx, r.InstanceID)
	switch {
	case provider.ClassOf(err) == provider.NotOwned, provider.ClassOf(err) == provider.Invalid && !m.urgent:
		return m.giveUpFor(ctx, err.Error(), drainBackoffMax) // nobody shall be evicted again soon for what is refused then
	case err != nil:
		return fmt.Errorf("terminate %s: %w", r.InstanceID, err)
	}
	m.Event(journal.Event{
		Reason: journal.EventTerminated, Instance: r.InstanceID, Node: r.Node, Action: m.action,
		Message: fmt.Sprintf("Terminated %s, node %s", r.InstanceID, r.Node),
	})
	return m.end(ctx)
}

// end completes a removal whose instance ends. Its Node waits among the endings, so that no other work
// waits for an instance that takes long to shut down.
func (m removing) end(ctx context.Context) error {
	r := m.find()
	if m.Record.Ending(r.InstanceID) == nil {
		m.Record.Endings = append(m.Record.Endings, state.Removal{
			InstanceID: r.InstanceID, ProviderID: r.ProviderID, Node: r.Node, State: state.RemovalTerminated, Since: m.Now(),
		})
	}
	r.Error = ""
	return m.to(ctx, state.RemovalCompleted)
}

// empty looks at the node of a drained instance once more. If pods have come, the drain goes on.
func (m removing) empty(ctx context.Context, r *state.Removal) (bool, error) {
	if r.Node == "" {
		return true, nil
	}
	if !m.urgent && !m.repair && !m.forced {
		why, err := m.guard.blockers(ctx, r.Node)
		if err != nil {
			return false, m.unlessGone(ctx, err)
		}
		if len(why) > 0 {
			return false, m.giveUp(ctx, why[0])
		}
	}
	progress, err := m.guard.evict(ctx, r.Node, m.limits(r))
	switch {
	case err != nil && progress.Remaining == 0:
		return false, m.unlessGone(ctx, err)
	case m.overdue(r):
		return true, nil
	case err != nil:
		return false, err
	case progress.Remaining > 0:
		return false, m.to(ctx, state.RemovalDraining)
	}
	return true, nil
}

// detached tells whether no volume is attached any more to the node of a drained instance, or none is waited for any longer. A volume
// that an instance ends with is detached by force, six minutes later, and its pod waits for that long.
func (m removing) detached(ctx context.Context, r *state.Removal) (bool, error) {
	until := r.Since.Add(DetachWithin)
	if m.urgent && r.Deadline.Before(until) {
		until = r.Deadline
	}
	if r.Node == "" || !m.Now().Before(until) {
		return true, nil
	}
	if m.attached == nil {
		var err error
		if m.attached, err = m.guard.attached(ctx); err != nil {
			return false, err
		}
	}
	volumes := m.attached[r.Node]
	if len(volumes) == 0 {
		return true, nil
	}
	slices.Sort(volumes)
	if why := fmt.Sprintf("%d volumes are attached, such as %s", len(volumes), volumes[0]); r.Error != why {
		r.Error, m.Dirty = why, true
	}
	return false, nil
}

func (m removing) restore(ctx context.Context, r *state.Removal) error {
	n := m.seen.NodeNamed(r.Node)
	if r.Node != "" && (n == nil || provider.IDOf(n.Object.Spec.ProviderID) == r.InstanceID) {
		if err := m.guard.restore(ctx, r.Node); err != nil {
			return err
		}
		if err := m.claim(ctx, r.Node); err != nil {
			return err
		}
	}
	return m.to(ctx, state.RemovalFailed)
}

// unlessGone returns an error of a call on the node, but ends the removal if the Node is not there any more. Its
// instance is then without a node, which the plan looks after.
func (m removing) unlessGone(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) || errors.Is(err, journal.ErrLeaseLost) || errors.Is(err, journal.ErrStop) {
		return err
	}
	return m.giveUp(ctx, "its Node has been deleted")
}
