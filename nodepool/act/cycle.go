package act

import (
	"context"
	"errors"
	"time"

	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// ActFor is the time for which a cycle launches nodes and begins drains.
const ActFor = 5 * time.Second

// cycle is shared by all acts of one cycle. They read the observation, write the journal, and
// change cloud and cluster only through the guard.
type cycle struct {
	journal *journal.Journal
	record  *state.Record // of the journal
	tasks   *lockstep
	cloud   guardedCloud
	nodes   guardedNodes
	labels  *labels

	seen     *observe.Observation
	forecast forecast.Forecast
	snapshot plan.Snapshot
	decision plan.Decision

	hasMessages func() bool // messages have arrived that no cycle has processed
	began       time.Time   // start of this phase

	ended    []string           // instances that have been terminated
	deferred []provider.Message // for the next cycle
	errs     []error            // that do not end the cycle
}

func (c *cycle) now() time.Time { return c.journal.Now() }

func (c *cycle) event(e journal.Event) { c.journal.Event(e) }

// save writes the journal, once for all tasks that save it at the same time.
func (c *cycle) save(ctx context.Context) error { return c.tasks.write(ctx) }

// changed marks the record to be saved by the end of the cycle.
func (c *cycle) changed() { c.journal.Dirty = true }

// each runs a task for each of n things. It returns the error that ends the cycle, or all others
// joined.
func (c *cycle) each(ctx context.Context, n int, do func(i int) error) error {
	var errs []error
	for _, err := range c.tasks.together(n, do) {
		if endsCycle(err) || err != nil && ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// outOfTime reports whether remaining launches and drains are left to the next cycle, which processes
// messages first. The time of the observation does not count: it is long where there is much to do.
func (c *cycle) outOfTime() bool { return c.now().Sub(c.began) > ActFor || c.hasMessages() }

// collectError collects an error that concerns one part only, and returns one that ends the cycle.
func (c *cycle) collectError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case endsCycle(err), ctx.Err() != nil:
		return err
	}
	c.errs = append(c.errs, err)
	return nil
}

// orderTermination orders the termination of an instance. From then on it is no worker, whatever lists report.
func (c *cycle) orderTermination(ctx context.Context, id string) error {
	if err := c.cloud.terminate(ctx, id); err != nil {
		return err
	}
	c.ended = append(c.ended, id)
	return nil
}

// distrusted reports whether so many workers are unready that observations cannot be trusted.
func (c *cycle) distrusted() bool {
	unready, workers := 0, 0
	for w := range plan.Workers(c.snapshot.Instances) {
		if w.Counts() || c.stillWorks(w) {
			workers++
			if !w.Node.Ready {
				unready++
			}
		}
	}
	return c.seen.Spec.Plan.Distrusts(unready, workers)
}

// stillWorks reports whether a worker is a target of a pool deletion that still runs pods: planned,
// tainted or draining.
func (c *cycle) stillWorks(w *plan.Instance) bool {
	if c.record.Action == nil || !c.record.Action.DeletesPool() || w.Failed {
		return false
	}
	r := c.record.Target(w.ID)
	return r != nil && (r.State == state.RemovalPlanned || r.State == state.RemovalTainted ||
		r.State == state.RemovalDraining)
}

// commit saves the decision in one write, before anything of it is done. The journal still matches
// the input of the decision, because nothing has been done in between.
func (c *cycle) commit(ctx context.Context) error {
	events, changed := Commit(c.record, c.decision, c.now())
	for _, e := range events {
		c.event(e)
	}
	if !changed {
		return nil
	}
	return c.save(ctx)
}

// recordAttempts records the outcome of earlier launches.
func (c *cycle) recordAttempts() {
	if list, changed := c.forecast.ChangedAttempts(); changed {
		c.record.Attempts = list
		c.changed()
	}
}

// recordDecision records what the next decisions need of this one.
func (c *cycle) recordDecision() {
	r, d := c.record, c.decision
	if !r.IdleSince.Equal(d.IdleSince) || !r.SpareSince.Equal(d.SpareSince) || !r.Demand.Equal(&d.Demand) {
		r.IdleSince, r.SpareSince, r.Demand = d.IdleSince, d.SpareSince, d.Demand
		c.changed()
	}
	if d.Step == plan.Hold && r.WorkersBeforeRollout != d.WorkersBeforeRollout && !c.seen.Spec.DryRun {
		r.WorkersBeforeRollout = d.WorkersBeforeRollout
		c.changed()
	}
	c.journal.NoteDecision(c.seen.At)
}

// endsCycle reports whether an error ends the cycle: the state of the journal is unknown, or the
// lease is lost.
func endsCycle(err error) bool {
	return errors.Is(err, journal.ErrStop) || errors.Is(err, journal.ErrLeaseLost)
}
