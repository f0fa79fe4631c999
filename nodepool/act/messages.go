package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// messages ends the messages of the cloud that a decision was made about.
type messages struct {
	c       *cycle
	notices provider.Notices // nil: nobody reports interruptions
}

// end follows the advice in messages, and tells the queue which messages are done with: what they
// say is in the journal by now. Those that must wait stay for the next cycle.
func (q messages) end(ctx context.Context) error {
	for _, a := range q.c.decision.Advice {
		if err := q.c.carryOn(ctx, q.advised(ctx, a)); err != nil {
			q.c.deferred = q.c.seen.Messages
			return err
		}
	}
	var over []provider.Message
	for _, m := range q.c.seen.Messages {
		switch {
		case m.Kind == provider.MessageInterruption && slices.Contains(q.c.decision.Deferred, m.InstanceID):
			q.c.deferred = append(q.c.deferred, m)
		case q.notices != nil:
			over = append(over, m)
		}
	}
	return q.c.each(ctx, len(over), func(i int) error { return q.endOne(ctx, over[i]) })
}

func (q messages) endOne(ctx context.Context, m provider.Message) error {
	err := q.c.cloud.endMessage(ctx, q.notices, m)
	if err != nil && !errors.Is(err, journal.ErrStop) {
		return fmt.Errorf("end the message about %s: %w", m.InstanceID, err)
	}
	return err
}

// advised cordons a node that the cloud advises to leave, if that is asked for.
func (q messages) advised(ctx context.Context, a plan.Advice) error {
	q.c.event(journal.Event{Reason: journal.EventRebalance, Instance: a.InstanceID, Node: a.Node,
		Message: fmt.Sprintf("The cloud advises to leave %s", a.InstanceID)})
	if !q.c.seen.Spec.Drain.CordonOnRebalance {
		return nil
	}
	return q.c.nodes.cordon(ctx, a.Node)
}
