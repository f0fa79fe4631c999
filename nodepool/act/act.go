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

// Actor carries out decisions: the fourth phase of a cycle. Its fields must be set before the first
// use.
type Actor struct {
	Journal          *journal.Journal
	Provider         provider.Provider
	Drainer          Drainer
	Labeler          Labeler
	Notices          provider.Notices            // nil: interruptions are not reported
	ReleaseFinalizer func(context.Context) error // removes the finalizer of the WorkerPool; nil: there is none
	Random           *rand.Rand                  // for the jitter of retries
	// BindGrace is the time for which a drain waits at least for pods that were being bound to the
	// node when it was tainted. MaxBindGrace is the longest time, used while a scheduler may have
	// chosen nodes for pods that are not bound yet.
	BindGrace, MaxBindGrace time.Duration
	// HasMessages reports whether messages have arrived that no cycle has processed.
	HasMessages func() bool

	turn int // number of the cycle
}

// Cycle is the input of [Actor.Act].
type Cycle struct {
	Seen     *observe.Observation
	Forecast forecast.Forecast
	Snapshot plan.Snapshot
	Decision plan.Decision
}

// Result is the outcome of the acts of a cycle.
type Result struct {
	Err      error              // the error that ended them early
	Errs     []error            // of acts that did not prevent others
	Deferred []provider.Message // to be processed by the next cycle
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

// do records the decision, carries it out, and saves what it left to be written.
func (a *Actor) do(ctx context.Context, c *cycle) error {
	dry := c.seen.Spec.DryRun
	c.recordAttempts()
	if !dry {
		if err := a.apply(ctx, c); err != nil {
			return err
		}
	}
	c.recordDecision()
	if c.journal.Dirty {
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	return c.collectError(ctx, a.releaseFinalizer(ctx, c))
}

// apply carries out the parts of a decision, the urgent ones first. An error of one part does not
// prevent the others, unless it ends the cycle.
func (a *Actor) apply(ctx context.Context, c *cycle) error {
	if err := c.commit(ctx); err != nil {
		c.deferred = c.seen.Messages
		return err
	}
	shared := &drains{c: c, grace: a.BindGrace, maxGrace: a.MaxBindGrace}
	up := scaleUp{c, &launcher{c: c, random: a.Random}}
	action := openAction{c, up, scaleDown{c, shared}}
	removals := standalone{c, shared, a.turn}
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
		if err := c.collectError(ctx, step(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// releaseFinalizer releases the object of a pool that is being deleted once nothing is left of it. It empties
// the journal before, which also proves that this process still holds the lease. If the journal
// outlives the object, a new pool of the same name begins with an empty one.
func (a *Actor) releaseFinalizer(ctx context.Context, c *cycle) error {
	if !c.decision.ReleaseFinalizer || a.ReleaseFinalizer == nil || c.record.Action != nil && !c.seen.Spec.DryRun {
		return nil
	}
	*c.record = state.Record{Version: c.record.Version}
	if err := c.save(ctx); err != nil {
		return err
	}
	if err := c.cloud.guard.act(ctx, a.ReleaseFinalizer); err != nil {
		return fmt.Errorf("release the WorkerPool: %w", err)
	}
	c.event(journal.Event{Reason: journal.EventDeleted,
		Message: "Nothing of the pool is left: the WorkerPool is released"})
	return nil
}
