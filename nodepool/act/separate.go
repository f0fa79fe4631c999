package act

import (
	"context"
	"errors"
	"slices"

	"github.com/foresail/foresail/nodepool/state"
)

// standalone continues the removals that belong to no action.
type standalone struct {
	c      *cycle
	drains *drains
	turn   int // number of the cycle
}

// interruptions drains the instances that the cloud reclaims, soonest first.
func (b standalone) interruptions(ctx context.Context) error {
	return b.advance(ctx, &b.c.record.Interruptions, func(id string) removal {
		return removal{
			c: b.c, drains: b.drains, action: "interruption-" + id, purpose: purpose{urgent: true},
			find: func() *state.Removal { return b.c.record.Interruption(id) },
		}
	})
}

// repairs drains the workers whose Nodes are unhealthy.
func (b standalone) repairs(ctx context.Context) error {
	return b.advance(ctx, &b.c.record.Repairs, func(id string) removal {
		return removal{
			c: b.c, drains: b.drains, action: "repair-" + id, purpose: purpose{repair: true},
			find: func() *state.Removal { return b.c.record.Repair(id) },
		}
	})
}

// advance continues the removals that belong to no action, several at the same time, and drops
// those that are done. It takes little more than [ActFor], so that launches and new messages do not
// wait for hundreds of nodes. Removals that have not begun to evict come first, and the others
// follow in rotation.
func (b standalone) advance(ctx context.Context, list *[]state.Removal, of func(id string) removal) error {
	began := b.c.now()
	var errs []error
	for ids := range slices.Chunk(rotated(*list, b.turn), maxCalls) {
		err := b.c.each(ctx, len(ids), func(i int) error { return of(ids[i]).advance(ctx) })
		if endsCycle(err) {
			return err
		}
		if errs = append(errs, err); b.c.now().Sub(began) > ActFor {
			break
		}
	}
	before := len(*list)
	*list = slices.DeleteFunc(*list, state.Removal.Done)
	if len(*list) != before {
		if err := b.c.save(ctx); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// rotated returns the instances of removals in the order in which a cycle continues them. turn is
// the number of the cycle.
func rotated(list []state.Removal, turn int) []string {
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
