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

// messages handles the messages of the cloud that a decision was made about.
type messages struct {
	c       *cycle
	notices provider.Notices // nil: interruptions are not reported
}

// end reports the advice in messages, and deletes from the queue those that have been handled:
// their content is in the journal. Deferred ones are kept for the next cycle.
func (q messages) end(ctx context.Context) error {
	for _, a := range q.c.decision.Advice {
		q.advised(a)
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

// advised reports that the cloud recommends replacing an instance. Nothing else follows: most of these instances stay.
func (q messages) advised(a plan.Advice) {
	q.c.event(journal.Event{Reason: journal.EventRebalance, Instance: a.InstanceID, Node: a.Node,
		Message: fmt.Sprintf("EC2 recommends replacing %s (rebalance recommendation)", a.InstanceID)})
}
