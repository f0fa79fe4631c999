package act

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// removal carries out one removal, as far as possible in this cycle. It is looked up in the record
// again after each save.
type removal struct {
	c       *cycle
	drains  *drains
	find    func() *state.Removal
	action  string // that marks the node
	purpose purpose
}

// advance continues the removal as far as it gets without waiting.
func (m removal) advance(ctx context.Context) error {
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

// step carries out the current state of the removal. Every step can be repeated, because it comes
// before the write of the next state.
func (m removal) step(ctx context.Context) error {
	r := m.find()
	if done, err := m.stopIfObsolete(ctx, r); done || err != nil {
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

// taint keeps new pods off the node. An instance that is reclaimed before its node has joined has
// none to drain, and is left to the cloud.
func (m removal) taint(ctx context.Context, r *state.Removal) error {
	if r.Node == "" {
		node := nodeToRemove(m.c, r)
		if node == "" {
			return nil
		}
		r.Node = node
	}
	if err := m.c.labels.ensureLabelled(ctx, r.Node); err != nil {
		return err
	}
	if err := m.c.nodes.taint(ctx, r.Node, m.action); err != nil {
		return m.unlessGone(ctx, err)
	}
	return m.setState(ctx, state.RemovalTainted)
}

// nodeToRemove returns the name of the Node of an instance that had none when its removal was decided.
func nodeToRemove(c *cycle, r *state.Removal) string {
	if r.ProviderID == "" {
		r.ProviderID = c.seen.Instances[r.InstanceID].ProviderID
	}
	if n := c.seen.Node(fleet.Instance{ID: r.InstanceID, ProviderID: r.ProviderID}); n != nil {
		return n.Object.Name
	}
	return ""
}

// cordon starts the drain once no pod is still binding to the node, nothing blocks eviction, and
// its pods fit elsewhere.
func (m removal) cordon(ctx context.Context, r *state.Removal) error {
	if !m.purpose.urgent {
		if arriving, err := m.drains.arriving(ctx, m.c.now().Sub(r.Since)); arriving || err != nil {
			return err
		}
	}
	if !m.purpose.urgent && !m.purpose.repair {
		why, err := m.c.nodes.blockers(ctx, r.Node)
		if err != nil {
			return m.unlessGone(ctx, err)
		}
		if len(why) > 0 && !m.purpose.forced {
			return m.giveUp(ctx, why[0])
		}
		if why := m.drains.whyUnmovable(r.Node); why != "" {
			return m.giveUp(ctx, why)
		}
	}
	if err := m.c.nodes.cordon(ctx, r.Node); err != nil {
		return m.unlessGone(ctx, err)
	}
	return m.setState(ctx, state.RemovalDraining)
}

// drain evicts pods, and checks which are left.
func (m removal) drain(ctx context.Context, r *state.Removal) error {
	limits := m.limits(r)
	progress, err := m.c.nodes.evict(ctx, r.Node, limits)
	if err != nil && progress.Remaining == 0 {
		return m.unlessGone(ctx, err)
	}
	m.drains.budgeted = m.drains.budgeted || len(progress.Refused) > 0
	left, took := left(progress), m.c.now().Sub(r.Began).Round(time.Second)
	switch {
	case err == nil && progress.Remaining == 0:
		return m.drained(ctx, false, fmt.Sprintf("Node %s is empty after %s", r.Node, took))
	case m.overdue(r):
		return m.drained(ctx, true, fmt.Sprintf(
			"Node %s has lost its kubelet, and %s after %s: its instance is terminated anyway", r.Node, left, took))
	}
	if why := m.stuck(r, progress, limits, err); why != "" {
		return m.giveUp(ctx, why)
	}
	evicted := progress.Remaining > len(progress.Refused)+len(progress.Blocked)
	if r.Error != left || evicted && !r.Evicted {
		r.Error, r.Evicted = left, r.Evicted || evicted
		m.c.changed()
	}
	return err
}

// drained completes the drain.
func (m removal) drained(ctx context.Context, warning bool, message string) error {
	r := m.find()
	m.c.event(journal.Event{Reason: journal.EventDrained, Warning: warning, Instance: r.InstanceID, Node: r.Node,
		Action: m.action, Message: message})
	return m.setState(ctx, state.RemovalDrained)
}

// stuck returns why a drain is given up, "" if it continues.
func (m removal) stuck(r *state.Removal, p drain.Progress, l drain.Limits, err error) string {
	policy := m.c.seen.Spec.Drain
	switch {
	case m.purpose.insists() || l.Force:
	case len(p.Blocked) > 0:
		return left(p)
	case policy.Force: // the remaining pods are deleted in time
	case err == nil && len(p.Refused) == 0: // all that are left are terminating, which a retry would not speed up
	case m.c.now().Sub(r.Began) > policy.Timeout:
		return fmt.Sprintf("%s after %s", left(p), policy.Timeout)
	}
	return ""
}

// terminate terminates an instance that the cloud lists as the pool's, and whose node is still
// empty.
func (m removal) terminate(ctx context.Context, r *state.Removal) error {
	i, listed := m.c.seen.Instances[r.InstanceID]
	switch {
	case !listed:
		return nil // wait until the cloud, queried by its id, reports it as gone
	case i.State == fleet.Leaving && !i.Stopped:
		return m.complete(ctx)
	}
	if empty, err := m.empty(ctx, r); !empty || err != nil {
		return err
	}
	if detached, err := m.drains.detached(ctx, r, m.purpose.urgent); !detached || err != nil {
		return err
	}
	err := m.c.orderTermination(ctx, r.InstanceID)
	switch {
	case provider.ClassOf(err) == provider.NotOwned, provider.ClassOf(err) == provider.Invalid && !m.purpose.urgent:
		// pods must not be evicted again soon for a termination that is refused
		return m.giveUpFor(ctx, err.Error(), drainBackoffMax)
	case err != nil:
		return fmt.Errorf("terminate %s: %w", r.InstanceID, err)
	}
	m.c.event(journal.Event{
		Reason: journal.EventTerminated, Instance: r.InstanceID, Node: r.Node, Action: m.action,
		Message: fmt.Sprintf("Terminated %s, node %s", r.InstanceID, r.Node),
	})
	return m.complete(ctx)
}

// complete completes a removal whose instance is shutting down. Its Node is handled by the endings, so
// that no other work waits for an instance that shuts down slowly.
func (m removal) complete(ctx context.Context) error {
	r := m.find()
	if m.c.record.Ending(r.InstanceID) == nil {
		m.c.record.Endings = append(m.c.record.Endings, state.Removal{
			InstanceID: r.InstanceID, ProviderID: r.ProviderID, Node: r.Node, State: state.RemovalTerminated, Since: m.c.now(),
		})
	}
	r.Error = ""
	return m.setState(ctx, state.RemovalCompleted)
}

func (m removal) restore(ctx context.Context, r *state.Removal) error {
	n := m.c.seen.NodeNamed(r.Node)
	if r.Node != "" && (n == nil || provider.IDOf(n.Object.Spec.ProviderID) == r.InstanceID) {
		if err := m.c.nodes.restore(ctx, r.Node); err != nil {
			return err
		}
		if err := m.c.labels.ensureLabelled(ctx, r.Node); err != nil {
			return err
		}
	}
	return m.setState(ctx, state.RemovalFailed)
}

// giveUp uncordons the node, and does not drain it again for some time.
func (m removal) giveUp(ctx context.Context, why string) error {
	if m.c.seen.Spec.Plan.Deleting {
		return m.giveUpFor(ctx, why, drainBackoffDeleting)
	}
	return m.giveUpFor(ctx, why, DrainBackoffMin)
}

func (m removal) giveUpFor(ctx context.Context, why string, shortest time.Duration) error {
	r := m.find()
	r.Error = why
	backOffDrain(m.c, r.InstanceID, shortest)
	m.c.event(journal.Event{
		Reason: journal.EventDrainFailed, Warning: true, Instance: r.InstanceID, Node: r.Node, Action: m.action,
		Message: fmt.Sprintf("The drain of node %s failed and it takes pods again: %s", r.Node, why),
	})
	return m.setState(ctx, state.RemovalRestoring)
}

// hold stops a removal for now. The removal of a reclaimed instance waits, because the instance
// goes in any case. Any other is given up.
func (m removal) hold(ctx context.Context, why string) error {
	if !m.purpose.urgent {
		return m.giveUp(ctx, why)
	}
	if r := m.find(); r.Error != why {
		r.Error = why
		m.c.changed()
	}
	return nil
}

// unlessGone returns the error of a call on the node, but ends the removal if the Node no longer
// exists. The plan then handles its instance as one without a node.
func (m removal) unlessGone(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) || endsCycle(err) {
		return err
	}
	return m.giveUp(ctx, "its Node has been deleted")
}

// setState records the next state of the removal.
func (m removal) setState(ctx context.Context, s state.RemovalState) error {
	r := m.find()
	r.State, r.Since = s, m.c.now()
	if s == state.RemovalDraining && r.Began.IsZero() {
		r.Began = r.Since
	}
	return m.c.save(ctx)
}

// limits returns how the pods of the node are evicted or deleted now.
func (m removal) limits(r *state.Removal) drain.Limits {
	return m.purpose.limits(r, m.c.seen.Spec.Drain, unreachable(m.c, r), m.c.now())
}

// overdue reports whether the remaining pods on the node are no longer waited for.
func (m removal) overdue(r *state.Removal) bool {
	return m.purpose.overdue(r, m.c.seen.Spec.Drain.Timeout, unreachable(m.c, r), m.c.now())
}

// empty checks the node of a drained instance once more. If pods have arrived, the drain continues.
func (m removal) empty(ctx context.Context, r *state.Removal) (bool, error) {
	if r.Node == "" {
		return true, nil
	}
	if !m.purpose.insists() {
		why, err := m.c.nodes.blockers(ctx, r.Node)
		if err != nil {
			return false, m.unlessGone(ctx, err)
		}
		if len(why) > 0 {
			return false, m.giveUp(ctx, why[0])
		}
	}
	progress, err := m.c.nodes.evict(ctx, r.Node, m.limits(r))
	switch {
	case err != nil && progress.Remaining == 0:
		return false, m.unlessGone(ctx, err)
	case m.overdue(r):
		return true, nil
	case err != nil:
		return false, err
	case progress.Remaining > 0:
		return false, m.setState(ctx, state.RemovalDraining)
	}
	return true, nil
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
