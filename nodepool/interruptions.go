package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// endMessages follows the advice in messages, and tells the queue which messages are done with: what they say is in the journal by now.
// Those that must wait stay for the next cycle.
func (t *cycle) endMessages(ctx context.Context) error {
	for _, a := range t.decision.Advice {
		if err := t.carryOn(ctx, t.advised(ctx, a)); err != nil {
			t.deferred = t.seen.messages
			return err
		}
	}
	for _, m := range t.seen.messages {
		switch {
		case m.Kind == provider.MessageInterruption && slices.Contains(t.decision.Deferred, m.InstanceID):
			t.deferred = append(t.deferred, m)
		case t.notices != nil:
			call, cancel := context.WithTimeout(ctx, callTimeout)
			err := t.notices.Done(call, m)
			cancel()
			if err != nil {
				t.errs = append(t.errs, fmt.Errorf("end the message about %s: %w", m.InstanceID, err))
			}
		}
	}
	return nil
}

// advised cordons a node that the cloud advises to leave, if that is asked for.
func (t *cycle) advised(ctx context.Context, a plan.Advice) error {
	t.event(Event{Reason: EventRebalance, Instance: a.InstanceID, Node: a.Node, Message: fmt.Sprintf("The cloud advises to leave %s", a.InstanceID)})
	if !t.seen.spec.Drain.CordonOnRebalance {
		return nil
	}
	return t.act.cordon(ctx, a.Node)
}

// advanceInterruptions drains the instances that the cloud takes back, the soonest first.
func (t *cycle) advanceInterruptions(ctx context.Context) error {
	ids := make([]string, 0, len(t.record.Interruptions))
	for _, r := range t.record.Interruptions {
		ids = append(ids, r.InstanceID)
	}
	var errs []error
	for _, id := range ids {
		m := removing{cycle: t, action: "interruption-" + id, urgent: true, find: func() *state.Removal { return interruption(t.record, id) }}
		if err := m.advance(ctx); errors.Is(err, errStop) || errors.Is(err, errLeaseLost) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	before := len(t.record.Interruptions)
	t.record.Interruptions = slices.DeleteFunc(t.record.Interruptions, done)
	if len(t.record.Interruptions) != before {
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
