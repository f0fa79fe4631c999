package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// endMessages follows the advice in messages, and tells the queue which messages are done with: what they say is in the journal by now.
// Those that must wait stay for the next cycle.
func (e *executor) endMessages(ctx context.Context) error {
	for _, a := range e.decision.Advice {
		if err := e.carryOn(ctx, e.advised(ctx, a)); err != nil {
			e.deferred = e.seen.Messages
			return err
		}
	}
	var over []provider.Message
	for _, m := range e.seen.Messages {
		switch {
		case m.Kind == provider.MessageInterruption && slices.Contains(e.decision.Deferred, m.InstanceID):
			e.deferred = append(e.deferred, m)
		case e.notices != nil:
			over = append(over, m)
		}
	}
	return e.each(ctx, len(over), func(i int) error { return e.endMessage(ctx, over[i]) })
}

func (e *executor) endMessage(ctx context.Context, m provider.Message) error {
	err := e.guard.endMessage(ctx, e.notices, m)
	if err != nil && !errors.Is(err, journal.ErrStop) {
		return fmt.Errorf("end the message about %s: %w", m.InstanceID, err)
	}
	return err
}

// advised cordons a node that the cloud advises to leave, if that is asked for.
func (e *executor) advised(ctx context.Context, a plan.Advice) error {
	e.Event(journal.Event{Reason: journal.EventRebalance, Instance: a.InstanceID, Node: a.Node, Message: fmt.Sprintf("The cloud advises to leave %s", a.InstanceID)})
	if !e.seen.Spec.Drain.CordonOnRebalance {
		return nil
	}
	return e.guard.cordon(ctx, a.Node)
}

// advanceInterruptions drains the instances that the cloud takes back, the soonest first.
func (e *executor) advanceInterruptions(ctx context.Context) error {
	return e.advanceBeside(ctx, &e.Record.Interruptions, func(id string) removing {
		return removing{executor: e, action: "interruption-" + id, urgent: true, find: func() *state.Removal { return e.Record.Interruption(id) }}
	})
}

// advanceBeside continues the removals that belong to no action, several at the same time, and forgets those that are done. It
// does so for actFor and a little, so that launches and new messages do not wait for hundreds of nodes. Those whose pods have
// not been asked to leave come first, and then the others in turn.
func (e *executor) advanceBeside(ctx context.Context, list *[]state.Removal, of func(id string) removing) error {
	began := e.Now()
	var errs []error
	for ids := range slices.Chunk(inTurn(*list, e.turn), maxCalls) {
		err := e.each(ctx, len(ids), func(i int) error { return of(ids[i]).advance(ctx) })
		if errors.Is(err, journal.ErrStop) || errors.Is(err, journal.ErrLeaseLost) {
			return err
		}
		if errs = append(errs, err); e.Now().Sub(began) > ActFor {
			break
		}
	}
	before := len(*list)
	*list = slices.DeleteFunc(*list, state.Removal.Done)
	if len(*list) != before {
		if err := e.save(ctx); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// inTurn returns the instances of removals in the order in which a cycle continues them. The turn is the number of the cycle.
func inTurn(list []state.Removal, turn int) []string {
	var first, others []string
	for _, r := range list {
		if r.State == state.RemovalPlanned || r.State == state.RemovalTainted {
			first = append(first, r.InstanceID)
		} else {
			others = append(others, r.InstanceID)
		}
	}
	if len(others) > maxCalls {
		from := turn * maxCalls % len(others)
		others = slices.Concat(others[from:], others[:from])
	}
	return append(first, others...)
}
