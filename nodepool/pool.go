package nodepool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/observe"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/provider"
)

// Pool runs one pool of workers. Its memory apart from the journal may be lost at any time: it
// makes decisions steadier, and nothing depends on it.
type Pool struct {
	options Options
	random  *rand.Rand

	spec     config.Spec // as last read
	specRead bool

	journal    *journal.Journal
	observer   observe.Observer
	forecaster forecast.Forecaster
	actor      act.Actor
	findings   findings

	last         cycleState // result of the last cycle for the loop
	failedCycles int        // consecutive cycles with errors
	woken        chan struct{}
	receives     atomic.Bool // messages are received: this process leads, and it is no dry run
	inbox        inbox
}

// cycleState is the result of a cycle for the loop around it.
type cycleState struct {
	began   time.Time
	open    bool      // something waits for its next step
	lost    bool      // a launch has failed, and waits for a substitute
	nextDue time.Time // when the next pod becomes due
}

// New returns a pool that does nothing until Run or Tick is called.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p := &Pool{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 0)),
		journal: journal.New(o.Owner, o.Now), observer: observe.New(), findings: findings{}, woken: make(chan struct{}, 1),
	}
	p.connectPhases()
	return p, nil
}

// connectPhases passes each phase the options that it may use.
func (p *Pool) connectPhases() {
	p.journal.Store, p.journal.Pool = p.options.Store, p.options.Name
	p.observer.Cloud, p.observer.Cluster = p.options.Provider, p.options.Observer
	p.forecaster = forecast.Forecaster{Signals: p.options.Signals, Claims: p.options.Claims}
	p.actor = act.Actor{
		Journal: p.journal, Provider: p.options.Provider, Drainer: p.options.Drainer, Labeler: p.options.Labeler,
		Notices: p.options.Notices, ReleaseFinalizer: p.options.ReleaseFinalizer, Random: p.random,
		BindGrace: p.options.BindGrace, MaxBindGrace: p.options.MaxBindGrace, HasMessages: p.inbox.hasFresh,
	}
}

// Tick runs one cycle without waiting: work that takes longer is continued by the next one. It must
// not be called concurrently. It returns the decision, and all errors of the cycle.
//
// A cycle has five phases, each a function of the results of those before: it observes, forecasts,
// plans, acts if this process leads, and reports.
func (p *Pool) Tick(ctx context.Context) (plan.Decision, error) {
	p.journal.Begin()
	seen := observe.Observation{At: p.options.Now(), Pool: p.options.Name, VanishGrace: p.options.VanishGrace}
	var load forecast.Forecast
	var snapshot plan.Snapshot
	err := p.readSpec(&seen)
	if err == nil {
		err = p.observe(ctx, &seen)
		load = p.forecaster.Forecast(ctx, &seen)
		snapshot = snapshotOf(&seen, load)
	}
	decision := p.plan(&seen, load, snapshot, err)
	var errs []error
	if err == nil && p.journal.Leading {
		errs, err = p.act(ctx, &seen, load, snapshot, decision)
	}
	health := errors.Join(slices.Concat([]error{err, p.journal.Slimmed}, seen.Errs(), errs)...)
	p.last = cycleState{began: seen.At, nextDue: load.NextDue}
	active := p.journal.Leading && !p.spec.DryRun
	if active {
		r := p.journal.Record
		p.last.open, p.last.lost = r.Open() || act.Watches(r, seen.At), len(r.Lost()) > 0
	}
	p.receives.Store(active)
	p.report(ctx, CycleReport{
		Pool: p.options.Name, Generation: seen.Spec.Generation, At: seen.At,
		Leading: p.journal.Leading, DryRun: p.spec.DryRun,
		Decision: decision, Snapshot: snapshot, Record: p.journal.Record, StartupTime: load.Startup,
		Health: health, Events: p.journal.Happened(err), Deletion: deletion(&seen, p.journal.Record, decision),
	})
	return decision, health
}

// Release releases the lease, so that another process need not wait until it expires. Run calls it
// at its end.
func (p *Pool) Release(ctx context.Context) error { return p.journal.Release(ctx) }

// Notify adds messages of the cloud for the next cycle, and makes Run start it at once. Run passes
// on what Notices receives.
func (p *Pool) Notify(messages ...provider.Message) {
	p.inbox.add(messages...)
	p.wake()
}

// readSpec reads the configuration. After an error the previous one is used.
func (p *Pool) readSpec(o *observe.Observation) error {
	s, err := p.options.Spec()
	switch {
	case err == nil:
		p.spec, p.specRead = s, true
	case !p.specRead:
		return fmt.Errorf("read the configuration: %w", err)
	default:
		o.SpecErr = fmt.Errorf("read the configuration: %w", err)
	}
	o.Spec = p.spec
	return nil
}

// observe is the first phase. It lists the instances before it reads the journal and the cluster:
// anything that those know beyond the list has happened since. It writes only the lease to the
// journal. An error means that this process must not act.
func (p *Pool) observe(ctx context.Context, o *observe.Observation) error {
	p.observer.List(ctx, o)
	j := p.journal
	err := j.Load(ctx, o.Spec)
	o.Record, o.DecidedAt, o.Leading, o.TookOver = j.Record, j.LastDecided(), j.Leading, j.TookOver
	if o.Leading && o.TookOver && j.Record.Version > 1 {
		p.observer.List(ctx, o) // the first list may be older than the last acts of the previous leader
	}
	p.observer.Observe(ctx, o)
	if err == nil && o.Leading {
		o.Messages, o.MessagesErr = p.inbox.take()
	}
	if o.Spec.DryRun {
		o.Messages = nil // the queue delivers messages again that were not deleted
	}
	return err
}

// plan is the third phase. It decides, unless the journal is unknown, and records refused workers
// and the pods that other pools leave to this one.
func (p *Pool) plan(o *observe.Observation, f forecast.Forecast, s plan.Snapshot, err error) plan.Decision {
	if !p.journal.Loaded {
		return plan.Decision{At: o.At, Step: plan.Hold, Reason: NotDecided, Message: fmt.Sprintf("No change: %v", err)}
	}
	d := plan.Decide(s)
	p.observer.RecordRefused(d.Refused, o.At)
	if p.options.Claims != nil && o.Cluster != nil {
		p.options.Claims.Decided(o, f, d)
	}
	return d
}

// act is the fourth phase. It returns the errors of parts that did not prevent others, and the
// error that ended it early.
func (p *Pool) act(ctx context.Context, seen *observe.Observation, load forecast.Forecast, s plan.Snapshot,
	d plan.Decision) (errs []error, err error) {
	r := p.actor.Act(ctx, act.Cycle{Seen: seen, Forecast: load, Snapshot: s, Decision: d})
	p.inbox.deferMessages(r.Deferred...)
	p.observer.MarkEnded(r.Ended)
	if r.Err == nil && !seen.Spec.DryRun && seen.Complete() {
		for _, e := range p.findings.news(d.Upkeep.Findings) {
			p.journal.Event(e)
		}
	}
	return r.Errs, r.Err
}

// report is the fifth phase.
func (p *Pool) report(ctx context.Context, r CycleReport) {
	if p.options.Reporter != nil {
		p.options.Reporter.Report(ctx, r)
	}
}
