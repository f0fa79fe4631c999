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

// Pool runs one pool of workers. What it remembers beside the journal can be lost at any time: it makes decisions
// steadier, and nothing depends on it.
type Pool struct {
	options Options
	random  *rand.Rand

	spec     config.Spec // as read last
	specRead bool

	journal    *journal.Journal
	observer   observe.Observer
	forecaster forecast.Forecaster
	actor      act.Actor
	findings   findings

	after    after // what the last cycle leaves to the loop
	faults   int   // cycles in a row that went wrong
	woken    chan struct{}
	receives atomic.Bool // messages are received: this process leads, and not for show
	inbox    inbox
}

// after is what a cycle leaves to the loop around it.
type after struct {
	began   time.Time
	open    bool      // something waits for its next step
	lost    bool      // a launch has failed, and waits for a substitute
	nextDue time.Time // when a pod falls due
}

// New returns a pool that does nothing until it is run or ticked.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p := &Pool{
		options: o, random: rand.New(rand.NewPCG(o.Seed, 0)),
		journal: journal.New(o.Owner, o.Now), observer: observe.New(), findings: findings{}, woken: make(chan struct{}, 1),
	}
	p.wire()
	return p, nil
}

// wire gives each phase the part of the options that it may use.
func (p *Pool) wire() {
	p.journal.Store, p.journal.Pool = p.options.Store, p.options.Name
	p.observer.Cloud, p.observer.Cluster = p.options.Provider, p.options.Observer
	p.forecaster = forecast.Forecaster{Signals: p.options.Signals, Claims: p.options.Claims}
	p.actor = act.Actor{
		Journal: p.journal, Provider: p.options.Provider, Drainer: p.options.Drainer, Labeler: p.options.Labeler,
		Notices: p.options.Notices, LetGo: p.options.LetGo, Random: p.random,
		BindGrace: p.options.BindGrace, MaxBindGrace: p.options.MaxBindGrace, HasMessages: p.inbox.hasFresh,
	}
}

// Tick runs one cycle, without waiting: what takes longer is taken up again by the next one. It
// must not be called by two at once. The error is everything that went wrong; the decision holds
// all the same.
//
// A cycle has five phases, each a function of what those before it return: it observes, forecasts,
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
	p.after = after{began: seen.At, nextDue: load.NextDue}
	active := p.journal.Leading && !p.spec.DryRun
	if active {
		r := p.journal.Record
		p.after.open, p.after.lost = r.Open() || act.Watches(r, seen.At), len(r.Lost()) > 0
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

// Release gives the lease back, so that another process need not wait for it to expire. Run does so by itself.
func (p *Pool) Release(ctx context.Context) error { return p.journal.Release(ctx) }

// Notify takes messages of the cloud for the next cycle, and has Run make one at once. Run passes on what Notices
// receives.
func (p *Pool) Notify(messages ...provider.Message) {
	p.inbox.add(messages...)
	p.wake()
}

// readSpec reads the configuration. A broken one leaves the one before.
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
// what those know beyond the list has happened since. Of the journal it writes the lease alone; an
// error means that nobody may act.
func (p *Pool) observe(ctx context.Context, o *observe.Observation) error {
	p.observer.List(ctx, o)
	j := p.journal
	err := j.Load(ctx, o.Spec)
	o.Record, o.DecidedAt, o.Leading, o.TookOver = j.Record, j.LastDecided(), j.Leading, j.TookOver
	if o.Leading && o.TookOver && j.Record.Version > 1 {
		p.observer.List(ctx, o) // the first list may be older than the last acts of the process that led before
	}
	p.observer.See(ctx, o)
	if err == nil && o.Leading {
		o.Messages, o.MessagesErr = p.inbox.take()
	}
	if o.Spec.DryRun {
		o.Messages = nil // the queue delivers again what was not deleted
	}
	return err
}

// plan is the third phase. It decides, unless the journal is not known, and keeps what makes later
// decisions cheaper and tells other pools which pods are this one's.
func (p *Pool) plan(o *observe.Observation, f forecast.Forecast, s plan.Snapshot, err error) plan.Decision {
	if !p.journal.Loaded {
		return plan.Decision{At: o.At, Step: plan.Hold, Reason: NotDecided, Message: fmt.Sprintf("No change: %v", err)}
	}
	d := plan.Decide(s)
	p.observer.RememberRefused(d.Refused, o.At)
	if p.options.Claims != nil && o.Cluster != nil {
		p.options.Claims.Decided(o, f, d)
	}
	return d
}

// act is the fourth phase. It returns the errors of parts that did not keep others from being done, and the one that
// ended it early.
func (p *Pool) act(ctx context.Context, seen *observe.Observation, load forecast.Forecast, s plan.Snapshot,
	d plan.Decision) (errs []error, err error) {
	r := p.actor.Act(ctx, act.Cycle{Seen: seen, Forecast: load, Snapshot: s, Decision: d})
	p.inbox.putBack(r.Deferred...)
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
