package act

import (
	"context"
	"errors"
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

// Actor does what is decided. Its zero value is of no use: the fields are given by the pool.
type Actor struct {
	Journal  *journal.Journal
	Provider provider.Provider
	Drainer  Drainer
	Labeler  Labeler
	Notices  provider.Notices            // nil: nobody reports interruptions
	LetGo    func(context.Context) error // nil: nothing waits for the end of the pool
	Random   *rand.Rand                  // of the jitter of retries
	// BindGrace and MaxBindGrace are those of the options of a pool.
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

// Result is what a cycle has come to.
type Result struct {
	Err      error              // what ended it early
	Errs     []error            // of parts that did not keep others from being done
	Deferred []provider.Message // that must wait for the next cycle
	Ended    []string           // instances that it has terminated
}

// Act carries out a decision.
func (a *Actor) Act(ctx context.Context, c Cycle) Result {
	e := &executor{
		Journal: a.Journal, seen: c.Seen, forecast: c.Forecast, snapshot: c.Snapshot, decision: c.Decision, notices: a.Notices,
		random: a.Random, bindGrace: a.BindGrace, maxBindGrace: a.MaxBindGrace, hasMessages: a.HasMessages,
		began: a.Journal.Now(), labelled: map[string]bool{}, turn: a.turn,
	}
	a.turn++
	e.tasks = &lockstep{save: a.Journal.Save}
	e.guard = leaseGuard{
		tasks: e.tasks, volumes: newVolumes(),
		provider: a.Provider, drainer: a.Drainer, labeler: a.Labeler, letGo: a.LetGo,
		left: a.Journal.MayAct,
	}
	err := e.lead(ctx)
	return Result{Err: err, Errs: e.errs, Deferred: e.deferred, Ended: e.ended}
}

// executor carries out one decision. It reads the observation, writes the journal, and changes the cloud and the
// cluster through the lease's guard alone.
type executor struct {
	*journal.Journal
	tasks    *lockstep
	guard    leaseGuard
	seen     *observe.Observation
	forecast forecast.Forecast

	snapshot plan.Snapshot
	decision plan.Decision

	notices      provider.Notices
	random       *rand.Rand
	bindGrace    time.Duration
	maxBindGrace time.Duration
	hasMessages  func() bool

	began    time.Time           // this phase
	turn     int                 // number of the cycle
	calling  []string            // tokens of the launches that are being called
	attached map[string][]string // volumes by node; nil = it has not been asked for
	budgeted bool                // a budget holds pods of a node that is drained
	labelled map[string]bool     // nodes that this cycle has labelled, which the cluster does not show yet
	ended    []string            // instances that it has terminated
	deferred []provider.Message  // that must wait for the next cycle
	errs     []error             // that do not end the cycle
}

// save writes the journal, once for all tasks that save it at the same time.
func (e *executor) save(ctx context.Context) error { return e.tasks.write(ctx) }

// each runs a task for each of n things. It returns the error that ends the cycle, if there is one, and the others
// joined.
func (e *executor) each(ctx context.Context, n int, do func(i int) error) error {
	var errs []error
	for _, err := range e.tasks.together(n, do) {
		if errors.Is(err, journal.ErrStop) || errors.Is(err, journal.ErrLeaseLost) || err != nil && ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lead writes the decision down, does it, and ends with what it left to be written.
func (e *executor) lead(ctx context.Context) error {
	e.keepAttempts()
	if !e.seen.Spec.DryRun {
		if err := e.apply(ctx); err != nil {
			return err
		}
	}
	idle, spare := e.decision.IdleSince, e.decision.SpareSince
	if !e.Record.IdleSince.Equal(idle) || !e.Record.SpareSince.Equal(spare) {
		e.Record.IdleSince, e.Record.SpareSince, e.Dirty = idle, spare, true
	}
	if !e.Record.Demand.Equal(&e.decision.Demand) {
		e.Record.Demand, e.Dirty = e.decision.Demand, true
	}
	if d := e.decision; d.Step == plan.Hold && e.Record.Replacing != d.Replacing && !e.seen.Spec.DryRun {
		e.Record.Replacing, e.Dirty = d.Replacing, true
	}
	e.NoteDecision(e.seen.At)
	if e.Dirty {
		if err := e.save(ctx); err != nil {
			return err
		}
	}
	return e.carryOn(ctx, e.letGo(ctx))
}

// apply does what is in a hurry first. An error of one part does not keep the others from being done, unless the journal is not
// known any more.
func (e *executor) apply(ctx context.Context) error {
	if err := e.commit(ctx); err != nil {
		e.deferred = e.seen.Messages
		return err
	}
	for _, step := range []func(context.Context) error{
		e.endMessages,
		e.advanceInterruptions,
		e.advanceRepairs,
		e.advanceEndings,
		e.advanceAction,
		e.begin,
		e.endPending,
		e.tidyNodes,
	} {
		if err := e.carryOn(ctx, step(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// ActFor is how long a cycle goes on with launching nodes and with beginning to empty them.
const ActFor = 5 * time.Second

// mustEnd tells whether such acts are left to the next cycle, which looks at messages first. How long it took to see does not
// count: that takes long where there is much to do.
func (e *executor) mustEnd() bool { return e.Now().Sub(e.began) > ActFor || e.hasMessages() }

// carryOn keeps an error that concerns one part alone, and returns one that ends the cycle.
func (e *executor) carryOn(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrStop), errors.Is(err, journal.ErrLeaseLost), ctx.Err() != nil:
		return err
	}
	e.errs = append(e.errs, err)
	return nil
}

// letGo lets the object of a pool go that is being deleted and has nothing left. The journal is emptied before that, which also
// proves that the lease is held still; where it outlives the object, a new pool of the name begins anew.
func (e *executor) letGo(ctx context.Context) error {
	if !e.decision.LetGo || e.guard.letGo == nil || e.Record.Action != nil && !e.seen.Spec.DryRun {
		return nil
	}
	e.Record = state.Record{Version: e.Record.Version}
	if err := e.save(ctx); err != nil {
		return err
	}
	if err := e.guard.finish(ctx); err != nil {
		return fmt.Errorf("let the WorkerPool go: %w", err)
	}
	e.Event(journal.Event{Reason: journal.EventDeleted, Message: "Nothing of the pool is left: the WorkerPool is let go"})
	return nil
}

// Backoff returns a random wait that doubles with each try.
func Backoff(random *rand.Rand, try int, least, most time.Duration) time.Duration {
	wait := least
	for i := 1; i < try && wait < most; i++ {
		wait *= 2
	}
	wait = min(wait, most)
	return wait/2 + time.Duration(random.Int64N(int64(wait/2)+1))
}
