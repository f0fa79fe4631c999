package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// Actor is the fourth phase of a cycle. Its fields are set before its first use.
type Actor struct {
	Journal  *journal.Journal
	Provider provider.Provider
	Drainer  Drainer
	Labeler  Labeler
	Notices  provider.Notices            // nil: nobody reports interruptions
	LetGo    func(context.Context) error // nil: nothing waits for the end of the pool
	Random   *rand.Rand                  // of the jitter of retries
	// BindGrace is how long pods that were on their way to a node when it was tainted are waited for at least, and
	// MaxBindGrace how long at most, while a scheduler may have found nodes for pods that are not bound yet.
	BindGrace, MaxBindGrace time.Duration
	// HasMessages reports whether messages have come that no cycle has looked at.
	HasMessages func() bool

	turn int // number of the cycle
}

// Cycle is what one cycle acts on.
type Cycle struct {
	Seen     *observe.Observation
	Forecast forecast.Forecast
	Snapshot plan.Snapshot
	Decision plan.Decision
}

// Result is how the acts of a cycle ended.
type Result struct {
	Err      error              // what ended them early
	Errs     []error            // of acts that did not keep others from being done
	Deferred []provider.Message // that must wait for the next cycle
	Ended    []string           // instances that were terminated
}

// Act carries out a decision.
func (a *Actor) Act(ctx context.Context, in Cycle) Result {
	c := a.newCycle(in)
	err := a.do(ctx, c)
	a.turn++
	return Result{Err: err, Errs: c.errs, Deferred: c.deferred, Ended: c.ended}
}

func (a *Actor) newCycle(in Cycle) *cycle {
	tasks := &lockstep{save: a.Journal.Save}
	g := guard{tasks: tasks, left: a.Journal.MayAct}
	c := &cycle{
		journal: a.Journal, record: &a.Journal.Record, tasks: tasks,
		cloud: guardedCloud{g, a.Provider}, nodes: guardedNodes{g, a.Drainer, a.Labeler, newVolumes()},
		seen: in.Seen, forecast: in.Forecast, snapshot: in.Snapshot, decision: in.Decision,
		hasMessages: a.HasMessages, began: a.Journal.Now(),
	}
	c.labels = &labels{c: c, done: map[string]bool{}}
	return c
}

// do writes the decision down, carries it out, and ends with what it left to be written.
func (a *Actor) do(ctx context.Context, c *cycle) error {
	dry := c.seen.Spec.DryRun
	c.remember()
	if !dry {
		if err := a.apply(ctx, c); err != nil {
			return err
		}
	}
	c.rememberDecision()
	if c.journal.Dirty {
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	return c.carryOn(ctx, a.letGo(ctx, c))
}

// apply does what is urgent first. An error of one part does not keep the others from being done, unless it ends the
// cycle.
func (a *Actor) apply(ctx context.Context, c *cycle) error {
	if err := c.commit(ctx); err != nil {
		c.deferred = c.seen.Messages
		return err
	}
	shared := &drains{c: c, grace: a.BindGrace, maxGrace: a.MaxBindGrace}
	up := scaleUp{c, &launcher{c: c, random: a.Random}}
	action := openAction{c, up, scaleDown{c, shared}}
	removals := separate{c, shared, a.turn}
	for _, step := range []func(context.Context) error{
		messages{c, a.Notices}.end,
		removals.interruptions,
		removals.repairs,
		endings{c}.advance,
		action.advance,
		action.begin,
		upkeep{c}.endPending,
		upkeep{c}.tidyNodes,
	} {
		if err := c.carryOn(ctx, step(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// letGo lets the object of a pool go that is being deleted and has nothing left. The journal is
// emptied before that, which also proves that this process still holds the lease. If the journal
// outlives the object, a new pool of the name begins with an empty one.
func (a *Actor) letGo(ctx context.Context, c *cycle) error {
	if !c.decision.LetGo || a.LetGo == nil || c.record.Action != nil && !c.seen.Spec.DryRun {
		return nil
	}
	*c.record = state.Record{Version: c.record.Version}
	if err := c.save(ctx); err != nil {
		return err
	}
	if err := c.cloud.guard.act(ctx, a.LetGo); err != nil {
		return fmt.Errorf("let the WorkerPool go: %w", err)
	}
	c.event(journal.Event{Reason: journal.EventDeleted, Message: "Nothing of the pool is left: the WorkerPool is let go"})
	return nil
}
