package nodepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/clusterstate"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// tick is one turn of the loop: what it saw, what it decided, and the journal as it stands.
type tick struct {
	*Pool
	now time.Time // when it began
	act guarded

	instances  map[string]provider.Instance // that the cloud lists, by id
	listErr    error
	cluster    *clusterstate.Cluster // nil while it is not known
	clusterErr error
	nodes      map[string]*clusterstate.Node // by provider id, and by the id of the instance in it
	offersErr  error
	pending    []clusterstate.Pending // pods that no node takes, without those that another pool comes first for
	nextDue    time.Time              // when a pod falls due next

	record  state.Record
	loaded  bool
	leading bool
	dirty   bool // the record has changed since it was written

	snapshot plan.Snapshot
	decision plan.Decision

	attached map[string][]string // volumes by node; nil = it has not been asked for
	budgeted bool                // a budget holds pods of a node that is drained
	claimed  map[string]bool     // nodes that this cycle has labelled, which the cluster does not show yet

	unsaved, events []Event
	errs            []error // that do not end the tick
}

func (p *Pool) newTick() *tick {
	t := &tick{Pool: p, now: p.options.Now(), claimed: map[string]bool{}}
	t.act = guarded{
		provider: p.options.Provider, drainer: p.options.Drainer, labeler: p.options.Labeler, letGo: p.options.LetGo,
		left: func() time.Duration { return p.lease.left(p.options.Now()) },
	}
	return t
}

// run is the tick: the cloud, the journal with the lease, the cluster, the decision, and what is done.
func (t *tick) run(ctx context.Context) error {
	t.decision = plan.Decision{At: t.now, Step: plan.Hold, Reason: NotDecided}
	if err := t.readSpec(); err != nil {
		t.decision.Message = fmt.Sprintf("No change: %v", err)
		return err
	}
	t.list(ctx)
	err := t.load(ctx)
	if err == nil && t.leading {
		t.observe(ctx)
		err = t.takeMessages(ctx)
	} else {
		t.observe(ctx)
	}
	t.snapshot = t.snapshotOf(ctx)
	if !t.loaded {
		t.decision.Message = fmt.Sprintf("No change: %v", err)
		return t.trouble(err)
	}
	t.decision = plan.Decide(t.snapshot)
	t.rememberHomeless()
	t.claimPods()
	if err == nil && t.leading {
		err = t.lead(ctx)
	}
	return t.trouble(err)
}

// readSpec reads the configuration. A broken one leaves the one before.
func (t *tick) readSpec() error {
	s, err := t.options.Spec()
	switch {
	case err == nil:
		t.spec, t.specRead = s, true
	case !t.specRead:
		return fmt.Errorf("read the configuration: %w", err)
	default:
		t.errs = append(t.errs, fmt.Errorf("read the configuration: %w", err))
	}
	return nil
}

// lead does what is left to the holder of the lease.
func (t *tick) lead(ctx context.Context) error {
	if !t.spec.DryRun {
		if err := t.apply(ctx); err != nil {
			return err
		}
	}
	if !t.record.IdleSince.Equal(t.decision.IdleSince) {
		t.record.IdleSince, t.dirty = t.decision.IdleSince, true
	}
	t.decidedAt = t.now
	if t.dirty {
		if err := t.save(ctx); err != nil {
			return err
		}
	}
	return t.carryOn(ctx, t.letGo(ctx))
}

// apply goes on with what is open, and begins what was decided. What is in a hurry comes first. An error of one part does
// not keep the others from being done, unless the journal is not known any more.
func (t *tick) apply(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		t.advanceInterruptions,
		t.advanceAction,
		t.giveUpKept,
		t.begin,
		t.endCondemned,
		t.condemnOrphans,
		t.condemnStopped,
		t.tidyNodes,
		t.reportBroken,
		t.reportUnlisted,
		t.reportDriftUnknown,
	} {
		if err := t.carryOn(ctx, step(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// actFor is how long a tick goes on with launching nodes and with beginning to empty them.
const actFor = 5 * time.Second

// mustEnd tells whether such acts are left to the next tick, which hears messages first.
func (t *tick) mustEnd() bool { return t.options.Now().Sub(t.now) > actFor || t.spoken() }

// carryOn keeps an error that concerns one part alone, and returns one that ends the tick.
func (t *tick) carryOn(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStop), errors.Is(err, errLeaseLost), ctx.Err() != nil:
		return err
	}
	t.errs = append(t.errs, err)
	return nil
}

// trouble is all that went wrong.
func (t *tick) trouble(err error) error {
	if !errors.Is(err, errStop) && !errors.Is(err, errLeaseLost) {
		t.events, t.unsaved = append(t.events, t.unsaved...), nil
	}
	return errors.Join(append([]error{err, t.listErr, t.clusterErr, t.offersErr}, t.errs...)...)
}

func (t *tick) report(ctx context.Context, health error) {
	if t.options.Reporter == nil {
		return
	}
	t.options.Reporter.Report(ctx, CycleReport{
		Pool: t.options.Name, At: t.now, Leading: t.leading, DryRun: t.spec.DryRun,
		Decision: t.decision, Snapshot: t.snapshot, Record: t.record, StartupTime: t.startupTime(),
		Health: health, Events: t.events, Deletion: t.deletion(),
	})
}
