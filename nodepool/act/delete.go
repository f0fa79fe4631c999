package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// endUp ends the scale-up of a pool that is being deleted: what is not launched yet never is, and what has not joined is
// pending termination. A launch whose answer was lost is found by its tags.
func (e *executor) endUp(ctx context.Context) error {
	a := e.Record.Action
	launched := 0
	for _, s := range a.Slots {
		if s.State != state.SlotLaunched {
			continue
		}
		launched++
		if e.Record.PendingTermination(s.InstanceID) == nil {
			e.Record.PendingTerminations = append(e.Record.PendingTerminations, state.PendingTermination{InstanceID: s.InstanceID, Reason: plan.TerminateDeleted, Since: e.seen.At, Due: e.seen.At})
		}
	}
	e.Event(journal.Event{Reason: journal.EventScaleUpAborted, Action: a.ID, Message: fmt.Sprintf("The scale-up is given up, as the WorkerPool is being deleted; %d instances have not joined", launched)})
	e.Record.Action = nil
	return e.save(ctx)
}

// taintAll taints every node of a deletion before the first is drained, so that what is evicted from one does not come to
// the next.
func (e *executor) taintAll(ctx context.Context) error {
	var planned []int
	for i, r := range e.Record.Action.Targets {
		if r.State == state.RemovalPlanned && !e.waits(r) {
			planned = append(planned, i)
		}
	}
	for part := range slices.Chunk(planned, 5*maxCalls) {
		if e.mustEnd() {
			return nil
		}
		err := e.each(ctx, len(part), func(i int) error { return e.removal(part[i]).step(ctx) })
		if err := e.carryOn(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// age is for how long a scale-down has been open, or since the last of its targets was done: it may have hundreds.
func (e *executor) age(a *state.Action) time.Duration {
	since := a.Started
	for _, r := range a.Targets {
		if r.Done() && r.Since.After(since) {
			since = r.Since
		}
	}
	return e.Now().Sub(since)
}

// stillWorks tells whether a worker is the target of a deletion whose turn has not come, or that is being drained.
func (e *executor) stillWorks(w plan.Worker) bool {
	if e.Record.Action == nil || !e.Record.Action.DeletesPool() || w.Failed {
		return false
	}
	r := e.Record.Target(w.InstanceID)
	return r != nil && (r.State == state.RemovalPlanned || r.State == state.RemovalTainted || r.State == state.RemovalDraining)
}
