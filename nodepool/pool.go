package nodepool

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
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

	mu         sync.Mutex
	inbox      []provider.Message // that no cycle has looked at
	deferred   []provider.Message // that a cycle could do nothing with yet
	receiveErr error
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
		BindGrace: p.options.BindGrace, MaxBindGrace: p.options.MaxBindGrace, HasMessages: p.hasMessages,
	}
}

// Tick runs one cycle, without waiting: what takes longer is taken up again by the next one. It must not be called by two at once.
// The error is everything that went wrong; the decision holds all the same.
//
// A cycle has five phases, each a function of what those before it return: it observes, forecasts, plans, acts if this process leads,
// and reports.
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
		Pool: p.options.Name, Generation: seen.Spec.Generation, At: seen.At, Leading: p.journal.Leading, DryRun: p.spec.DryRun,
		Decision: decision, Snapshot: snapshot, Record: p.journal.Record, StartupTime: load.Startup,
		Health: health, Events: p.journal.Happened(err), Deletion: deletion(&seen, p.journal.Record, decision),
	})
	return decision, health
}

// Release gives the lease back, so that another process need not wait for it to expire. Run does so by itself.
func (p *Pool) Release(ctx context.Context) error { return p.journal.Release(ctx) }
